//! From the sending of a message to its event at everyone who listens to the thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::sync::mpsc;

use super::report::Row;
use super::served::Served;
use super::wire::Connection;
use super::{Bench, sockets};

const P99_MS: f64 = 100.0;
/// As long as an event may be underway.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two events, so that each is told to listeners who wait.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    Events,
    Socket,
}

/// Who has heard which change, and when.
type Heard = (u64, Instant);

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seeded = bench.seed("events", 1, 1).await?;
    let thread = seeded.threads[0].to_string();
    let served = Served::start(bench, &seeded, &[]).await?;
    for (wire, name) in [(Wire::Events, "server-sent events"), (Wire::Socket, "WebSockets")] {
        let mut latencies = measure(bench, &served, &thread, wire).await?;
        latencies.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
        let name = format!("an event at {} subscribers, {name}: p99", bench.args.subscribers);
        let row = Row::at_most(name, "ms", [at(0.99)], P99_MS)?;
        bench.row(row.note(format!("p50 {:.1} ms, longest {:.1} ms, of {}", at(0.5), at(1.0), latencies.len())));
    }
    served.stop()
}

/// Milliseconds from before a message is sent to its event, of every event at every subscriber.
async fn measure(bench: &Bench<'_>, served: &Served, thread: &str, wire: Wire) -> Result<Vec<f64>> {
    let (count, events) = (bench.args.subscribers, bench.args.events);
    let (hears, mut heard) = mpsc::unbounded_channel();
    let mut listening = Vec::with_capacity(count);
    let path: Arc<str> = format!("/v1/threads/{thread}/events").into();
    for _ in 0..count {
        let mut connection = served.connect().await?;
        match wire {
            Wire::Events => connection.listen(&path).await?,
            Wire::Socket => {
                connection.upgrade().await?;
                sockets::subscribe(&mut connection, thread).await?;
            }
        }
        listening.push(tokio::spawn(listen(connection, wire, events, hears.clone())));
    }
    drop(hears);
    let mut writer = served.connect().await?;
    let mut latencies = Vec::with_capacity(count * events);
    for number in 0..events {
        tokio::time::sleep(PAUSE).await;
        let body = format!(r#"{{"messages":[{{"role":"user","text":"{number} {}"}}]}}"#, bench.pool[number]);
        let began = Instant::now();
        let appended = writer.ask("POST", &format!("/v1/threads/{thread}/messages"), &body).await?.json()?;
        let change = appended["change"].as_u64().context("no change")?;
        for _ in 0..count {
            let next = tokio::time::timeout(PATIENCE, heard.recv()).await.context("an event is missing")?;
            let (told, at): Heard = next.context("a listener ended")?;
            ensure!(told == change, "change {told} was told instead of {change}");
            latencies.push(at.duration_since(began).as_secs_f64() * 1e3);
        }
    }
    for one in listening {
        one.await??;
    }
    Ok(latencies)
}

async fn listen(
    mut connection: Connection,
    wire: Wire,
    events: usize,
    hears: mpsc::UnboundedSender<Heard>,
) -> Result<()> {
    for _ in 0..events {
        let change = match wire {
            Wire::Events => {
                let change = connection.next_event().await?;
                hears.send((change, Instant::now()))?;
                continue;
            }
            Wire::Socket => connection.hear().await?,
        };
        let at = Instant::now();
        let told: Value = serde_json::from_slice(&change)?;
        hears.send((told["change"].as_u64().with_context(|| format!("no change in {told}"))?, at))?;
    }
    Ok(())
}
