mod json;
mod subscribing;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::{IntoResponse, Response};
use axum::{Extension, http::StatusCode};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use threadkeep::ThreadId;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use crate::app::App;
use crate::connections::Held;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::security::Caller;
use json::{Request, problem};

/// Bytes of what a client says at most.
const MESSAGE_BYTES: usize = 64 * 1024;
/// Bytes that are read or gathered at a time: sockets are many, and mostly idle.
const BUFFER_BYTES: usize = 4 * 1024;
/// Bytes of the reason of a closing frame at most.
const REASON_BYTES: usize = 123;
/// How long a client may take to close its side.
const CLOSING: Duration = Duration::from_secs(1);
/// Updates of all threads that wait for the client at most.
const WAITING: usize = 16;

/// Opens a WebSocket that listens to many threads at once
///
/// The client sends `{"type": "subscribe", "thread": ID, "after"?, "last"?, "roles"?}`, `unsubscribe`, `subscribe_threads` (`cursor`?,
/// `follow`?, `roles`?) and `unsubscribe_threads`; docs/server.md has what it hears.
#[utoipa::path(
    get,
    path = "/v1/live",
    tag = "live",
    responses((status = 101, description = "A WebSocket."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn socket(
    State(app): State<App>,
    caller: Caller,
    Extension(held): Extension<Held>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|_| {
        let message = "this is a WebSocket: ask for an upgrade";
        ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message)
    })?;
    let upgrade = upgrade
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(MESSAGE_BYTES)
        .max_frame_size(MESSAGE_BYTES);
    Ok(upgrade
        .on_upgrade(move |socket| async move {
            tokio::select! {
                biased;
                () = run(socket, app.clone(), caller) => {}
                () = app.left_behind() => tracing::info!("a client was left behind: it took nothing"),
            }
            // The server waits for whoever holds a connection.
            drop(held);
        })
        .into_response())
}

async fn run(socket: WebSocket, app: App, caller: Caller) {
    let (sink, mut stream) = socket.split();
    let (outgoing, waiting) = mpsc::channel(WAITING);
    let writer = tokio::spawn(write(sink, waiting));
    let client = Client { app, caller: Arc::new(caller), outgoing, threads: HashMap::new(), all: None };
    let close = client.run(&mut stream).await;
    // The writer ends once every subscription has said its last word.
    if let (Some(frame), Ok(mut sink)) = (close, writer.await)
        && sink.send(Message::Close(Some(frame))).await.is_ok()
    {
        // What the client said meanwhile is read: a connection that closes upon it would take the frame back.
        let closed = async { while let Some(Ok(_)) = stream.next().await {} };
        drop(tokio::time::timeout(CLOSING, closed).await);
    }
}

/// Whether a client's message is understood; for the fuzz targets.
pub(crate) fn is_understood(text: &str) -> bool {
    serde_json::from_str::<Request>(text).is_ok()
}

type Outgoing = SplitSink<WebSocket, Message>;

async fn write(mut sink: Outgoing, mut waiting: mpsc::Receiver<Message>) -> Outgoing {
    while let Some(message) = waiting.recv().await {
        if sink.send(message).await.is_err() {
            break;
        }
    }
    sink
}

struct Client {
    app: App,
    caller: Arc<Caller>,
    outgoing: mpsc::Sender<Message>,
    threads: HashMap<ThreadId, AbortHandle>,
    all: Option<AbortHandle>,
}

impl Client {
    /// Does what the client says until one side ends it. Gives what to close with.
    async fn run(mut self, stream: &mut SplitStream<WebSocket>) -> Option<CloseFrame> {
        let app = self.app.clone();
        let mut stopped = std::pin::pin!(app.stopped());
        let heartbeat = app.options().heartbeat;
        let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + heartbeat, heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stopped => {
                    // Subscriptions end by themselves and say so.
                    self.end_all();
                    return Some(closed(close_code::AWAY, "shutdown"));
                }
                said = stream.next() => match said {
                    // On the heap while it runs: most sockets mostly wait, and a task is as large as the largest that it may do.
                    Some(Ok(Message::Text(text))) => Box::pin(self.obey(&text)).await,
                    Some(Ok(Message::Binary(_))) => self.tell_problem(None, &not_understood("send text")).await,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_))) | None => {
                        self.abandon();
                        return None;
                    }
                    Some(Err(error)) => {
                        self.abandon();
                        return Some(broken(&error.to_string()));
                    }
                },
                _ = beats.tick() => {
                    if !Box::pin(self.caller.is_still_good(&app)).await {
                        self.abandon();
                        return Some(closed(close_code::POLICY, "key_revoked"));
                    }
                    // Where so much waits already, the connection shows by itself whether it lives.
                    drop(self.outgoing.try_send(Message::Ping(bytes::Bytes::new())));
                }
            }
        }
    }

    async fn obey(&mut self, text: &str) {
        let request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => return self.tell_problem(None, &not_understood(&error.to_string())).await,
        };
        match request {
            Request::Subscribe { thread, after, last, roles } => {
                if let Err(error) = self.subscribe(&thread, after, last, roles).await {
                    self.tell_problem(Some(&thread), &error).await;
                }
            }
            Request::Unsubscribe { thread } => {
                let known = thread.parse().ok().and_then(|thread| self.threads.remove(&thread));
                match known {
                    Some(subscription) => subscription.abort(),
                    None => self.tell_problem(Some(&thread), &ApiError::not_found("subscription")).await,
                }
            }
            Request::SubscribeThreads { cursor, follow, roles } => {
                if let Err(error) = self.subscribe_threads(cursor, follow, roles).await {
                    self.tell_problem(None, &error).await;
                }
            }
            Request::UnsubscribeThreads => {
                if let Some(subscription) = self.all.take() {
                    subscription.abort();
                }
            }
        }
    }

    async fn tell_problem(&self, thread: Option<&str>, error: &ApiError) {
        // A client that is gone needs no answer.
        drop(self.outgoing.send(problem(thread, error)).await);
    }

    fn end_all(self) {
        drop(self.outgoing);
    }

    fn abandon(self) {
        self.threads.values().chain(&self.all).for_each(AbortHandle::abort);
    }
}

/// Says what was wrong with a frame. Where it is the connection that broke, nobody hears it.
fn broken(why: &str) -> CloseFrame {
    // The library tells its bound on bytes by its words alone.
    let code = if why.starts_with("Space limit exceeded") { close_code::SIZE } else { close_code::PROTOCOL };
    let reason: String = why.chars().filter(char::is_ascii).take(REASON_BYTES).collect();
    CloseFrame { code, reason: reason.into() }
}

fn closed(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame { code, reason: reason.into() }
}

fn not_understood(why: &str) -> ApiError {
    ApiError::invalid("message", format!("not understood: {why}"))
}
