use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use threadkeep_core::{Scope, ThreadId};
use threadkeep_memory::{AppendOptions, Draft, Memory, SubscribeOptions, ThreadUpdate};

/// Writers while events are timed, and turns a second of each.
const WRITERS: u32 = 10;
const TURNS_A_SECOND: u32 = 50;
/// As long as an event may be underway.
const PATIENCE: Duration = Duration::from_secs(30);

/// Appends turns to a thread that somebody listens to, until a moment; each is heard before this ends.
pub(super) async fn heard_turns(
    memory: &Memory,
    listening: &Memory,
    until: Instant,
    texts: &[String],
) -> Result<usize> {
    let scope = Scope::user("acme", "ana")?;
    let thread = memory.open(&scope).await?.thread.id;
    let mut updates = listening.subscribe(&scope, thread, SubscribeOptions::default()).await?;
    let (said, mut all_said) = tokio::sync::watch::channel(u64::MAX);
    let hearing = tokio::spawn(async move {
        let mut last = 0;
        while last < *all_said.borrow() {
            tokio::select! {
                update = updates.next() => {
                    last = change_of(update)?;
                }
                changed = all_said.changed() => changed?,
            }
        }
        anyhow::Ok(())
    });
    let mut done = 0;
    while Instant::now() < until {
        let turn = vec![Draft::user(&texts[done % texts.len()]), Draft::assistant(&texts[(done + 1) % texts.len()])];
        memory.append_all(&scope, thread, turn, &AppendOptions::default()).await?;
        done += 1;
    }
    said.send(done as u64)?;
    tokio::time::timeout(PATIENCE, hearing).await???;
    Ok(done)
}

/// From an acknowledged commit here to its event at a subscriber elsewhere.
pub(super) struct Events {
    turns_a_second: f64,
    latencies: Vec<f64>,
}

impl std::fmt::Display for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |share: f64| self.latencies[((self.latencies.len() - 1) as f64 * share) as usize];
        write!(
            f,
            "event from one instance to another at {:.0} turns a second: p50 {:.2} ms, p99 {:.2} ms, longest {:.2} ms, of {}",
            self.turns_a_second,
            at(0.5),
            at(0.99),
            at(1.0),
            self.latencies.len()
        )
    }
}

pub(super) async fn measure(here: &Memory, elsewhere: &Memory, seconds: u64) -> Result<Events> {
    let began = Instant::now();
    let writing = (0..WRITERS).map(|number| one(here.clone(), elsewhere.clone(), number, seconds));
    let writing: Vec<_> = writing.map(tokio::spawn).collect();
    let mut latencies = Vec::new();
    let mut elapsed = 0.0_f64;
    for writer in writing {
        let (of_writer, ended) = writer.await??;
        latencies.extend(of_writer);
        elapsed = elapsed.max((ended - began).as_secs_f64());
    }
    ensure!(!latencies.is_empty(), "nothing was timed");
    latencies.sort_unstable_by(f64::total_cmp);
    Ok(Events { turns_a_second: latencies.len() as f64 / elapsed, latencies })
}

/// One thread: turns at an even pace, and how long each took to be heard of, in milliseconds.
async fn one(here: Memory, elsewhere: Memory, number: u32, seconds: u64) -> Result<(Vec<f64>, Instant)> {
    let scope = Scope::user("acme", "ana")?;
    let thread = here.open(&scope).await?.thread.id;
    let turns = u64::from(TURNS_A_SECOND) * seconds;
    let mut updates = elsewhere.subscribe(&scope, thread, SubscribeOptions::default()).await?;
    let hearing = tokio::spawn(async move {
        let mut heard = HashMap::new();
        while heard.len() < turns as usize {
            let update = tokio::time::timeout(PATIENCE, updates.next()).await?;
            heard.insert(change_of(update)?, Instant::now());
        }
        anyhow::Ok(heard)
    });
    let mut committed = HashMap::new();
    let pace = Duration::from_secs(1) / TURNS_A_SECOND;
    let mut next = tokio::time::Instant::now() + pace * number / WRITERS;
    for turn in 1..=turns {
        tokio::time::sleep_until(next).await;
        next += pace;
        append(&here, &scope, thread).await?;
        committed.insert(turn, Instant::now());
    }
    let ended = Instant::now();
    let heard = hearing.await??;
    let latency = |(change, at): (&u64, &Instant)| {
        let told = heard.get(change).context("a change that nobody heard of")?;
        Ok(told.saturating_duration_since(*at).as_secs_f64() * 1e3)
    };
    Ok((committed.iter().map(latency).collect::<Result<_>>()?, ended))
}

async fn append(memory: &Memory, scope: &Scope, thread: ThreadId) -> Result<()> {
    let turn = vec![Draft::user("what is amparo?"), Draft::assistant("a remedy")];
    memory.append_all(scope, thread, turn, &AppendOptions::default()).await?;
    Ok(())
}

fn change_of(update: Option<threadkeep_memory::Result<Arc<ThreadUpdate>>>) -> Result<u64> {
    match update.transpose()?.as_deref() {
        Some(ThreadUpdate::Commit { change, .. }) => Ok(*change),
        _ => anyhow::bail!("the events ended"),
    }
}
