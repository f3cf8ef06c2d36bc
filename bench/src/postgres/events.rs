//! Events at subscribers: turns with subscribers, and the latency of events between instances.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use threadkeep_core::{Scope, ThreadId};
use threadkeep_memory::{AppendOptions, Draft, Memory, SubscribeOptions, ThreadUpdate};

/// Turns per second of each writer.
const TURNS_PER_SECOND: u32 = 50;
/// Timeout of an event.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Appends turns to a thread with a subscriber until a deadline. Returns after the subscriber has received all of them.
pub(super) async fn turns_with_subscriber(
    memory: &Memory,
    subscriber: &Memory,
    until: Instant,
    texts: &[String],
) -> Result<usize> {
    let scope = Scope::user("acme", "ana")?;
    let thread = memory.open(&scope).await?.thread.id;
    let mut updates = subscriber.subscribe(&scope, thread, SubscribeOptions::default()).await?;
    let (total, mut watched_total) = tokio::sync::watch::channel(u64::MAX);
    let receiving = tokio::spawn(async move {
        let mut last = 0;
        while last < *watched_total.borrow() {
            tokio::select! {
                update = updates.next() => {
                    last = change_of(update)?;
                }
                changed = watched_total.changed() => changed?,
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
    total.send(done as u64)?;
    tokio::time::timeout(TIMEOUT, receiving).await???;
    Ok(done)
}

/// Latencies from the acknowledgement of a commit to its event at a subscriber on another instance, in milliseconds, sorted.
pub(crate) struct EventLatencies {
    pub(crate) turns_per_second: f64,
    latencies: Vec<f64>,
}

impl EventLatencies {
    /// Returns the latency that this share of the events does not exceed.
    pub(crate) fn at(&self, share: f64) -> f64 {
        self.latencies[((self.latencies.len() - 1) as f64 * share) as usize]
    }
}

impl std::fmt::Display for EventLatencies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let at = |share: f64| self.at(share);
        write!(
            f,
            "event latency to another instance at {:.0} turns per second: p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms, {} events",
            self.turns_per_second,
            at(0.5),
            at(0.99),
            at(1.0),
            self.latencies.len()
        )
    }
}

/// Measures with a number of writers, each of which appends 50 turns per second.
pub(crate) async fn measure(here: &Memory, elsewhere: &Memory, seconds: u64, writers: u32) -> Result<EventLatencies> {
    let began = Instant::now();
    let writing = (0..writers).map(|number| {
        let phase = Duration::from_secs(1) / TURNS_PER_SECOND * number / writers;
        measure_thread(here.clone(), elsewhere.clone(), phase, seconds)
    });
    let writing: Vec<_> = writing.map(tokio::spawn).collect();
    let mut latencies = Vec::new();
    let mut elapsed = 0.0_f64;
    for writer in writing {
        let (of_writer, ended) = writer.await??;
        latencies.extend(of_writer);
        elapsed = elapsed.max((ended - began).as_secs_f64());
    }
    ensure!(!latencies.is_empty(), "no latencies were measured");
    latencies.sort_unstable_by(f64::total_cmp);
    Ok(EventLatencies { turns_per_second: latencies.len() as f64 / elapsed, latencies })
}

/// Appends turns to a thread at an even pace. Returns the latency of each turn's event in milliseconds, and the time of
/// the last turn.
async fn measure_thread(here: Memory, elsewhere: Memory, phase: Duration, seconds: u64) -> Result<(Vec<f64>, Instant)> {
    let scope = Scope::user("acme", "ana")?;
    let thread = here.open(&scope).await?.thread.id;
    let turns = u64::from(TURNS_PER_SECOND) * seconds;
    let mut updates = elsewhere.subscribe(&scope, thread, SubscribeOptions::default()).await?;
    let receiving = tokio::spawn(async move {
        let mut received = HashMap::new();
        while received.len() < turns as usize {
            let update = tokio::time::timeout(TIMEOUT, updates.next()).await?;
            received.insert(change_of(update)?, Instant::now());
        }
        anyhow::Ok(received)
    });
    let mut committed = HashMap::new();
    let pace = Duration::from_secs(1) / TURNS_PER_SECOND;
    let mut next = tokio::time::Instant::now() + phase;
    for turn in 1..=turns {
        tokio::time::sleep_until(next).await;
        next += pace;
        append(&here, &scope, thread).await?;
        committed.insert(turn, Instant::now());
    }
    let ended = Instant::now();
    let received = receiving.await??;
    let latency = |(change, at): (&u64, &Instant)| {
        let received_at = received.get(change).context("a change was not received")?;
        Ok(received_at.saturating_duration_since(*at).as_secs_f64() * 1e3)
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
        _ => anyhow::bail!("the event stream ended"),
    }
}
