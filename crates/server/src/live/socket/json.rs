//! The messages that a WebSocket client sends, and the messages of the server other than updates.

use axum::extract::ws::Message;
use serde::{Deserialize, Deserializer, Serialize};
use threadkeep::ThreadId;
use threadkeep::core::{ChangedThread, TaggedNumber};
use threadkeep_api::message::RoleJson;
use threadkeep_api::thread::OwnerJson;

use crate::error::ApiError;
use crate::input::{optional_whole_number, whole_number};

/// A message from the client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ClientMessage {
    /// Subscribes to a thread. Replaces an earlier subscription to the thread.
    Subscribe(SubscribeJson),
    Unsubscribe {
        thread: String,
    },
    /// Subscribes to the list of the caller's threads that change and, with `follow`, to the updates of each thread. Replaces an
    /// earlier subscription to the list.
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

/// A subscription to a thread.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SubscribeJson {
    pub(super) thread: String,
    #[serde(default, deserialize_with = "read_position")]
    pub(super) after: Option<TaggedNumber>,
    #[serde(default, deserialize_with = "optional_whole_number")]
    pub(super) last: Option<usize>,
    #[serde(default)]
    pub(super) roles: Vec<RoleJson>,
    /// The assistant whose notices are also sent.
    #[serde(default)]
    pub(super) assistant: Option<String>,
    /// Only these topics of the assistant.
    #[serde(default)]
    pub(super) topics: Vec<String>,
}

/// Reads the id of an event, or the number of a change.
fn read_position<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<TaggedNumber>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected an event's id or the number of a change")]
    enum Position {
        #[serde(deserialize_with = "whole_number")]
        Change(u64),
        Id(String),
    }
    Ok(match Option::deserialize(deserializer)? {
        None => None,
        Some(Position::Change(change)) => Some(change.into()),
        Some(Position::Id(id)) => Some(id.parse().map_err(serde::de::Error::custom)?),
    })
}

/// A message from the server.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum ServerMessage<'a> {
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
        threads: Vec<ChangedThreadJson>,
        cursor: String,
        reset: bool,
    },
    Error {
        r#type: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        thread: Option<&'a str>,
        error: ErrorJson<'a>,
    },
}

#[derive(Debug, Serialize)]
pub(super) struct ErrorJson<'a> {
    code: &'a str,
    message: &'a str,
    param: Option<&'a str>,
}

/// A changed thread. If `change` is null, the thread was deleted.
#[derive(Debug, Serialize)]
pub(super) struct ChangedThreadJson {
    id: ThreadId,
    owner: OwnerJson,
    change: Option<u64>,
    seq: Option<u64>,
}

impl From<ChangedThread> for ChangedThreadJson {
    fn from(thread: ChangedThread) -> Self {
        let ChangedThread { id, owner, positions } = thread;
        let (change, seq) = (positions.map(|positions| positions.change), positions.map(|positions| positions.seq));
        Self { id, owner: owner.into(), change, seq }
    }
}

pub(super) fn error_message(thread: Option<&str>, error: &ApiError) -> Message {
    let error = ErrorJson { code: error.code, message: &error.message, param: error.param.as_deref() };
    encode_message(&ServerMessage::Error { r#type: "error", thread, error })
}

pub(super) fn encode_message(message: &ServerMessage<'_>) -> Message {
    Message::Text(serde_json::to_string(message).unwrap_or_default().into())
}
