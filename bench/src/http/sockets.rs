//! Memory of the server for each idle WebSocket.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::Bench;
use super::client::Connection;
use super::report::Row;
use super::server_process::ServerProcess;

const KB_EACH: f64 = 20.0;
/// Number of sockets that are opened and closed before the measurement, as a warm-up.
const WARM_UP: usize = 50;

pub(super) async fn run(bench: &mut Bench<'_>) -> Result<()> {
    let count = bench.args.sockets;
    let seeded = bench.seed("sockets", count, 1).await?;
    for is_subscribed in [false, true] {
        let server = ServerProcess::start(&bench.binary, &seeded, &[]).await?;
        let threads: Vec<Option<String>> =
            seeded.threads.iter().map(|thread| is_subscribed.then(|| thread.to_string())).collect();
        drop(open(&server, &threads[..WARM_UP.min(count)]).await?);
        let before = server.resident_bytes()?;
        let sockets = open(&server, &threads).await?;
        let each = (server.resident_bytes()? - before) / count as f64 / 1e3;
        let state = if is_subscribed { "each subscribed to its own thread" } else { "without subscriptions" };
        bench.row(Row::at_most(format!("{count} idle WebSockets, {state}"), "KB each", [each], KB_EACH)?);
        drop(sockets);
        server.stop()?;
    }
    Ok(())
}

/// Opens a socket for each element, and subscribes it to the thread, if any.
async fn open(server: &ServerProcess, threads: &[Option<String>]) -> Result<Vec<Connection>> {
    let mut sockets = Vec::with_capacity(threads.len());
    for thread in threads {
        let mut socket = server.connect().await?;
        socket.upgrade().await?;
        if let Some(thread) = thread {
            subscribe(&mut socket, thread).await?;
        }
        sockets.push(socket);
    }
    Ok(sockets)
}

pub(super) async fn subscribe(socket: &mut Connection, thread: &str) -> Result<()> {
    socket.send_text(&json!({ "type": "subscribe", "thread": thread }).to_string()).await?;
    let reply: Value = serde_json::from_slice(&socket.next_text().await?)?;
    ensure!(reply["type"] == "subscribed", "subscribing failed: {reply}");
    Ok(())
}
