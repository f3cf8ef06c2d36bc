//! Socket Mode: events and interactions over the WebSockets that the app has opened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::extract::ws::{CloseFrame, Message as Frame, WebSocket, close_code};
use axum::extract::{RawQuery, State, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::events::{ACKNOWLEDGE_WITHIN, ATTEMPTS};
use super::{Delivery, Shared, Slack};
use crate::lock;

/// The connections of the app.
#[derive(Debug, Default)]
pub(super) struct Sockets {
    /// The number of tickets, connections and envelopes so far. Their ids are made from it.
    count: u64,
    /// The tickets of unused URLs.
    tickets: BTreeSet<String>,
    connections: BTreeMap<u64, Connection>,
    /// The connection that received the last envelope.
    last: u64,
    /// For each unacknowledged envelope: the connection that received it, and the sender that reports the acknowledgement.
    waiting: BTreeMap<String, (u64, oneshot::Sender<Value>)>,
}

#[derive(Debug)]
struct Connection {
    frames: mpsc::UnboundedSender<Out>,
    /// Whether its end was announced. If so, it receives no more envelopes.
    is_ending: bool,
}

#[derive(Debug)]
enum Out {
    Send(Value),
    Close,
    /// Drops the connection without a close frame, as a broken network does.
    Cut,
}

impl Sockets {
    fn next(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    /// Chooses the connection for the next envelope, in round-robin order.
    fn choose(&mut self) -> Option<u64> {
        let mut usable = self.connections.iter().filter(|(_, connection)| !connection.is_ending).map(|(id, _)| *id);
        let first = usable.next()?;
        let after = std::iter::once(first).chain(usable).find(|id| *id > self.last);
        self.last = after.unwrap_or(first);
        Some(self.last)
    }

    /// Removes a connection. The envelopes that it received can no longer be acknowledged.
    fn remove(&mut self, id: u64) {
        self.connections.remove(&id);
        self.waiting.retain(|_, (connection, _)| *connection != id);
    }
}

impl Shared {
    /// Returns a URL that accepts one connection.
    pub(super) fn new_socket_url(&self) -> String {
        let mut sockets = lock(&self.sockets);
        let ticket = format!("ticket-{}", sockets.next());
        sockets.tickets.insert(ticket.clone());
        format!("ws://{}/link/?ticket={ticket}&app_id=A0LOCAL", self.address)
    }
}

/// Accepts a connection whose URL has an unused ticket.
pub(super) async fn connect(
    State(shared): State<Arc<Shared>>,
    RawQuery(query): RawQuery,
    upgrade: WebSocketUpgrade,
) -> Response {
    let query = query.unwrap_or_default();
    let ticket = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "ticket");
    if !ticket.is_some_and(|(_, ticket)| lock(&shared.sockets).tickets.remove(&*ticket)) {
        return StatusCode::FORBIDDEN.into_response();
    }
    upgrade.on_upgrade(move |socket| serve(shared, socket))
}

async fn serve(shared: Arc<Shared>, mut socket: WebSocket) {
    let (frames, mut outgoing) = mpsc::unbounded_channel();
    let (id, connections) = {
        let mut sockets = lock(&shared.sockets);
        let id = sockets.next();
        sockets.connections.insert(id, Connection { frames, is_ending: false });
        (id, sockets.connections.len())
    };
    let hello = json!({
        "type": "hello", "num_connections": connections, "connection_info": { "app_id": "A0LOCAL" },
        "debug_info": { "host": "applink-local", "build_number": 1, "approximate_connection_time": 18_060 },
    });
    drop(socket.send(Frame::Text(hello.to_string().into())).await);
    shared.notify();
    loop {
        tokio::select! {
            out = outgoing.recv() => match out {
                Some(Out::Send(value)) => {
                    if socket.send(Frame::Text(value.to_string().into())).await.is_err() {
                        break;
                    }
                }
                Some(Out::Close) => {
                    let frame = CloseFrame { code: close_code::NORMAL, reason: "".into() };
                    drop(socket.send(Frame::Close(Some(frame))).await);
                    break;
                }
                Some(Out::Cut) | None => break,
            },
            frame = socket.recv() => match frame {
                Some(Ok(Frame::Text(text))) => acknowledge(&shared, &text),
                Some(Ok(Frame::Ping(_) | Frame::Pong(_) | Frame::Binary(_))) => {}
                Some(Ok(Frame::Close(_)) | Err(_)) | None => break,
            },
        }
    }
    lock(&shared.sockets).remove(id);
    shared.notify();
}

fn acknowledge(shared: &Shared, text: &str) {
    let Ok(answer) = serde_json::from_str::<Value>(text) else { return };
    let waiting = answer["envelope_id"].as_str().and_then(|id| lock(&shared.sockets).waiting.remove(id));
    if let Some((_, sender)) = waiting {
        // The sender may have given up.
        drop(sender.send(answer["payload"].clone()));
    }
}

impl Slack {
    /// Returns the number of connections that receive events.
    #[must_use]
    pub fn sockets(&self) -> usize {
        lock(&self.shared.sockets).connections.values().filter(|connection| !connection.is_ending).count()
    }

    /// Waits until the given number of connections receive events.
    pub async fn wait_for_sockets(&self, count: usize) {
        let mut changed = self.shared.changed.subscribe();
        while self.sockets() != count {
            // The sender lives as long as this workspace.
            drop(changed.changed().await);
        }
    }

    /// Announces the end of all connections, with a reason such as `warning`, `refresh_requested` or `link_disabled`. They receive no
    /// more events.
    pub fn announce_disconnect(&self, reason: &str) {
        for connection in lock(&self.shared.sockets).connections.values_mut() {
            connection.is_ending = true;
            let message = json!({ "type": "disconnect", "reason": reason, "debug_info": { "host": "applink-local" } });
            drop(connection.frames.send(Out::Send(message)));
        }
        self.shared.notify();
    }

    /// Closes the connections whose end was announced.
    pub fn close_announced(&self) {
        for connection in lock(&self.shared.sockets).connections.values().filter(|connection| connection.is_ending) {
            drop(connection.frames.send(Out::Close));
        }
    }

    /// Drops all connections without a close frame, as a broken network does.
    pub fn cut_sockets(&self) {
        let mut sockets = lock(&self.shared.sockets);
        let connections = std::mem::take(&mut sockets.connections);
        for (id, connection) in connections {
            drop(connection.frames.send(Out::Cut));
            sockets.remove(id);
        }
        drop(sockets);
        self.shared.notify();
    }

    /// Sends a payload in an envelope of the given kind, such as `events_api`, and resends it if it is not acknowledged. Waits for a
    /// connection.
    pub async fn send_envelope(&self, kind: &str, payload: &Value) -> Delivery {
        let id = format!("envelope-{}", lock(&self.shared.sockets).next());
        let mut attempts = 0;
        while attempts < ATTEMPTS {
            let mut envelope = json!({
                "envelope_id": id, "type": kind, "accepts_response_payload": kind != "events_api", "payload": payload,
            });
            if kind == "events_api" {
                envelope["retry_attempt"] = json!(attempts);
                envelope["retry_reason"] = json!(if attempts == 0 { "" } else { "timeout" });
            }
            let acknowledged = self.send_once(&id, envelope).await;
            attempts += 1;
            if let Ok(Ok(answer)) = tokio::time::timeout(ACKNOWLEDGE_WITHIN, acknowledged).await {
                return Delivery { status: Some(200), body: answer.to_string(), attempts };
            }
            lock(&self.shared.sockets).waiting.remove(&id);
        }
        Delivery { status: None, body: String::new(), attempts }
    }

    /// Sends an envelope to a connection. Returns a receiver for its acknowledgement.
    async fn send_once(&self, id: &str, envelope: Value) -> oneshot::Receiver<Value> {
        let mut changed = self.shared.changed.subscribe();
        loop {
            {
                let mut sockets = lock(&self.shared.sockets);
                if let Some(chosen) = sockets.choose() {
                    let (sender, receiver) = oneshot::channel();
                    sockets.waiting.insert(id.to_owned(), (chosen, sender));
                    let sent =
                        sockets.connections.get(&chosen).map(|connection| connection.frames.send(Out::Send(envelope)));
                    drop(sent);
                    return receiver;
                }
            }
            // The sender lives as long as this workspace.
            drop(changed.changed().await);
        }
    }
}
