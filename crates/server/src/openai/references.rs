//! Resolves references to items, and recognises items that the conversation already contains.

use axum::http::StatusCode;
use threadkeep::{Content, Draft, Message, MessageRef, Scope, ThreadId};

use super::items::InputItem;
use super::{ids, requests, responses};
use crate::app::App;
use crate::error::ApiError;

/// The maximum number of references in one request. Each reference costs a look-up.
const MAX_REFERENCES: usize = 500;

/// An item of an input after references were resolved.
#[derive(Debug)]
pub(super) enum ResolvedItem {
    /// The item has no id, or the conversation contains no item with this id.
    New(Draft),
    /// The conversation contains this message with the id of the item.
    Stored(Message),
}

impl ResolvedItem {
    pub(super) fn content(&self) -> &Content {
        match self {
            Self::New(draft) => &draft.content,
            Self::Stored(message) => &message.content,
        }
    }

    pub(super) fn into_new(self) -> Option<Draft> {
        if let Self::New(draft) = self { Some(draft) } else { None }
    }
}

/// Resolves the references of an input and returns its new items. Items that the conversation already contains are omitted.
pub(super) async fn resolve_new(
    app: &App,
    scope: &Scope,
    thread: Option<ThreadId>,
    input: Vec<InputItem>,
) -> Result<Vec<Draft>, ApiError> {
    let resolved = resolve(app, scope, thread, input).await?;
    Ok(resolved.into_iter().filter_map(ResolvedItem::into_new).collect())
}

/// Resolves the references of an input, and finds the items whose ids the conversation already contains.
pub(super) async fn resolve(
    app: &App,
    scope: &Scope,
    thread: Option<ThreadId>,
    input: Vec<InputItem>,
) -> Result<Vec<ResolvedItem>, ApiError> {
    if thread.is_some() {
        requests::check_new_items(input.len(), "input")?;
    }
    let references = input.iter().filter(|item| matches!(item, InputItem::Reference(_))).count();
    if references > MAX_REFERENCES {
        return Err(ApiError::invalid(
            "input",
            format!("Invalid 'input': at most {MAX_REFERENCES} references are allowed."),
        ));
    }
    let existing = existing_messages(app, scope, thread, &input).await?;
    let mut resolved = Vec::with_capacity(input.len());
    for item in input {
        let found = find_existing(&existing, &item);
        resolved.push(match (item, found) {
            (InputItem::Reference(_), Some(message)) => ResolvedItem::Stored(message.clone()),
            (InputItem::Reference(id), None) => ResolvedItem::New(find_stored_item(app, scope, &id).await?),
            (InputItem::Item(draft), Some(message)) if message.content == draft.content => {
                ResolvedItem::Stored(message.clone())
            }
            (InputItem::Item(_), Some(_)) => {
                let message = "An item with this id but different content is already in the conversation.";
                return Err(ApiError::invalid("input", message).code("message_id_taken"));
            }
            (InputItem::Item(draft), None) => ResolvedItem::New(*draft),
        });
    }
    Ok(resolved)
}

/// Resolves the references among items. Items that the conversation already contains are returned too.
pub(super) async fn resolve_all(
    app: &App,
    scope: &Scope,
    thread: Option<ThreadId>,
    items: Vec<InputItem>,
) -> Result<Vec<Draft>, ApiError> {
    let existing = existing_messages(app, scope, thread, &items).await?;
    let mut resolved = Vec::with_capacity(items.len());
    for item in items {
        let found = find_existing(&existing, &item);
        resolved.push(match (item, found) {
            (InputItem::Item(draft), _) => *draft,
            (InputItem::Reference(_), Some(message)) => {
                let draft = Draft::new(message.content.clone());
                Draft { id: Some(message.id), external_id: message.external_id.clone(), ..draft }
            }
            (InputItem::Reference(id), None) => find_stored_item(app, scope, &id).await?,
        });
    }
    Ok(resolved)
}

/// Finds an item of a stored response that belongs to no conversation.
async fn find_stored_item(app: &App, scope: &Scope, id: &str) -> Result<Draft, ApiError> {
    responses::find_stored_item(app, scope, id).await?.ok_or_else(|| item_not_found(id))
}

/// Returns the messages of the thread to which items refer by id.
async fn existing_messages(
    app: &App,
    scope: &Scope,
    thread: Option<ThreadId>,
    items: &[InputItem],
) -> Result<Vec<Message>, ApiError> {
    let messages: Vec<_> = items.iter().filter_map(message_ref).collect();
    let Some(thread) = thread.filter(|_| !messages.is_empty()) else { return Ok(Vec::new()) };
    let found = app.memory().find_messages(scope, thread, &messages).await;
    found.map_err(|error| ids::not_found_as(&ids::conversation_id(thread))(error.into()))
}

/// Finds the existing message that contains an item.
fn find_existing<'a>(existing: &'a [Message], item: &InputItem) -> Option<&'a Message> {
    let reference = message_ref(item)?;
    existing.iter().find(|message| is_referenced(message, &reference))
}

/// Returns a reference to the message that contains an item; `None` for a new item without an id.
fn message_ref(item: &InputItem) -> Option<MessageRef> {
    match item {
        InputItem::Reference(id) => ids::parse_item_id(id).map(|(message, _)| message),
        InputItem::Item(draft) => {
            let external = draft.external_id.clone().map(MessageRef::External);
            draft.id.map(MessageRef::Id).or(external)
        }
    }
}

fn is_referenced(message: &Message, reference: &MessageRef) -> bool {
    match reference {
        MessageRef::Id(id) => message.id == *id,
        MessageRef::External(id) => message.external_id.as_ref() == Some(id),
        MessageRef::Seq(seq) => message.seq == *seq,
    }
}

fn item_not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    let message = format!("Item with id '{id}' not found. Only items of stored responses can be referenced.");
    ApiError::new(StatusCode::NOT_FOUND, "not_found", message).param("input")
}
