use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::StreamExt;
use threadkeep_core::{Scope, WakeUp};
use threadkeep_memory::{Draft, Memory};
use threadkeep_store_postgres::PostgresStore;

/// Turns a second while events are timed.
const PACE: Duration = Duration::from_millis(2);

/// From an acknowledged commit on one instance to its hint on another: the median and the 99th of a hundred, in
/// milliseconds.
pub(super) async fn measure(url: &str, seconds: u64) -> Result<(f64, f64)> {
    let (here, there) = (PostgresStore::open(url).await?, PostgresStore::open(url).await?);
    let memory = Memory::new(here.backend());
    let mut wake_ups = there.backend().store.wake_ups().await?;
    let scope = Scope::user("acme", "ana")?;
    let mut latencies = Vec::new();
    let until = Instant::now() + Duration::from_secs(seconds);
    while Instant::now() < until {
        let began = Instant::now();
        let thread = memory.open(&scope).await?.thread.id;
        let committed = Instant::now();
        let heard = async {
            while let Some(wake_up) = wake_ups.next().await {
                if matches!(wake_up, WakeUp::Thread { thread: heard, .. } if heard == thread) {
                    return true;
                }
            }
            false
        };
        anyhow::ensure!(tokio::time::timeout(Duration::from_secs(5), heard).await?, "the hints ended");
        latencies.push(committed.elapsed().as_secs_f64() * 1e3);
        memory.append(&scope, thread, Draft::user("hello")).await?;
        tokio::time::sleep(PACE.saturating_sub(began.elapsed())).await;
    }
    latencies.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| latencies.get((latencies.len() as f64 * share) as usize).copied();
    Ok((at(0.5).context("nothing was timed")?, at(0.99).context("nothing was timed")?))
}
