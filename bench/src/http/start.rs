//! Time from the start of the process to readiness, and memory before and after the first token counts.

use anyhow::{Context, Result, ensure};

use super::report::Row;
use super::server_process::ServerProcess;
use super::{Bench, MESSAGES, THREADS};
use crate::measure::Spread;

const READY_MS: f64 = 300.0;
const BEFORE_COUNTING_MB: f64 = 40.0;
const AFTER_COUNTING_MB: f64 = 110.0;

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seeded = bench.seed("start", THREADS, MESSAGES).await?;
    let (mut ready, mut before, mut after, mut after_both) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.args.trials {
        let server = ServerProcess::start(&bench.binary, &seeded, &[]).await?;
        ready.push(server.ready_after.as_secs_f64() * 1e3);
        let mut connection = server.connect().await?;
        // Typical reads, without token counts.
        for thread in &seeded.threads {
            connection.request("GET", &format!("/v1/threads/{thread}/messages?limit=16"), "").await?.json()?;
            connection.request("POST", &format!("/v1/threads/{thread}/context"), "{}").await?.json()?;
        }
        before.push(server.resident_mb()?);
        // The model with the larger token table first.
        for (model, resident) in [("gpt-4o", &mut after), ("gpt-4", &mut after_both)] {
            let body = format!(r#"{{"model":"{model}"}}"#);
            let context =
                connection.request("POST", &format!("/v1/threads/{}/context", seeded.threads[0]), &body).await?;
            ensure!(context.json()?["messages"].is_array(), "missing context");
            resident.push(server.resident_mb()?);
        }
        drop(connection);
        server.stop()?;
    }
    bench.row(Row::at_most("ready after", "ms", ready, READY_MS)?.note("a store with 6,400 messages"));
    bench.row(Row::at_most("resident before the first token count", "MB", before, BEFORE_COUNTING_MB)?);
    let both = Spread::of(after_both).context("no trials were run")?.median;
    let row = Row::at_most("resident after the first token count", "MB", after, AFTER_COUNTING_MB)?;
    bench.row(row.note(format!("token table of gpt-4o; with that of gpt-4 {both:.0} MB")));
    Ok(())
}
