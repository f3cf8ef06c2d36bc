//! What idle WebSockets take of the server's memory.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Bench;
use super::report::Row;
use super::served::Served;
use super::wire::Connection;

const KB_EACH: f64 = 20.0;
/// Opened and closed before anything is measured, so that what the first ones leave behind is there.
const FIRST: usize = 50;

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let count = bench.args.sockets;
    let seeded = bench.seed("sockets", count, 1).await?;
    for listens in [false, true] {
        let served = Served::start(bench, &seeded, &[]).await?;
        let threads: Vec<Option<String>> =
            seeded.threads.iter().map(|thread| listens.then(|| thread.to_string())).collect();
        drop(open(&served, &threads[..FIRST.min(count)]).await?);
        let before = served.resident_bytes()?;
        let sockets = open(&served, &threads).await?;
        let each = (served.resident_bytes()? - before) / count as f64 / 1e3;
        let what = if listens { "each listening to a thread of its own" } else { "silent" };
        bench.row(Row::at_most(format!("{count} idle WebSockets, {what}"), "KB each", [each], KB_EACH)?);
        drop(sockets);
        served.stop()?;
    }
    Ok(())
}

/// Opens a socket for each thread, and listens to it where there is one.
async fn open(served: &Served, threads: &[Option<String>]) -> Result<Vec<Connection>> {
    let mut sockets = Vec::with_capacity(threads.len());
    for thread in threads {
        let mut socket = served.connect().await?;
        socket.upgrade().await?;
        if let Some(thread) = thread {
            subscribe(&mut socket, thread).await?;
        }
        sockets.push(socket);
    }
    Ok(sockets)
}

pub(super) async fn subscribe(socket: &mut Connection, thread: &str) -> Result<()> {
    socket.say(&json!({ "type": "subscribe", "thread": thread }).to_string()).await?;
    let told: Value = serde_json::from_slice(&socket.hear().await?)?;
    ensure!(told["type"] == "subscribed", "not subscribed: {told}");
    Ok(())
}
