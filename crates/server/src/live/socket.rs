use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::{IntoResponse, Response};
use axum::{Extension, http::StatusCode};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt, StreamExt};
use serde::{Deserialize, Serialize};
use threadkeep::core::{ChangedThread, UserCursor};
use threadkeep::memory::{ThreadsUpdate, ThreadsUpdates};
use threadkeep::{Role, Scope, Start, SubscribeOptions, ThreadId};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::MissedTickBehavior;

use super::following::Following;
use super::json::UpdateJson;
use super::listening::{Signal, listen};
use super::telling::Telling;
use crate::app::App;
use crate::connections::Held;
use crate::cursor;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::rest::json::message::RoleJson;
use crate::rest::json::thread::OwnerJson;
use crate::security::Caller;

/// Threads that one socket listens to at most.
const SUBSCRIPTIONS: usize = 1_000;
/// Bytes of what a client says at most.
const MESSAGE_BYTES: usize = 64 * 1024;
/// Bytes that are read or gathered at a time: sockets are many, and mostly idle.
const BUFFER_BYTES: usize = 4 * 1024;
/// How long a client may take to close its side.
const CLOSING: Duration = Duration::from_secs(1);
/// Updates of all threads that wait for the client at most.
const WAITING: usize = 16;

/// What a client says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    /// Listen to a thread, in place of an earlier subscription to it.
    Subscribe {
        thread: String,
        #[serde(default)]
        after: Option<u64>,
        #[serde(default)]
        last: Option<usize>,
        #[serde(default)]
        roles: Vec<RoleJson>,
    },
    Unsubscribe {
        thread: String,
    },
    /// Hear which of the caller's threads change, and, to follow them, what happens in each; in place of an earlier such
    /// subscription.
    SubscribeThreads {
        #[serde(default)]
        cursor: Option<String>,
        #[serde(default)]
        follow: bool,
        #[serde(default)]
        roles: Vec<RoleJson>,
    },
    UnsubscribeThreads,
}

/// What a client is told.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Told<'a> {
    Subscribed {
        r#type: &'static str,
        thread: ThreadId,
    },
    SubscribedThreads {
        r#type: &'static str,
        cursor: String,
    },
    Threads {
        r#type: &'static str,
        threads: Vec<ChangedJson>,
        cursor: String,
        reset: bool,
    },
    Error {
        r#type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thread: Option<&'a str>,
        error: ProblemJson<'a>,
    },
}

#[derive(Debug, Serialize)]
struct ProblemJson<'a> {
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
}

/// A thread that changed; without a change it was deleted.
#[derive(Debug, Serialize)]
struct ChangedJson {
    id: ThreadId,
    owner: OwnerJson,
    change: Option<u64>,
    seq: Option<u64>,
}

impl From<ChangedThread> for ChangedJson {
    fn from(thread: ChangedThread) -> Self {
        let ChangedThread { id, owner, positions } = thread;
        let (change, seq) = (positions.map(|positions| positions.change), positions.map(|positions| positions.seq));
        Self { id, owner: owner.into(), change, seq }
    }
}

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
    let client = Client { app, caller, outgoing, threads: HashMap::new(), all: None };
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
    caller: Caller,
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
                    Some(Ok(Message::Text(text))) => self.obey(&text).await,
                    Some(Ok(Message::Binary(_))) => self.tell_problem(None, &not_understood("send text")).await,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_)) | Err(_)) | None => {
                        self.abandon();
                        return None;
                    }
                },
                _ = beats.tick() => {
                    if !self.caller.is_still_good(&app).await {
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

    async fn subscribe(
        &mut self,
        thread: &str,
        after: Option<u64>,
        last: Option<usize>,
        roles: Vec<RoleJson>,
    ) -> Result<()> {
        let thread: ThreadId = thread.parse().map_err(|_| ApiError::not_found("thread"))?;
        let start = match (after, last) {
            (Some(_), Some(_)) => return Err(ApiError::invalid("last", "give `after` or `last`, not both")),
            (Some(change), None) => Start::After(change),
            (None, Some(last)) => Start::Last(last),
            (None, None) => Start::Now,
        };
        self.threads.retain(|_, subscription| !subscription.is_finished());
        if self.threads.len() >= SUBSCRIPTIONS {
            let message = format!("one socket listens to at most {SUBSCRIPTIONS} threads");
            return Err(ApiError::invalid("thread", message).code("limit_exceeded"));
        }
        let roles: Vec<Role> = roles.into_iter().map(Into::into).collect();
        let options = SubscribeOptions { start, roles };
        let updates = self.app.memory().subscribe(&self.caller.scope, thread, options).await?;
        let mut signals = listen(&self.app, &self.caller, thread, updates);
        let outgoing = self.outgoing.clone();
        let subscription = tokio::spawn(async move {
            let subscribed = text(&Told::Subscribed { r#type: "subscribed", thread });
            if outgoing.send(subscribed).await.is_err() {
                return;
            }
            while let Some(signal) = signals.recv().await {
                // The socket has a heartbeat of its own.
                let Signal::Update(told) = signal else { continue };
                if outgoing.send(Message::Text(told.text(thread))).await.is_err() {
                    return;
                }
            }
        });
        if let Some(earlier) = self.threads.insert(thread, subscription.abort_handle()) {
            earlier.abort();
        }
        Ok(())
    }

    async fn subscribe_threads(&mut self, cursor: Option<String>, follow: bool, roles: Vec<RoleJson>) -> Result<()> {
        if !follow && !roles.is_empty() {
            return Err(ApiError::invalid(
                "roles",
                "roles choose what is heard of threads that one follows: add `follow`",
            ));
        }
        let scope = self.caller.scope.clone();
        let given = cursor.map(|cursor| cursor::take(&scope, LIST, "cursor", &cursor)).transpose()?.map(UserCursor);
        let is_new = given.is_none();
        let cursor = match given {
            Some(cursor) => cursor,
            None => self.app.memory().present_cursor(&scope).await?,
        };
        let roles = roles.into_iter().map(Into::into).collect();
        let following = match follow {
            true => Some(Following::begin(&self.app, &scope, roles, is_new).await?),
            false => None,
        };
        let updates = self.app.memory().subscribe_threads(&scope, Some(cursor.clone())).await?;
        let (outgoing, app) = (self.outgoing.clone(), self.app.clone());
        let subscription = tokio::spawn(async move {
            let cursor = cursor::give(&scope, LIST, &cursor.0);
            let subscribed = text(&Told::SubscribedThreads { r#type: "subscribed_threads", cursor });
            if outgoing.send(subscribed).await.is_ok() {
                let mut stopped = std::pin::pin!(app.stopped());
                tokio::select! {
                    () = &mut stopped => {}
                    _ = tell_threads(&scope, updates, following, &outgoing) => {}
                }
            }
        });
        if let Some(earlier) = self.all.replace(subscription.abort_handle()) {
            earlier.abort();
        }
        Ok(())
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

/// Tells which threads change, after what happened in those that are followed: whoever has a cursor has heard all before it.
async fn tell_threads(
    scope: &Scope,
    mut updates: ThreadsUpdates,
    mut following: Option<Following>,
    outgoing: &mpsc::Sender<Message>,
) -> Result<(), mpsc::error::SendError<Message>> {
    while let Some(update) = updates.next().await {
        let ThreadsUpdate { threads, cursor, reset } = match update {
            Ok(update) => update,
            Err(error) => return outgoing.send(problem(None, &error.into())).await,
        };
        for changed in &threads {
            let Some(following) = &mut following else { break };
            while let Some(updates) = following.read(changed).await {
                for update in &updates {
                    outgoing.send(Message::Text(Telling::of(update).text(changed.id))).await?;
                }
                // What cannot be read now is tried again with the thread's next change.
                if matches!(updates.last(), Some(UpdateJson::End(_))) {
                    break;
                }
            }
        }
        let cursor = cursor::give(scope, LIST, &cursor.0);
        let threads = threads.into_iter().map(Into::into).collect();
        outgoing.send(text(&Told::Threads { r#type: "threads", threads, cursor, reset })).await?;
    }
    Ok(())
}

fn problem(thread: Option<&str>, error: &ApiError) -> Message {
    let error = ProblemJson { code: error.code, message: &error.message, param: error.param.as_deref() };
    text(&Told::Error { r#type: "error", thread, error })
}

/// The name of the list that cursors of `subscribe_threads` belong to.
const LIST: &str = "live threads";

fn text(told: &Told<'_>) -> Message {
    Message::Text(serde_json::to_string(told).unwrap_or_default().into())
}

fn closed(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame { code, reason: reason.into() }
}

fn not_understood(why: &str) -> ApiError {
    ApiError::invalid("message", format!("not understood: {why}"))
}
