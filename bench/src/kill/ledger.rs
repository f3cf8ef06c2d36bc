//! What the writers said, and whether the store holds it.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result, bail};
use threadkeep_core::{MessageQuery, Role, limits};

use super::child::Turn;
use crate::engine::Engine;

/// Turns that were tried and acknowledged. Writers number theirs without gaps, and repeat before they go on.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Per writer: how many turns were acknowledged, and all before them.
    acknowledged: Vec<u64>,
    tried: BTreeSet<Turn>,
}

/// What does not agree.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) out_of_order: u64,
}

impl Ledger {
    pub(crate) fn new(writers: usize) -> Self {
        Self { acknowledged: vec![0; writers], tried: BTreeSet::new() }
    }

    pub(crate) fn next_turns(&self) -> String {
        self.acknowledged.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
    }

    /// Takes a line of the writers' output.
    pub(crate) fn note(&mut self, line: &str) -> Result<()> {
        let (word, key) = line.split_once(' ').with_context(|| format!("the writers said {line:?}"))?;
        let turn = Turn::parse(key).with_context(|| format!("the writers said {line:?}"))?;
        match word {
            "try" => {
                self.tried.insert(turn);
            }
            "ok" => self.acknowledge(turn),
            _ => bail!("the writers said {line:?}"),
        }
        Ok(())
    }

    pub(crate) fn acknowledge(&mut self, turn: Turn) {
        self.tried.remove(&turn);
        self.acknowledged[turn.writer] = self.acknowledged[turn.writer].max(turn.number + 1);
    }

    /// Turns whose fate is not known, in the order of each writer.
    pub(crate) fn unknown(&self) -> Vec<Turn> {
        self.tried.iter().copied().collect()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.iter().sum()
    }

    /// Reads every thread and holds it against what was acknowledged.
    pub(crate) async fn compare(&self, engine: &Engine) -> Result<Kept> {
        let mut kept = Kept::default();
        let mut seen: HashMap<usize, Vec<u64>> = HashMap::new();
        let threads: BTreeSet<String> = (0..self.acknowledged.len()).map(Turn::thread).collect();
        for thread in threads {
            for (turn, role) in read(engine, &thread).await? {
                let numbers = seen.entry(turn.writer).or_default();
                match role {
                    Role::User => numbers.push(turn.number),
                    // The answer stands right behind its question: both came in one commit.
                    _ if numbers.last() == Some(&turn.number) => {}
                    _ => kept.out_of_order += 1,
                }
            }
        }
        for (writer, acknowledged) in self.acknowledged.iter().enumerate() {
            kept.add(seen.get(&writer).map_or(&[], Vec::as_slice), *acknowledged);
        }
        Ok(kept)
    }
}

impl Kept {
    /// Counts what is wrong with a writer's turns, given as they stand in the store.
    fn add(&mut self, numbers: &[u64], acknowledged: u64) {
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        self.lost += (0..acknowledged).filter(|number| !distinct.contains(number)).count() as u64;
        self.doubled += (numbers.len() - distinct.len()) as u64;
        self.out_of_order += numbers.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    }
}

/// All turns of a thread with the role of each message, in order.
pub(crate) async fn read(engine: &Engine, thread: &str) -> Result<Vec<(Turn, Role)>> {
    let id = engine.thread(thread).await?;
    let (mut turns, mut seq) = (Vec::new(), 0);
    loop {
        let page = engine.memory.messages(&engine.scope, id, &MessageQuery::following(seq, limits::PAGE)).await?;
        for message in &page.messages {
            let turn = Turn::parse(&message.plain_text()).context("a message that no writer wrote")?;
            turns.push((turn, message.content.role));
            seq = message.seq;
        }
        if !page.more {
            return Ok(turns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_doubled_or_moved_is_counted() {
        let cases = [
            (vec![0, 1, 2], 3, Kept::default()),
            (vec![0, 2], 3, Kept { lost: 1, ..Kept::default() }),
            (vec![0, 1, 1], 2, Kept { doubled: 1, ..Kept::default() }),
            (vec![1, 0], 2, Kept { out_of_order: 1, ..Kept::default() }),
            (vec![0, 1], 1, Kept::default()),
        ];
        for (numbers, acknowledged, expected) in cases {
            let mut kept = Kept::default();
            kept.add(&numbers, acknowledged);
            assert_eq!(kept, expected, "{numbers:?}");
        }
    }

    #[test]
    fn what_was_tried_and_not_acknowledged_is_unknown() {
        let mut ledger = Ledger::new(2);
        for line in ["try 0.0", "try 1.0", "ok 0.0", "try 0.1"] {
            ledger.note(line).unwrap();
        }
        let unknown: Vec<String> = ledger.unknown().into_iter().map(Turn::key).collect();
        assert_eq!(
            (unknown.as_slice(), ledger.next_turns().as_str()),
            (&["0.1".to_owned(), "1.0".to_owned()][..], "1,0")
        );
        assert!(ledger.note("what 0.0").is_err());
    }
}
