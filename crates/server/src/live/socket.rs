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
use threadkeep::core::plain_json_error;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use crate::app::App;
use crate::connections::ConnectionGuard;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::security::Caller;
use crate::thread_names;
use json::{ClientMessage, error_message};

/// The maximum size of a message from a client, in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
/// The size of the read and write buffers, in bytes. It is small, because there are many sockets, most of which are idle.
const BUFFER_BYTES: usize = 4 * 1024;
/// The maximum length of the reason in a close frame, in bytes (RFC 6455).
const MAX_REASON_BYTES: usize = 123;
/// How long to wait for the client's close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum number of messages that are buffered for a client.
const BUFFERED_MESSAGES: usize = 16;

/// Opens a WebSocket for subscriptions to several threads
///
/// The client sends `{"type": "subscribe", "thread": ID, "after"?, "last"?, "roles"?, "assistant"?, "topics"?}`, `unsubscribe`,
/// `subscribe_threads` (`cursor`?, `follow`?, `roles`?) and `unsubscribe_threads`; see docs/server.md for the server's messages.
#[utoipa::path(
    get,
    path = "/v1/live",
    operation_id = "open_live_socket",
    tag = "live",
    params(("token" = Option<String>, Query, description = "A token from `POST /v1/tokens`, instead of a header")),
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
        let message = "this endpoint is a WebSocket; request an upgrade of the connection";
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
            // A stopping server waits until this guard is dropped.
            drop(connection);
        })
        .into_response())
}

async fn run(socket: WebSocket, app: App, caller: Caller) {
    let (sink, mut stream) = socket.split();
    let (outgoing, receiver) = mpsc::channel(BUFFERED_MESSAGES);
    let writer = tokio::spawn(write_messages(sink, receiver));
    let client = Client { app, caller: Arc::new(caller), outgoing, threads: HashMap::new(), thread_list: None };
    let close = client.run(&mut stream).await;
    // The writer ends when every subscription has sent its last message.
    if let (Some(frame), Ok(mut sink)) = (close, writer.await)
        && sink.send(Message::Close(Some(frame))).await.is_ok()
    {
        // Reads the client's remaining messages, because closing a connection with unread data would discard the close frame.
        let drain = async { while let Some(Ok(_)) = stream.next().await {} };
        drop(tokio::time::timeout(CLOSE_TIMEOUT, drain).await);
    }
}

/// Whether a message from a client is valid. For the fuzz targets.
pub(crate) fn is_valid_message(text: &str) -> bool {
    serde_json::from_str::<ClientMessage>(text).is_ok()
}

type Outgoing = SplitSink<WebSocket, Message>;

/// Sends messages to the client until the queue is closed or sending fails.
async fn write_messages(mut sink: Outgoing, mut receiver: mpsc::Receiver<Message>) -> Outgoing {
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
    /// The subscriptions to single threads.
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
                    // The subscriptions stop as well, and send their last messages.
                    self.detach();
                    return Some(close_frame(close_code::AWAY, "shutdown"));
                }
                message = stream.next() => match message {
                    // Boxed, so that the future of an idle socket stays small.
                    Some(Ok(Message::Text(text))) => Box::pin(self.execute(&text)).await,
                    Some(Ok(Message::Binary(_))) => self.send_error(None, &invalid_message("expected text")).await,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_))) | None => {
                        self.abort_subscriptions();
                        return None;
                    }
                    Some(Err(error)) => {
                        self.abort_subscriptions();
                        return Some(protocol_error(&error.to_string()));
                    }
                },
                _ = beats.tick() => {
                    if !Box::pin(self.caller.is_still_valid(&app)).await {
                        self.abort_subscriptions();
                        return Some(close_frame(close_code::POLICY, "key_revoked"));
                    }
                    // While the buffer is full, no ping is needed, because writing to a dead connection fails.
                    drop(self.outgoing.try_send(Message::Ping(bytes::Bytes::new())));
                }
            }
        }
    }

    /// Executes a message from the client.
    async fn execute(&mut self, text: &str) {
        let request = match serde_json::from_str(text) {
            Ok(request) => request,
            Err(error) => return self.send_error(None, &invalid_message(&plain_json_error(&error.to_string()))).await,
        };
        match request {
            ClientMessage::Subscribe(request) => {
                let thread = request.thread.clone();
                if let Err(error) = self.subscribe(request).await {
                    self.send_error(Some(&thread), &error).await;
                }
            }
            ClientMessage::Unsubscribe { thread } => {
                let named = thread_names::resolve(&self.app, &self.caller.scope, &thread).await;
                let subscription = named.ok().and_then(|thread| self.threads.remove(&thread));
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

    /// Drops this handle of the queue to the client. The subscriptions keep their handles, to send their last messages.
    fn detach(self) {
        drop(self.outgoing);
    }

    fn abort_subscriptions(self) {
        self.threads.values().chain(&self.thread_list).for_each(AbortHandle::abort);
    }
}

/// Returns the close frame for an error of the stream. The error is either an invalid frame, or a failed connection, on which
/// sending the close frame has no effect.
fn protocol_error(error: &str) -> CloseFrame {
    // The library reports only in the text of the error that a message is too large or not UTF-8.
    let code = match error {
        error if error.starts_with("Space limit exceeded") => close_code::SIZE,
        error if error.starts_with("UTF-8") => close_code::INVALID,
        _ => close_code::PROTOCOL,
    };
    let reason: String = error.chars().filter(char::is_ascii).take(MAX_REASON_BYTES).collect();
    CloseFrame { code, reason: reason.into() }
}

fn close_frame(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame { code, reason: reason.into() }
}

fn invalid_message(error: &str) -> ApiError {
    ApiError::invalid("message", format!("invalid message: {error}"))
}
