//! Latency from sending a message to its event at every subscriber of the thread.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::sync::mpsc;

use super::client::Connection;
use super::report::Row;
use super::server_process::ServerProcess;
use super::{Bench, sockets};

const P99_MS: f64 = 100.0;
/// Timeout of an event.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Delay between events, so that all subscribers are waiting when the next one is sent.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Transport {
    ServerSentEvents,
    WebSocket,
}

/// A change that a subscriber received, and the time of its arrival.
type ReceivedChange = (u64, Instant);

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let seeded = bench.seed("events", 1, 1).await?;
    let thread = seeded.threads[0].to_string();
    let server = ServerProcess::start(&bench.binary, &seeded, &[]).await?;
    for (transport, name) in [(Transport::ServerSentEvents, "server-sent events"), (Transport::WebSocket, "WebSockets")]
    {
        let mut latencies = measure(bench, &server, &thread, transport).await?;
        latencies.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
        let name = format!("event latency at {} subscribers, {name}: p99", bench.args.subscribers);
        let row = Row::at_most(name, "ms", [at(0.99)], P99_MS)?;
        bench.row(row.note(format!("p50 {:.1} ms, max {:.1} ms, events: {}", at(0.5), at(1.0), latencies.len())));
    }
    server.stop()
}

/// Returns the milliseconds from the sending of a message to its event, for every event at every subscriber.
async fn measure(bench: &Bench<'_>, server: &ServerProcess, thread: &str, transport: Transport) -> Result<Vec<f64>> {
    let (count, events) = (bench.args.subscribers, bench.args.events);
    let (sender, mut received) = mpsc::unbounded_channel();
    let mut subscribers = Vec::with_capacity(count);
    let path: Arc<str> = format!("/v1/threads/{thread}/events").into();
    for _ in 0..count {
        let mut connection = server.connect().await?;
        match transport {
            Transport::ServerSentEvents => connection.listen(&path).await?,
            Transport::WebSocket => {
                connection.upgrade().await?;
                sockets::subscribe(&mut connection, thread).await?;
            }
        }
        subscribers.push(tokio::spawn(receive_events(connection, transport, events, sender.clone())));
    }
    drop(sender);
    let mut writer = server.connect().await?;
    let mut latencies = Vec::with_capacity(count * events);
    for number in 0..events {
        tokio::time::sleep(PAUSE).await;
        let body = format!(r#"{{"messages":[{{"role":"user","text":"{number} {}"}}]}}"#, bench.pool[number]);
        let began = Instant::now();
        let appended = writer.request("POST", &format!("/v1/threads/{thread}/messages"), &body).await?.json()?;
        let change = appended["change"].as_u64().context("missing change")?;
        for _ in 0..count {
            let next = tokio::time::timeout(TIMEOUT, received.recv()).await.context("an event is missing")?;
            let (received_change, at): ReceivedChange = next.context("a subscriber ended")?;
            ensure!(received_change == change, "received change {received_change} instead of {change}");
            latencies.push(at.duration_since(began).as_secs_f64() * 1e3);
        }
    }
    for subscriber in subscribers {
        subscriber.await??;
    }
    Ok(latencies)
}

async fn receive_events(
    mut connection: Connection,
    transport: Transport,
    events: usize,
    sender: mpsc::UnboundedSender<ReceivedChange>,
) -> Result<()> {
    for _ in 0..events {
        let change = match transport {
            Transport::ServerSentEvents => {
                let change = connection.next_event().await?;
                sender.send((change, Instant::now()))?;
                continue;
            }
            Transport::WebSocket => connection.next_text().await?,
        };
        let at = Instant::now();
        let event: Value = serde_json::from_slice(&change)?;
        sender.send((event["change"].as_u64().with_context(|| format!("missing change in {event}"))?, at))?;
    }
    Ok(())
}
