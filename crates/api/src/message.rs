use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use threadkeep::core::{ChatMessage, CorruptRow};
use threadkeep::{Content, JsonText, Map, Message, MessageId, Role, Timestamp};
use utoipa::ToSchema;

use crate::part::{PartJson, SourceJson, UsageJson, is_empty};

/// The role of a message's author.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleJson {
    /// The application's instructions.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// A tool that returns its result.
    Tool,
}

/// A message of a thread.
#[derive(Debug, Serialize, ToSchema)]
pub struct MessageJson<'a> {
    /// The 1-based position in the thread.
    seq: u64,
    #[schema(value_type = String, format = Uuid)]
    id: MessageId,
    /// The id that the message has in its source.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<&'a str>,
    role: RoleJson,
    /// The author's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    /// All text parts, joined.
    text: Cow<'a, str>,
    parts: Vec<PartJson<'a>>,
    /// The agent that wrote the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    /// Data that the assistant stores with the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    data: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<SourceJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageJson<'a>>,
    /// Data of the application.
    #[serde(skip_serializing_if = "is_empty")]
    #[schema(value_type = Object)]
    metadata: &'a Map,
    /// The number of times that the content was replaced.
    revision: u32,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
}

/// A message for a model.
#[derive(Debug, Serialize, ToSchema)]
pub struct ContextMessageJson<'a> {
    role: RoleJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    parts: Vec<PartJson<'a>>,
    /// The position, if this is a message of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

/// A message that cannot be decoded.
#[derive(Debug, Serialize, ToSchema)]
pub struct UnreadableJson<'a> {
    seq: u64,
    reason: &'a str,
}

impl<'a> From<&'a CorruptRow> for UnreadableJson<'a> {
    fn from(row: &'a CorruptRow) -> Self {
        Self { seq: row.seq, reason: &row.detail }
    }
}

impl From<Role> for RoleJson {
    fn from(role: Role) -> Self {
        match role {
            Role::System => Self::System,
            Role::User => Self::User,
            Role::Assistant => Self::Assistant,
            Role::Tool => Self::Tool,
        }
    }
}

impl From<RoleJson> for Role {
    fn from(role: RoleJson) -> Self {
        match role {
            RoleJson::System => Self::System,
            RoleJson::User => Self::User,
            RoleJson::Assistant => Self::Assistant,
            RoleJson::Tool => Self::Tool,
        }
    }
}

impl<'a> From<&'a Message> for MessageJson<'a> {
    fn from(message: &'a Message) -> Self {
        let Message { seq, id, external_id, revision, created_at, content } = message;
        let Content { role, author, parts, agent, data, sources, usage, metadata } = content;
        Self {
            seq: *seq,
            id: *id,
            external_id: external_id.as_deref(),
            role: (*role).into(),
            author: author.as_deref(),
            text: message.plain_text(),
            parts: parts.iter().map(Into::into).collect(),
            agent: agent.as_deref(),
            data: data.as_ref(),
            sources: sources.iter().map(Into::into).collect(),
            usage: usage.as_ref().map(Into::into),
            metadata,
            revision: *revision,
            created_at: *created_at,
        }
    }
}

impl<'a> From<&'a ChatMessage> for ContextMessageJson<'a> {
    fn from(message: &'a ChatMessage) -> Self {
        let ChatMessage { role, author, parts, seq } = message;
        let (author, parts) = (author.as_deref(), parts.iter().map(Into::into).collect());
        Self { role: (*role).into(), author, parts, seq: *seq }
    }
}
