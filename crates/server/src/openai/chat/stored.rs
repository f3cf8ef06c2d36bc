//! Completions that are stored because the client requested it (`store`).

pub(crate) mod delete;
pub(crate) mod list;
pub(crate) mod messages;
pub(crate) mod retrieve;
pub(crate) mod update;

use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use threadkeep::{JsonText, Map, Scope, Value};

use super::complete::PREFIX;
use crate::app::App;
use crate::error::{ApiError, Result};
use crate::openai::response_store::ResponseStore;

const STORE: ResponseStore = ResponseStore::new("openai.completions");

/// A stored completion with the messages of its request.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredCompletion {
    completion: JsonText,
    messages: Vec<JsonText>,
    metadata: Map,
}

impl StoredCompletion {
    /// Returns the JSON of the completion, with its metadata.
    fn to_json(&self) -> Result<Value> {
        let mut json: Value = self.completion.read()?;
        json["metadata"] = self.metadata.clone().into();
        Ok(json)
    }
}

/// Stores a completion.
pub(super) async fn write(
    app: &App,
    scope: &Scope,
    completion: &Value,
    messages: &[Box<RawValue>],
    metadata: Map,
) -> Result<()> {
    let id = completion["id"].as_str().unwrap_or_default();
    let messages = messages.iter().map(|message| JsonText::new(message.get())).collect::<Result<_, _>>()?;
    let stored = StoredCompletion { completion: JsonText::from(completion), messages, metadata };
    STORE.write(app, scope, id, &stored).await
}

/// Finds a stored completion. An invalid id is reported as not found.
async fn find(app: &App, scope: &Scope, id: &str) -> Result<StoredCompletion> {
    let digits = id.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let found = match digits.filter(|digits| digits.len() == 32) {
        Some(_) => STORE.find(app, scope, id).await?,
        None => None,
    };
    found.ok_or_else(|| {
        let id: String = id.chars().take(200).collect();
        ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Completion with id '{id}' not found."))
    })
}
