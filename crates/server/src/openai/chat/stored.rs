//! Completions that are kept because their request says so (`store`).

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
use crate::openai::shelf::Shelf;

const SHELF: Shelf = Shelf::new("openai.completions");

/// A completion with what it answers.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    completion: JsonText,
    messages: Vec<JsonText>,
    metadata: Map,
}

impl Stored {
    /// The completion as this wire tells it, with its metadata.
    fn told(&self) -> Result<Value> {
        let mut told: Value = self.completion.read()?;
        told["metadata"] = self.metadata.clone().into();
        Ok(told)
    }
}

/// Keeps a completion.
pub(super) async fn keep(
    app: &App,
    scope: &Scope,
    completion: &Value,
    messages: &[Box<RawValue>],
    metadata: Map,
) -> Result<()> {
    let id = completion["id"].as_str().unwrap_or_default();
    let messages = messages.iter().map(|message| JsonText::new(message.get())).collect::<Result<_, _>>()?;
    let stored = Stored { completion: JsonText::from(completion), messages, metadata };
    SHELF.write(app, scope, id, &stored).await
}

async fn find(app: &App, scope: &Scope, id: &str) -> Result<Stored> {
    let digits = id.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let found = match digits.filter(|digits| digits.len() == 32) {
        Some(_) => SHELF.find(app, scope, id).await?,
        None => None,
    };
    found.ok_or_else(|| {
        let id: String = id.chars().take(200).collect();
        ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Completion with id '{id}' not found."))
    })
}
