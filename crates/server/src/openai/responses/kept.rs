//! Responses without a conversation: documents of the caller.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use threadkeep::core::DocumentWrite;
use threadkeep::{DocumentOwner, Draft, JsonText, Namespace, Scope};

use super::unknown;
use crate::app::App;
use crate::error::ApiError;
use crate::openai::items::{self, Item};
use crate::openai::turn::KEPT_MS;

/// Responses of one chain that are read at most.
const CHAIN: usize = 200;

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

pub(super) async fn write(app: &App, scope: &Scope, id: &str, kept: Option<&Kept>) -> Result<(), ApiError> {
    let memory = app.memory();
    let write = DocumentWrite {
        owner: owner(scope),
        namespace: namespace(),
        key: id.to_owned(),
        expected: None,
        value: kept.map(JsonText::of).transpose()?,
        expires_at: Some(memory.now().plus_ms(KEPT_MS)),
    };
    memory.backend().store.write_document(scope, write, memory.now()).await?;
    Ok(())
}

pub(super) async fn find(app: &App, scope: &Scope, id: &str) -> Result<Option<Kept>, ApiError> {
    let memory = app.memory();
    let (owner, namespace) = (owner(scope), namespace());
    let found = memory.backend().store.find_document(scope, &owner, &namespace, id, memory.now()).await?;
    Ok(found.map(|document| document.value.read()).transpose()?)
}

/// What was said in a chain of responses up to one, oldest first.
pub(super) async fn chain(app: &App, scope: &Scope, last: &str) -> Result<Vec<Draft>, ApiError> {
    let (mut items, mut next, mut read) = (Vec::new(), Some(last.to_owned()), 0);
    while let Some(id) = next {
        if read == CHAIN {
            let message = format!("a chain of more than {CHAIN} responses is not read; use a conversation");
            return Err(ApiError::invalid("previous_response_id", message));
        }
        read += 1;
        let kept = find(app, scope, &id).await?.ok_or_else(|| unknown(&id).param("previous_response_id"))?;
        // Backwards, as the chain is.
        items.extend(kept.output.into_iter().rev());
        items.extend(kept.input.into_iter().rev());
        next = kept.previous;
    }
    items.reverse();
    let drafts = items.iter().map(|item| {
        let raw: &RawValue =
            serde_json::from_str(item.as_str()).map_err(|_| ApiError::internal("a kept item is no JSON"))?;
        items::read(raw, "input")
    });
    drafts.collect()
}

/// Items as they are kept.
pub(super) fn texts(items: &[Item]) -> Result<Vec<JsonText>, ApiError> {
    Ok(items.iter().map(|item| JsonText::new(item.json.clone())).collect::<Result<_, _>>()?)
}

pub(super) fn owner(scope: &Scope) -> DocumentOwner {
    match scope {
        Scope::User(_, user) => DocumentOwner::User(user.clone()),
        Scope::Tenant(_) => DocumentOwner::Tenant,
    }
}

fn namespace() -> Namespace {
    Namespace::System("openai.responses".to_owned())
}
