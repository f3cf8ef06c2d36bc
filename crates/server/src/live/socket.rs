mod json;
mod subscriptions;

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
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::security::Caller;
use json::{ClientMessage, error_message};

/// The most bytes of a client's message.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// The size of the read and write buffers: small, because there are many sockets, mostly idle.
const BUFFER_BYTES: usize = 4 * 1024;
/// The most bytes of the reason in a close frame (RFC 6455).
const MAX_REASON_BYTES: usize = 123;
/// How long to wait for the client's close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The most messages that are buffered for a client.
const BUFFERED_MESSAGES: usize = 16;

/// Opens a WebSocket for subscriptions to several threads
///
/// The client sends `{"type": "subscribe", "thread": ID, "after"?, "last"?, "roles"?}`, `unsubscribe`, `subscribe_threads`
/// (`cursor`?, `follow`?, `roles`?) and `unsubscribe_threads`; docs/server.md lists the server's messages.
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
    Extension(connection): Extension<ConnectionGuard>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response> {
    let upgrade = upgrade.map_err(|_| {
        let message = "this endpoint is a WebSocket; the request must ask for an upgrade";
        ApiError::new(StatusCode::UPGRADE_REQUIRED, "upgrade_required", message)
    })?;
    let upgrade = upgrade
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_message_size(MAX_MESSAGE_BYTES)
        .max_frame_size(MAX_MESSAGE_BYTES);
    Ok(upgrade
        .on_upgrade(move |socket| async move {
            tokio::select! {
                biased;
                () = run(socket, app.clone(), caller) => {}
                () = app.shutdown_timed_out() => tracing::info!("closing a client that stalled during shutdown"),
            }
            // Signals the server, which waits for open connections when it stops.
            drop(connection);
        })
        .into_response())
}

async fn run(socket: WebSocket, app: App, caller: Caller) {
    let (sink, mut stream) = socket.split();
    let (outgoing, receiver) = mpsc::channel(BUFFERED_MESSAGES);
    let writer = tokio::spawn(write(sink, receiver));
    let client = Client { app, caller: Arc::new(caller), outgoing, threads: HashMap::new(), thread_list: None };
    let close = client.run(&mut stream).await;
    // The writer ends when every subscription has sent its last message.
    if let (Some(frame), Ok(mut sink)) = (close, writer.await)
        && sink.send(Message::Close(Some(frame))).await.is_ok()
    {
        // Reads the client's remaining messages: closing a connection with unread data would discard the close frame.
        let closed = async { while let Some(Ok(_)) = stream.next().await {} };
        drop(tokio::time::timeout(CLOSE_TIMEOUT, closed).await);
    }
}

/// Whether a client's message is valid; for the fuzz targets.
pub(crate) fn is_valid_message(text: &str) -> bool {
    serde_json::from_str::<ClientMessage>(text).is_ok()
}

type Outgoing = SplitSink<WebSocket, Message>;

async fn write(mut sink: Outgoing, mut receiver: mpsc::Receiver<Message>) -> Outgoing {
    while let Some(message) = receiver.recv().await {
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
    /// The subscription to the list of threads.
    thread_list: Option<AbortHandle>,
}

impl Client {
    /// Executes the client's messages until one side closes the connection. Returns the close frame to send.
    async fn run(mut self, stream: &mut SplitStream<WebSocket>) -> Option<CloseFrame> {
        let app = self.app.clone();
        let mut stopped = std::pin::pin!(app.stopped());
        let heartbeat = app.options().heartbeat;
        let mut beats = tokio::time::interval_at(tokio::time::Instant::now() + heartbeat, heartbeat);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = &mut stopped => {
                    // Subscriptions stop as well, and send their end.
                    self.detach();
                    return Some(closed(close_code::AWAY, "shutdown"));
                }
                message = stream.next() => match message {
                    // Boxed: keeps the future of an idle socket small.
                    Some(Ok(Message::Text(text))) => Box::pin(self.execute(&text)).await,
                    Some(Ok(Message::Binary(_))) => self.send_error(None, &invalid_message("expected text")).await,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_))) | None => {
                        self.abandon();
                        return None;
                    }
                    Some(Err(error)) => {
                        self.abandon();
                        return Some(protocol_error(&error.to_string()));
                    }
                },
                _ = beats.tick() => {
                    if !Box::pin(self.caller.is_still_valid(&app)).await {
                        self.abandon();
                        return Some(closed(close_code::POLICY, "key_revoked"));
                    }
                    // Not needed while the buffer is full: writing to a dead connection fails.
                    drop(self.outgoing.try_send(Message::Ping(bytes::Bytes::new())));
                }
            }
        }
    }

    async fn execute(&mut self, text: &str) {
        let request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => return self.send_error(None, &invalid_message(&error.to_string())).await,
        };
        match request {
            ClientMessage::Subscribe { thread, after, last, roles } => {
                if let Err(error) = self.subscribe(&thread, after, last, roles).await {
                    self.send_error(Some(&thread), &error).await;
                }
            }
            ClientMessage::Unsubscribe { thread } => {
                let subscription = thread.parse().ok().and_then(|thread| self.threads.remove(&thread));
                match subscription {
                    Some(subscription) => subscription.abort(),
                    None => self.send_error(Some(&thread), &ApiError::not_found("subscription")).await,
                }
            }
            ClientMessage::SubscribeThreads { cursor, follow, roles } => {
                if let Err(error) = self.subscribe_threads(cursor, follow, roles).await {
                    self.send_error(None, &error).await;
                }
            }
            ClientMessage::UnsubscribeThreads => {
                if let Some(subscription) = self.thread_list.take() {
                    subscription.abort();
                }
            }
        }
    }

    async fn send_error(&self, thread: Option<&str>, error: &ApiError) {
        // Sending fails after the client has disconnected.
        drop(self.outgoing.send(error_message(thread, error)).await);
    }

    /// Drops the queue to the client, except for the subscriptions, which still send their end.
    fn detach(self) {
        drop(self.outgoing);
    }

    /// Aborts all subscriptions.
    fn abandon(self) {
        self.threads.values().chain(&self.thread_list).for_each(AbortHandle::abort);
    }
}

/// Returns the close frame for an invalid frame. It is also returned, without effect, if the connection failed.
fn protocol_error(error: &str) -> CloseFrame {
    // The library reports a message that is too large only in the error's text.
    let code = if error.starts_with("Space limit exceeded") { close_code::SIZE } else { close_code::PROTOCOL };
    let reason: String = error.chars().filter(char::is_ascii).take(MAX_REASON_BYTES).collect();
    CloseFrame { code, reason: reason.into() }
}

fn closed(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame { code, reason: reason.into() }
}

fn invalid_message(error: &str) -> ApiError {
    ApiError::invalid("message", format!("invalid message: {error}"))
}
