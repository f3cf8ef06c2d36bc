use serde::Deserialize;
use threadkeep::{Content, Draft, JsonText, Map, MessageId, Part, Timestamp, Value};
use threadkeep_api::message::RoleJson;
use threadkeep_api::part::{PartJson, SourceJson, UsageJson};
use utoipa::ToSchema;

use super::wire::{self, MessageTypeJson};
use crate::error::ApiError;

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
