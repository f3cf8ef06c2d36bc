//! What a client of the WebSocket says, and what it is told beside updates.

use axum::extract::ws::Message;
use serde::{Deserialize, Deserializer, Serialize};
use threadkeep::ThreadId;
use threadkeep::core::{ChangedThread, Tagged};

use crate::error::ApiError;
use crate::rest::json::message::RoleJson;
use crate::rest::json::thread::OwnerJson;

/// What a client says.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Request {
    /// Listen to a thread, in place of an earlier subscription to it.
    Subscribe {
        thread: String,
        #[serde(default, deserialize_with = "position")]
        after: Option<Tagged>,
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

/// An event's id, or a change alone.
fn position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Tagged>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected an event's id or a change")]
    enum Position {
        Change(u64),
        Id(String),
    }
    Ok(match Option::deserialize(deserializer)? {
        None => None,
        Some(Position::Change(change)) => Some(change.into()),
        Some(Position::Id(id)) => Some(id.parse().map_err(serde::de::Error::custom)?),
    })
}

/// What a client is told.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Told<'a> {
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
pub(super) struct ProblemJson<'a> {
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
}

/// A thread that changed; without a change it was deleted.
#[derive(Debug, Serialize)]
pub(super) struct ChangedJson {
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

pub(super) fn problem(thread: Option<&str>, error: &ApiError) -> Message {
    let error = ProblemJson { code: error.code, message: &error.message, param: error.param.as_deref() };
    text(&Told::Error { r#type: "error", thread, error })
}

pub(super) fn text(told: &Told<'_>) -> Message {
    Message::Text(serde_json::to_string(told).unwrap_or_default().into())
}
