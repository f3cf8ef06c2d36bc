//! Conversations. This API represents each thread as a conversation.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod retrieve;
pub(crate) mod update;

use serde::Serialize;
use threadkeep::{Map, Thread, Value};
use utoipa::ToSchema;

use super::ids;
use crate::error::ApiError;

const MAX_PAIRS: usize = 16;
const MAX_KEY_CHARACTERS: usize = 64;
const MAX_VALUE_CHARACTERS: usize = 512;

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConversationJson {
    id: String,
    object: &'static str,
    /// Seconds since 1970.
    created_at: i64,
    #[schema(value_type = Object)]
    metadata: Map,
}

impl From<Thread> for ConversationJson {
    fn from(thread: Thread) -> Self {
        // Other APIs allow any JSON value as metadata, but this API allows only strings.
        let as_string = |(name, value): (String, Value)| match value {
            Value::String(_) => (name, value),
            other => (name, Value::String(other.to_string())),
        };
        let metadata = thread.metadata.into_iter().map(as_string).collect();
        let created_at = thread.created_at.as_millis().div_euclid(1000);
        Self { id: ids::conversation_id(thread.id), object: "conversation", created_at, metadata }
    }
}

/// Checks metadata against the limits of this API. Missing metadata is returned as empty.
pub(super) fn check_metadata(metadata: Option<Map>) -> Result<Map, ApiError> {
    let metadata = metadata.unwrap_or_default();
    let is_valid = metadata.len() <= MAX_PAIRS
        && metadata.iter().all(|(key, value)| {
            let value = value.as_str().map(|value| value.chars().count());
            key.chars().count() <= MAX_KEY_CHARACTERS && value.is_some_and(|length| length <= MAX_VALUE_CHARACTERS)
        });
    if is_valid {
        return Ok(metadata);
    }
    let message = format!(
        "Invalid 'metadata': expected at most {MAX_PAIRS} pairs, with keys of at most {MAX_KEY_CHARACTERS} and string values of at most {MAX_VALUE_CHARACTERS} characters."
    );
    Err(ApiError::invalid("metadata", message))
}
