//! Slack as a door to the server.
//!
//! [`door`] returns the door. Slack sends events and interactions to its endpoints, each with a signature, or over a WebSocket that
//! the door opens ([`EventSource`]). Each event and interaction is stored in an inbox before it is acknowledged; then a worker
//! processes it. If an instance ends, another one takes over its requests. Each conversation is a thread of the workspace's tenant,
//! with the key that [`conversation_key`] returns. An approval request is posted as a message with buttons; users decide with the
//! buttons or with reactions.
#![warn(missing_docs)]

mod answer;
mod api;
mod approvals;
mod events;
mod inbox;
mod markup;
mod messages;
mod post;
mod routes;
mod socket;
mod worker;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use threadkeep_server::Door;

pub use events::conversation_key;
pub use routes::{EVENTS_PATH, INTERACTIONS_PATH};
use worker::Worker;

/// How events and interactions arrive.
#[derive(Clone, PartialEq, Eq)]
pub enum EventSource {
    /// Slack sends requests to the endpoints of the door.
    Requests {
        /// The app's signing secret.
        signing_secret: String,
    },
    /// Slack sends messages over a WebSocket that the door opens. The server needs no public URL.
    SocketMode {
        /// The app-level token, with the permission `connections:write`.
        app_token: String,
    },
}

/// The options of the door.
#[derive(Clone)]
pub struct SlackOptions {
    /// How events and interactions arrive.
    pub source: EventSource,
    /// The bot tokens, one for each workspace.
    pub bot_tokens: Vec<String>,
    /// The URL of the Web API. Default: Slack's.
    pub api_url: String,
    /// The name of the assistant that answers.
    pub assistant: String,
    /// Whether the bot also answers channel messages that do not mention it. Default: `false`.
    pub answers_all: bool,
    /// Whether conversations are remembered. Default: `true`.
    pub remembers: bool,
    /// Whether users may approve their own requests. Default: `true`.
    pub requester_may_approve: bool,
    /// The minimum time between messages in a channel. Default: 1 s.
    pub post_interval: Duration,
    /// The minimum time between changes of unfinished answers in a workspace, and the time after which the first words of an answer
    /// are shown. Default: 1.5 s, because Slack allows about 50 changes a minute.
    pub growth_interval: Duration,
}

impl SlackOptions {
    /// The URL of Slack's Web API.
    pub const API_URL: &'static str = "https://slack.com/api/";

    /// Creates options with the defaults.
    #[must_use]
    pub fn new(source: EventSource, bot_tokens: Vec<String>, assistant: impl Into<String>) -> Self {
        Self {
            source,
            bot_tokens,
            api_url: Self::API_URL.to_owned(),
            assistant: assistant.into(),
            answers_all: false,
            remembers: true,
            requester_may_approve: true,
            post_interval: Duration::from_secs(1),
            growth_interval: Duration::from_millis(1_500),
        }
    }
}

/// Prints no secrets.
impl fmt::Debug for EventSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Requests { .. } => "Requests",
            Self::SocketMode { .. } => "SocketMode",
        })
    }
}

/// Prints no secrets.
impl fmt::Debug for SlackOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SlackOptions")
            .field("source", &self.source)
            .field("api_url", &self.api_url)
            .field("assistant", &self.assistant)
            .field("workspaces", &self.bot_tokens.len())
            .finish_non_exhaustive()
    }
}

/// Why the door cannot be created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SlackError {
    /// The signing secret is empty.
    #[error("the signing secret of the Slack app is empty")]
    NoSecret,
    /// The app-level token is empty, or a token of another kind.
    #[error("the Socket Mode token must be an app-level token, which starts with xapp-")]
    NoAppToken,
    /// There is no bot token.
    #[error("there is no bot token")]
    NoToken,
    /// The HTTP client cannot be created.
    #[error("cannot create an HTTP client: {0}")]
    Client(String),
}

/// Creates the door.
///
/// # Errors
/// The options have no secret or no token, or the system has no trusted certificates.
pub fn door(options: SlackOptions) -> Result<Door, SlackError> {
    match &options.source {
        EventSource::Requests { signing_secret } if signing_secret.is_empty() => return Err(SlackError::NoSecret),
        EventSource::SocketMode { app_token } if !app_token.starts_with("xapp-") => return Err(SlackError::NoAppToken),
        EventSource::Requests { .. } | EventSource::SocketMode { .. } => {}
    }
    if options.bot_tokens.is_empty() {
        return Err(SlackError::NoToken);
    }
    let worker = Arc::new(Worker::new(options)?);
    Ok(routes::door(worker))
}
