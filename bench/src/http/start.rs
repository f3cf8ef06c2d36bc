//! From the start of the process to readiness, and the memory that it has then and after its first token count.

use anyhow::{Context, Result, ensure};

use super::report::Row;
use super::served::Served;
use super::{Bench, MESSAGES, THREADS};
use crate::measure::Spread;

const READY_MS: f64 = 300.0;
const BEFORE_COUNTING_MB: f64 = 40.0;
const AFTER_COUNTING_MB: f64 = 110.0;

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seeded = bench.seed("start", THREADS, MESSAGES).await?;
    let (mut ready, mut before, mut after, mut after_both) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.args.trials {
        let served = Served::start(bench, &seeded, &[]).await?;
        ready.push(served.ready_after.as_secs_f64() * 1e3);
        let mut connection = served.connect().await?;
        // Some of everything but counting.
        for thread in &seeded.threads {
            connection.ask("GET", &format!("/v1/threads/{thread}/messages?limit=16"), "").await?.json()?;
            connection.ask("POST", &format!("/v1/threads/{thread}/context"), "{}").await?.json()?;
        }
        before.push(served.resident_mb()?);
        // The larger table first.
        for (model, resident) in [("gpt-4o", &mut after), ("gpt-4", &mut after_both)] {
            let body = format!(r#"{{"model":"{model}"}}"#);
            let context = connection.ask("POST", &format!("/v1/threads/{}/context", seeded.threads[0]), &body).await?;
            ensure!(context.json()?["messages"].is_array(), "no context");
            resident.push(served.resident_mb()?);
        }
        drop(connection);
        served.stop()?;
    }
    bench.row(Row::at_most("ready after", "ms", ready, READY_MS)?.note("a store with 6,400 messages"));
    bench.row(Row::at_most("resident before the first token count", "MB", before, BEFORE_COUNTING_MB)?);
    let both = Spread::of(after_both).context("there was no trial")?.median;
    let row = Row::at_most("resident after it", "MB", after, AFTER_COUNTING_MB)?;
    bench.row(row.note(format!("gpt-4o's table; with gpt-4's too {both:.0} MB")));
    Ok(())
}
