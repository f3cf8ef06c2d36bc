//! Conversations: threads as this wire knows them.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod retrieve;
pub(crate) mod update;

use serde::Serialize;
use threadkeep::{Map, Thread, Value};
use utoipa::ToSchema;

use super::ids;
use crate::error::ApiError;

const PAIRS: usize = 16;
const KEY_CHARACTERS: usize = 64;
const VALUE_CHARACTERS: usize = 512;

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
        // Other doors keep any JSON there; here values are texts.
        let as_text = |(name, value): (String, Value)| match value {
            Value::String(_) => (name, value),
            other => (name, Value::String(other.to_string())),
        };
        let metadata = thread.metadata.into_iter().map(as_text).collect();
        let created_at = thread.created_at.as_millis().div_euclid(1000);
        Self { id: ids::conversation(thread.id), object: "conversation", created_at, metadata }
    }
}

/// Checks metadata as this wire bounds it.
pub(super) fn checked(metadata: Option<Map>) -> Result<Map, ApiError> {
    let metadata = metadata.unwrap_or_default();
    let is_fine = metadata.len() <= PAIRS
        && metadata.iter().all(|(key, value)| {
            let value = value.as_str().map(|value| value.chars().count());
            key.chars().count() <= KEY_CHARACTERS && value.is_some_and(|length| length <= VALUE_CHARACTERS)
        });
    if is_fine {
        return Ok(metadata);
    }
    let message = format!(
        "Invalid 'metadata': at most {PAIRS} pairs, keys of at most {KEY_CHARACTERS} and texts of at most {VALUE_CHARACTERS} characters."
    );
    Err(ApiError::invalid("metadata", message))
}
