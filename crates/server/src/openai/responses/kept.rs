//! Responses without a conversation: documents of the caller.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use threadkeep::{Draft, JsonText, MessageName, Scope, Value};

use super::PREFIX;
use crate::app::App;
use crate::error::ApiError;
use crate::openai::ids;
use crate::openai::items::{self, Item};
use crate::openai::shelf::Shelf;
use crate::openai::turn;

/// A response with what it answered.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    /// Of the request that it answers.
    pub(super) digest: String,
    /// The response as it was told.
    pub(super) response: JsonText,
    pub(super) input: Vec<JsonText>,
    pub(super) output: Vec<JsonText>,
    pub(super) previous: Option<String>,
    /// The lengths of the pieces in which its words were told, where they were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) cuts: Vec<u32>,
}

const SHELF: Shelf = Shelf::new("openai.responses");

/// Keeps a response.
pub(super) async fn write(app: &App, scope: &Scope, id: &str, kept: &Kept) -> Result<(), ApiError> {
    SHELF.write(app, scope, id, kept).await
}

/// Forgets a response.
pub(super) async fn forget(app: &App, scope: &Scope, id: &str) -> Result<(), ApiError> {
    SHELF.delete(app, scope, id).await
}

pub(super) async fn find(app: &App, scope: &Scope, id: &str) -> Result<Option<Kept>, ApiError> {
    SHELF.find(app, scope, id).await
}

/// An item that a response gave, by its id.
pub(in crate::openai) async fn find_item(app: &App, scope: &Scope, item: &str) -> Result<Option<Draft>, ApiError> {
    let Some((MessageName::Id(message), _)) = ids::message(item) else { return Ok(None) };
    let response = format!("{PREFIX}{}", turn::family(message.0.simple()));
    let Some(kept) = find(app, scope, &response).await? else { return Ok(None) };
    let is_it = |json: &&JsonText| json.read::<Value>().is_ok_and(|known| known["id"] == item);
    kept.output.iter().find(is_it).map(draft).transpose()
}

/// An item as it is kept.
pub(super) fn draft(item: &JsonText) -> Result<Draft, ApiError> {
    let raw: &RawValue =
        serde_json::from_str(item.as_str()).map_err(|_| ApiError::internal("a kept item is no JSON"))?;
    items::read(raw, "input")
}

/// Items as they are kept.
pub(super) fn texts(items: &[Item]) -> Result<Vec<JsonText>, ApiError> {
    Ok(items.iter().map(|item| JsonText::new(item.json.clone())).collect::<Result<_, _>>()?)
}
