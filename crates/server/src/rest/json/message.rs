use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use threadkeep::core::{ChatMessage, CorruptRow};
use threadkeep::{Content, Draft, JsonText, Map, Message, MessageId, Part, Role, Timestamp};
use utoipa::ToSchema;

use super::part::{PartJson, SourceJson, UsageJson, is_empty};
use crate::error::ApiError;

/// Who speaks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RoleJson {
    /// The application's instructions.
    System,
    /// A person.
    User,
    /// The model.
    Assistant,
    /// A tool, with its result.
    Tool,
}

/// A message of a thread.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageJson<'a> {
    /// Its position: 1 is the thread's first.
    seq: u64,
    #[schema(value_type = String, format = Uuid)]
    id: MessageId,
    /// What its source calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<&'a str>,
    role: RoleJson,
    /// The speaker's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    author: Option<&'a str>,
    /// All words in one text.
    text: Cow<'a, str>,
    parts: Vec<PartJson<'a>>,
    /// Which agent wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<&'a str>,
    /// What the assistant keeps beside the words.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    data: Option<&'a JsonText>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sources: Vec<SourceJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<UsageJson<'a>>,
    /// The application's own notes.
    #[serde(skip_serializing_if = "is_empty")]
    #[schema(value_type = Object)]
    metadata: &'a Map,
    /// How often it was replaced.
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
    /// Its position, where it is a message of the thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    seq: Option<u64>,
}

/// What a message says. Its words are `text`, or `parts` where there is more than words.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContentJson {
    role: RoleJson,
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

/// A message on its way into a thread: what it says, and whatever else the application decides.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DraftJson {
    role: RoleJson,
    /// The words, where there is nothing else.
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
    /// Its id; one is made where there is none.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Uuid)]
    id: Option<MessageId>,
    /// What its source calls it, unique in the thread.
    #[serde(default)]
    external_id: Option<String>,
    /// When it was said; now where it is not given.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    created_at: Option<Timestamp>,
}

/// A message that does not decode.
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
        let ContentJson { role, text, parts, author, agent, data, sources, usage, metadata } = json;
        Ok(Self {
            role: role.into(),
            author,
            parts: words(text, parts)?,
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
        let DraftJson { role, text, parts, author, agent, data, sources, usage, metadata, .. } = json;
        let content = ContentJson { role, text, parts, author, agent, data, sources, usage, metadata };
        let (id, external_id, created_at) = (json.id, json.external_id, json.created_at);
        Ok(Self { content: content.try_into()?, id, external_id, created_at })
    }
}

fn words(text: Option<String>, parts: Option<Vec<PartJson<'_>>>) -> Result<Vec<Part>, ApiError> {
    match (text, parts) {
        (Some(_), Some(_)) => Err(ApiError::invalid("text", "give `text` or `parts`, not both")),
        (Some(text), None) => Ok(vec![Part::Text(text)]),
        (None, parts) => Ok(parts.unwrap_or_default().into_iter().map(Into::into).collect()),
    }
}
