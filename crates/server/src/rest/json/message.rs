use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use threadkeep::core::{ChatMessage, CorruptRow};
use threadkeep::{Content, Draft, JsonText, Map, Message, MessageId, Part, Role, Timestamp, Value};
use utoipa::ToSchema;

use super::part::{PartJson, SourceJson, UsageJson, is_empty};
use super::wire::{self, MessageTypeJson};
use crate::error::ApiError;

/// The role of a message's author.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleJson {
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
pub(crate) struct MessageJson<'a> {
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
pub(crate) struct ContextMessageJson<'a> {
    role: RoleJson,
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    parts: Vec<PartJson<'a>>,
    /// The position, if this is a message of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

/// The content of a message: either `text`, or `parts` if there is more than text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentJson {
    role: RoleJson,
    #[serde(default)]
    #[expect(dead_code, reason = "only its value is checked")]
    r#type: Option<MessageTypeJson>,
    /// The content as in the OpenAI API, instead of `text` and `parts`: a string, or an array of parts that have a `type`.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    content: Option<Value>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    parts: Option<Vec<PartJson<'static>>>,
    #[serde(default)]
    author: Option<String>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    data: Option<JsonText>,
    #[serde(default)]
    sources: Vec<SourceJson<'static>>,
    #[serde(default)]
    usage: Option<UsageJson<'static>>,
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Map,
}

/// A new message: its content, and the properties that the application can set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DraftJson {
    role: RoleJson,
    #[serde(default)]
    r#type: Option<MessageTypeJson>,
    /// The content as in the OpenAI API, instead of `text` and `parts`: a string, or an array of parts that have a `type`.
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    content: Option<Value>,
    /// The text, if there are no other parts.
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    parts: Option<Vec<PartJson<'static>>>,
    #[serde(default)]
    author: Option<String>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    #[schema(value_type = Option<Value>)]
    data: Option<JsonText>,
    #[serde(default)]
    sources: Vec<SourceJson<'static>>,
    #[serde(default)]
    usage: Option<UsageJson<'static>>,
    #[serde(default)]
    #[schema(value_type = Object)]
    metadata: Map,
    /// The id of the message. Default: a new id.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Uuid)]
    id: Option<MessageId>,
    /// The id that the message has in its source, which is unique in the thread.
    #[serde(default)]
    external_id: Option<String>,
    /// When the message was written. Default: now.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Timestamp>,
}

/// A message that cannot be decoded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UnreadableJson<'a> {
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

impl TryFrom<ContentJson> for Content {
    type Error = ApiError;

    fn try_from(json: ContentJson) -> Result<Self, ApiError> {
        let ContentJson { role, content, text, parts, author, agent, data, sources, usage, metadata, .. } = json;
        Ok(Self {
            role: role.into(),
            author,
            parts: content_parts(content, text, parts)?,
            agent,
            data,
            sources: sources.into_iter().map(Into::into).collect(),
            usage: usage.map(Into::into),
            metadata,
        })
    }
}

impl TryFrom<DraftJson> for Draft {
    type Error = ApiError;

    fn try_from(json: DraftJson) -> Result<Self, ApiError> {
        let DraftJson { role, r#type, content, text, parts, author, agent, data, sources, usage, metadata, .. } = json;
        let content = ContentJson { role, r#type, content, text, parts, author, agent, data, sources, usage, metadata };
        let (id, external_id, created_at) = (json.id, json.external_id, json.created_at);
        Ok(Self { content: content.try_into()?, id, external_id, created_at })
    }
}

fn content_parts(
    content: Option<Value>,
    text: Option<String>,
    parts: Option<Vec<PartJson<'_>>>,
) -> Result<Vec<Part>, ApiError> {
    match (content, text, parts) {
        (Some(_), None, Some(_)) | (Some(_), Some(_), _) => {
            Err(ApiError::invalid("content", "`content` cannot be combined with `text` or `parts`"))
        }
        (Some(content), None, None) => wire::read_content(&content),
        (None, Some(_), Some(_)) => Err(ApiError::invalid("text", "`text` and `parts` are mutually exclusive")),
        (None, Some(text), None) => Ok(vec![Part::Text(text)]),
        (None, None, parts) => Ok(parts.unwrap_or_default().into_iter().map(Into::into).collect()),
    }
}
