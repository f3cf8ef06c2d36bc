//! The log of acknowledged turns, and its comparison with the store.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Context, Result, bail};
use threadkeep_core::{MessageQuery, Role, limits};

use super::child::Turn;
use crate::engine::Engine;

/// The acknowledged turns of writers, and their attempted turns without an acknowledgement. Each writer numbers its
/// turns without gaps, and repeats a failed turn before the next one.
#[derive(Debug)]
pub(crate) struct AckLog {
    /// Per writer, the number of acknowledged turns.
    acknowledged: Vec<u64>,
    attempted: BTreeSet<Turn>,
}

/// Differences between the store and the acknowledgements.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Discrepancies {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) out_of_order: u64,
}

impl AckLog {
    pub(crate) fn new(writers: usize) -> Self {
        Self { acknowledged: vec![0; writers], attempted: BTreeSet::new() }
    }

    pub(crate) fn next_turns(&self) -> String {
        self.acknowledged.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
    }

    /// Records a line of the writers' output.
    pub(crate) fn record_line(&mut self, line: &str) -> Result<()> {
        let (word, key) = line.split_once(' ').with_context(|| format!("unexpected output of a writer: {line:?}"))?;
        let turn = Turn::parse(key).with_context(|| format!("unexpected output of a writer: {line:?}"))?;
        match word {
            "try" => {
                self.attempted.insert(turn);
            }
            "ok" => self.acknowledge(turn),
            _ => bail!("unexpected output of a writer: {line:?}"),
        }
        Ok(())
    }

    pub(crate) fn acknowledge(&mut self, turn: Turn) {
        self.attempted.remove(&turn);
        self.acknowledged[turn.writer] = self.acknowledged[turn.writer].max(turn.number + 1);
    }

    /// Returns the turns without an acknowledgement, in the order of each writer.
    pub(crate) fn unknown(&self) -> Vec<Turn> {
        self.attempted.iter().copied().collect()
    }

    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.iter().sum()
    }

    /// Reads every thread and compares it with the acknowledgements.
    pub(crate) async fn compare(&self, engine: &Engine) -> Result<Discrepancies> {
        let mut found = Discrepancies::default();
        let mut seen: HashMap<usize, Vec<u64>> = HashMap::new();
        let threads: BTreeSet<String> = (0..self.acknowledged.len()).map(Turn::thread).collect();
        for thread in threads {
            for (turn, role) in read(engine, &thread).await? {
                let numbers = seen.entry(turn.writer).or_default();
                match role {
                    Role::User => numbers.push(turn.number),
                    // One commit stores both messages, so the answer directly follows its question.
                    _ if numbers.last() == Some(&turn.number) => {}
                    _ => found.out_of_order += 1,
                }
            }
        }
        for (writer, acknowledged) in self.acknowledged.iter().enumerate() {
            found.add(seen.get(&writer).map_or(&[], Vec::as_slice), *acknowledged);
        }
        Ok(found)
    }
}

impl Discrepancies {
    /// Counts the errors in a writer's turns, given in the order of the store.
    fn add(&mut self, numbers: &[u64], acknowledged: u64) {
        let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
        self.lost += (0..acknowledged).filter(|number| !distinct.contains(number)).count() as u64;
        self.doubled += (numbers.len() - distinct.len()) as u64;
        self.out_of_order += numbers.windows(2).filter(|pair| pair[0] > pair[1]).count() as u64;
    }
}

/// Returns the turn and the role of each message of a thread, in order.
pub(crate) async fn read(engine: &Engine, thread: &str) -> Result<Vec<(Turn, Role)>> {
    let id = engine.thread(thread).await?;
    let (mut turns, mut seq) = (Vec::new(), 0);
    loop {
        let page = engine.memory.messages(&engine.scope, id, &MessageQuery::following(seq, limits::PAGE)).await?;
        for message in &page.messages {
            let turn = Turn::parse(&message.plain_text()).context("a message was not written by a writer")?;
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
    fn lost_duplicated_and_misplaced_turns_are_counted() {
        let cases = [
            (vec![0, 1, 2], 3, Discrepancies::default()),
            (vec![0, 2], 3, Discrepancies { lost: 1, ..Discrepancies::default() }),
            (vec![0, 1, 1], 2, Discrepancies { doubled: 1, ..Discrepancies::default() }),
            (vec![1, 0], 2, Discrepancies { out_of_order: 1, ..Discrepancies::default() }),
            (vec![0, 1], 1, Discrepancies::default()),
        ];
        for (numbers, acknowledged, expected) in cases {
            let mut found = Discrepancies::default();
            found.add(&numbers, acknowledged);
            assert_eq!(found, expected, "{numbers:?}");
        }
    }

    #[test]
    fn tried_turns_without_acknowledgement_are_unknown() {
        let mut ack_log = AckLog::new(2);
        for line in ["try 0.0", "try 1.0", "ok 0.0", "try 0.1"] {
            ack_log.record_line(line).unwrap();
        }
        let unknown: Vec<String> = ack_log.unknown().into_iter().map(Turn::key).collect();
        assert_eq!(
            (unknown.as_slice(), ack_log.next_turns().as_str()),
            (&["0.1".to_owned(), "1.0".to_owned()][..], "1,0")
        );
        assert!(ack_log.record_line("what 0.0").is_err());
    }
}
