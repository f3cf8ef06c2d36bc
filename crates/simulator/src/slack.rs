//! A Slack workspace: the methods of the Web API that bots use, and a sender of signed events.
//!
//! The server checks tokens and the shapes of arguments as Slack does, and returns Slack's error codes. It keeps messages in
//! memory. Events and interactions are sent to the URLs of an app, each with a signature, or over the WebSockets that an app in
//! Socket Mode has opened; an event that is not acknowledged is sent again.

mod events;
mod files;
mod methods;
mod socket;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use axum::routing::{any, get, post};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::lock;
pub use events::{App, Delivery, sign};
pub use files::File;

/// The token with which the app opens connections in Socket Mode.
pub const APP_TOKEN: &str = "xapp-1-local-app";
/// The token with which the app makes its other calls.
pub const BOT_TOKEN: &str = "xoxb-local-workspace";
/// The secret that signs events.
pub const SIGNING_SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
/// The user id of the bot.
pub const BOT_USER: &str = "U0BOT";
/// The bot id.
pub const BOT_ID: &str = "B0BOT";
/// The id of the workspace.
pub const TEAM: &str = "T0LOCAL";

/// A message in a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// The channel.
    pub channel: String,
    /// The time, which identifies the message in its channel.
    pub ts: String,
    /// The root of the thread, for a reply.
    pub thread_ts: Option<String>,
    /// The author.
    pub user: String,
    /// The text, in Slack's markup.
    pub text: String,
    /// The blocks; null if there are none.
    pub blocks: Value,
    /// The metadata; null if there is none.
    pub metadata: Value,
    /// The uploaded files that the message shares.
    pub files: Vec<File>,
    /// Whether the message was changed after it was posted.
    pub is_edited: bool,
}

impl Message {
    /// Whether the bot wrote the message.
    #[must_use]
    pub fn is_from_bot(&self) -> bool {
        self.user == BOT_USER
    }
}

/// A call of the Web API.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiCall {
    /// The method: `chat.postMessage`.
    pub method: String,
    /// The arguments.
    pub arguments: BTreeMap<String, Value>,
}

#[derive(Debug, Default)]
struct Workspace {
    messages: Vec<Message>,
    calls: Vec<ApiCall>,
    /// The number of timestamps generated.
    ticks: u64,
    events: u64,
    /// The number of calls to reject with status 429, and their `Retry-After` in seconds.
    refusals: (usize, u64),
    /// Whether messages and calls are counted instead of kept.
    only_counts: bool,
    /// The number of messages of the bot.
    posts: u64,
    /// The methods that are refused, and their error codes.
    refused: BTreeMap<String, &'static str>,
    /// The files that are being uploaded, by id.
    uploads: BTreeMap<String, File>,
}

impl Workspace {
    fn next_ts(&mut self) -> String {
        self.ticks += 1;
        format!("{}.{:06}", 1_760_000_000 + self.ticks, 100)
    }
}

struct Shared {
    address: SocketAddr,
    workspace: Mutex<Workspace>,
    sockets: Mutex<socket::Sockets>,
    /// Counts changes, so that tests can wait for the next one.
    changed: watch::Sender<u64>,
}

/// A running workspace. It stops when it is dropped.
pub struct Slack {
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl std::fmt::Debug for Slack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Slack").field("address", &self.shared.address).finish_non_exhaustive()
    }
}

impl Drop for Slack {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Slack {
    /// Starts a workspace on a free port of this machine.
    ///
    /// # Errors
    /// No port can be opened.
    pub async fn start() -> std::io::Result<Self> {
        crate::install_provider();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let changed = watch::Sender::new(0);
        let shared = Arc::new(Shared { address, workspace: Mutex::default(), sockets: Mutex::default(), changed });
        let router = Router::new()
            .route("/api/{method}", any(serve))
            .route("/link/", get(socket::connect))
            .route("/upload/{id}", post(files::upload))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move { drop(axum::serve(listener, router).await) });
        Ok(Self { shared, serving })
    }

    /// Returns the URL of the Web API, with a trailing slash.
    #[must_use]
    pub fn api_url(&self) -> String {
        format!("http://{}/api/", self.shared.address)
    }

    /// Returns the messages of all channels, oldest first.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        lock(&self.shared.workspace).messages.clone()
    }

    /// Returns the calls of the Web API so far.
    #[must_use]
    pub fn calls(&self) -> Vec<ApiCall> {
        lock(&self.shared.workspace).calls.clone()
    }

    /// Rejects the next calls with status 429 and this `Retry-After`.
    pub fn limit(&self, calls: usize, retry_after: u64) {
        lock(&self.shared.workspace).refusals = (calls, retry_after);
    }

    /// Refuses all calls of a method with an error code, such as `missing_scope`.
    pub fn refuse(&self, method: &str, error: &'static str) {
        lock(&self.shared.workspace).refused.insert(method.to_owned(), error);
    }

    /// From now on, only counts messages and calls instead of keeping them, so that memory stays bounded.
    pub fn keep_only_counts(&self) {
        lock(&self.shared.workspace).only_counts = true;
    }

    /// Waits until the bot has posted a number of messages.
    pub async fn wait_for_posts(&self, count: u64) {
        let mut changed = self.shared.changed.subscribe();
        while lock(&self.shared.workspace).posts < count {
            // The sender lives as long as this workspace.
            drop(changed.changed().await);
        }
    }

    /// Waits for a call of the Web API that satisfies a condition.
    pub async fn wait_for_call(&self, mut condition: impl FnMut(&ApiCall) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        while !self.calls().iter().any(&mut condition) {
            // The sender lives as long as this workspace.
            drop(changed.changed().await);
        }
    }

    /// Waits until the messages satisfy a condition, and returns its result.
    pub async fn wait_for<T>(&self, mut condition: impl FnMut(&[Message]) -> Option<T>) -> T {
        let mut changed = self.shared.changed.subscribe();
        loop {
            if let Some(found) = condition(&self.messages()) {
                return found;
            }
            // The sender lives as long as this workspace.
            drop(changed.changed().await);
        }
    }
}

impl Shared {
    fn notify(&self) {
        self.changed.send_modify(|count| *count += 1);
    }
}

async fn serve(
    State(shared): State<Arc<Shared>>,
    Path(method): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let refusal = {
        let mut workspace = lock(&shared.workspace);
        let (left, seconds) = workspace.refusals;
        workspace.refusals.0 = left.saturating_sub(1);
        (left > 0).then_some(seconds)
    };
    let (status, answer) = match refusal {
        Some(_) => (StatusCode::TOO_MANY_REQUESTS, json!({ "ok": false, "error": "ratelimited" })),
        None => (StatusCode::OK, methods::answer(&shared, &method, &headers, &query.unwrap_or_default(), &body)),
    };
    let mut response = Response::new(axum::body::Body::from(answer.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json; charset=utf-8"));
    if let Some(seconds) = refusal {
        response.headers_mut().insert("retry-after", HeaderValue::from(seconds));
    }
    response
}
