//! Responses without a conversation, which are stored as records of the caller.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use threadkeep::{Draft, JsonText, MessageRef, Scope, Value};

use super::PREFIX;
use crate::app::App;
use crate::error::ApiError;
use crate::openai::ids;
use crate::openai::items::{self, Item};
use crate::openai::response_store::ResponseStore;
use crate::openai::turn;

/// A stored response with its input.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredResponse {
    /// The digest of the request.
    pub(super) digest: String,
    /// The response as it was returned.
    pub(super) response: JsonText,
    pub(super) input: Vec<JsonText>,
    pub(super) output: Vec<JsonText>,
    /// The id of the response that this one continues.
    pub(super) previous: Option<String>,
    /// The lengths in bytes of the deltas in which the text was streamed; empty if the text was not streamed.
    #[serde(rename = "cuts", default, skip_serializing_if = "Vec::is_empty")]
    pub(super) delta_lengths: Vec<u32>,
}

pub(super) const STORE: ResponseStore = ResponseStore::new("openai.responses");

/// Stores a response.
pub(super) async fn write(app: &App, scope: &Scope, id: &str, response: &StoredResponse) -> Result<(), ApiError> {
    STORE.write(app, scope, id, response).await
}

/// Deletes a response.
pub(super) async fn delete(app: &App, scope: &Scope, id: &str) -> Result<(), ApiError> {
    STORE.delete(app, scope, id).await
}

pub(super) async fn find(app: &App, scope: &Scope, id: &str) -> Result<Option<StoredResponse>, ApiError> {
    STORE.find(app, scope, id).await
}

/// Finds an output item of a stored response by its id.
pub(in crate::openai) async fn find_item(app: &App, scope: &Scope, item: &str) -> Result<Option<Draft>, ApiError> {
    let Some((MessageRef::Id(message), _)) = ids::parse_item_id(item) else { return Ok(None) };
    let response_id = format!("{PREFIX}{}", turn::id_family(message.0.simple()));
    let Some(response) = find(app, scope, &response_id).await? else { return Ok(None) };
    let is_item = |json: &&JsonText| json.read::<Value>().is_ok_and(|stored| stored["id"] == item);
    response.output.iter().find(is_item).map(read_draft).transpose()
}

/// Converts a stored item into a message.
pub(super) fn read_draft(item: &JsonText) -> Result<Draft, ApiError> {
    let raw: &RawValue =
        serde_json::from_str(item.as_str()).map_err(|_| ApiError::internal("a stored item is not valid JSON"))?;
    items::read_item(raw, "input")
}

/// Converts items for storage.
pub(super) fn json_texts(items: &[Item]) -> Result<Vec<JsonText>, ApiError> {
    Ok(items.iter().map(|item| JsonText::new(item.json.clone())).collect::<Result<_, _>>()?)
}
