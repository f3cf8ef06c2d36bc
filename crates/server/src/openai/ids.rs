//! Ids of conversations and items. An id consists of a prefix and the hexadecimal digits of the id of the thread or message. If a
//! client chose the id of an item, the item keeps that id.

use threadkeep::{MessageId, MessageRef, Scope, ThreadId};

use crate::app::App;
use crate::error::ApiError;
use crate::thread_names::{self, CONVERSATION_PREFIX};
use axum::http::StatusCode;

const DIGITS: usize = 32;
/// The prefixes of the item ids that this server generates.
const PREFIXES: [&str; 6] = ["msg", "fc", "fco", "rs", "cmp", "item"];

pub(super) fn conversation_id(id: ThreadId) -> String {
    format!("{CONVERSATION_PREFIX}{}", id.0.simple())
}

/// Returns the id of a conversation's thread. `conversation` is the id of the conversation, or the id or key of the thread. An
/// unknown name is reported as not found.
pub(super) async fn find_conversation(app: &App, scope: &Scope, conversation: &str) -> Result<ThreadId, ApiError> {
    thread_names::resolve(app, scope, conversation).await.map_err(not_found_as(conversation))
}

pub(super) fn conversation_not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Conversation with id '{id}' not found."))
}

pub(super) fn item_not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Item with id '{id}' not found in conversation."))
}

/// Returns a function that replaces any "not found" error with an error about this conversation.
pub(super) fn not_found_as<'a>(conversation: &'a str) -> impl Fn(ApiError) -> ApiError + 'a {
    move |error| if error.status == StatusCode::NOT_FOUND { conversation_not_found(conversation) } else { error }
}

/// Returns the id of the item with this index in a message.
pub(super) fn item_id(prefix: &str, message: MessageId, external_id: Option<&str>, index: usize) -> String {
    match (external_id.filter(|id| is_item_id(id)), index) {
        (Some(id), 0) => id.to_owned(),
        (_, 0) => format!("{prefix}_{}", message.0.simple()),
        (_, index) => format!("{prefix}_{}_{index}", message.0.simple()),
    }
}

/// Returns a reference to the message that contains an item, and the index of the item in the message. `None` if the id is invalid.
pub(super) fn parse_item_id(item: &str) -> Option<(MessageRef, usize)> {
    let generated = item.split_once('_').filter(|(prefix, _)| PREFIXES.contains(prefix)).and_then(|(_, rest)| {
        let (digits, index) = rest.split_once('_').unwrap_or((rest, "0"));
        Some((parse_digits(digits)?, index.parse().ok()?))
    });
    match generated {
        Some((id, index)) => Some((MessageRef::Id(id), index)),
        None => is_item_id(item).then(|| (MessageRef::External(item.to_owned()), 0)),
    }
}

/// Returns the message id that an item id contains, if this server generated the item id.
pub(super) fn generated_message_id(prefix: &str, item: &str) -> Option<MessageId> {
    item.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).and_then(parse_digits)
}

fn parse_digits(digits: &str) -> Option<MessageId> {
    if digits.len() != DIGITS || digits.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    digits.parse().ok()
}

/// Whether a client may choose this id for an item. The id must be valid in a path.
pub(super) fn is_item_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 200 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte))
}
