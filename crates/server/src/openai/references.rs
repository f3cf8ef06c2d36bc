//! Items that a request names instead of saying them again, or says again though its conversation has them.

use axum::http::StatusCode;
use threadkeep::{Draft, Message, MessageName, Scope, ThreadId};

use super::items::Given;
use super::{ids, requests, responses};
use crate::app::App;
use crate::error::ApiError;

/// References of one request at most: each is looked up.
const REFERENCES: usize = 500;

/// What is new of an input: without what its conversation holds already, and with what its references stand for.
pub(super) async fn settle(
    app: &App,
    scope: &Scope,
    thread: Option<ThreadId>,
    input: Vec<Given>,
) -> Result<Vec<Draft>, ApiError> {
    if thread.is_some() {
        requests::check_new(input.len(), "input")?;
    }
    let references = input.iter().filter(|given| matches!(given, Given::Reference(_))).count();
    if references > REFERENCES {
        return Err(ApiError::invalid("input", format!("Invalid 'input': at most {REFERENCES} references are taken.")));
    }
    let there = there(app, scope, thread, &input).await?;
    let mut settled = Vec::with_capacity(input.len());
    for given in input {
        let found = name(&given).and_then(|name| there.iter().find(|message| is_named(message, &name)));
        match (given, found) {
            (Given::Reference(_), Some(_)) => {}
            (Given::Reference(id), None) => settled.push(kept(app, scope, &id).await?),
            (Given::Item(draft), Some(message)) if message.content == draft.content => {}
            (Given::Item(_), Some(_)) => {
                let message = "An item with this id says something else in the conversation.";
                return Err(ApiError::invalid("input", message).code("message_id_taken"));
            }
            (Given::Item(draft), None) => settled.push(*draft),
        }
    }
    Ok(settled)
}

/// Items with what their references stand for, which may be in the conversation already.
pub(super) async fn resolve(
    app: &App,
    scope: &Scope,
    thread: Option<ThreadId>,
    items: Vec<Given>,
) -> Result<Vec<Draft>, ApiError> {
    let there = there(app, scope, thread, &items).await?;
    let mut resolved = Vec::with_capacity(items.len());
    for given in items {
        let found = name(&given).and_then(|name| there.iter().find(|message| is_named(message, &name)));
        resolved.push(match (given, found) {
            (Given::Item(draft), _) => *draft,
            (Given::Reference(_), Some(message)) => {
                let draft = Draft::new(message.content.clone());
                Draft { id: Some(message.id), external_id: message.external_id.clone(), ..draft }
            }
            (Given::Reference(id), None) => kept(app, scope, &id).await?,
        });
    }
    Ok(resolved)
}

async fn kept(app: &App, scope: &Scope, id: &str) -> Result<Draft, ApiError> {
    responses::kept_item(app, scope, id).await?.ok_or_else(|| no_item(id))
}

/// The messages of the thread that items name.
async fn there(app: &App, scope: &Scope, thread: Option<ThreadId>, items: &[Given]) -> Result<Vec<Message>, ApiError> {
    let names: Vec<_> = items.iter().filter_map(name).collect();
    let Some(thread) = thread.filter(|_| !names.is_empty()) else { return Ok(Vec::new()) };
    let found = app.memory().find_messages(scope, thread, &names).await;
    found.map_err(|error| ids::about(&ids::conversation(thread))(error.into()))
}

fn name(given: &Given) -> Option<MessageName> {
    match given {
        Given::Reference(id) => ids::message(id).map(|(name, _)| name),
        Given::Item(draft) => {
            let external = draft.external_id.clone().map(MessageName::External);
            draft.id.map(MessageName::Id).or(external)
        }
    }
}

fn is_named(message: &Message, name: &MessageName) -> bool {
    match name {
        MessageName::Id(id) => message.id == *id,
        MessageName::External(id) => message.external_id.as_ref() == Some(id),
        MessageName::Seq(seq) => message.seq == *seq,
    }
}

fn no_item(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    let message = format!("Item with id '{id}' not found. Only items of responses that are stored can be named.");
    ApiError::new(StatusCode::NOT_FOUND, "not_found", message).param("input")
}
