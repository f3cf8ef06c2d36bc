//! What this wire calls threads and messages: a prefix and the digits of their ids. A message whose client named it keeps
//! that name.

use threadkeep::{MessageId, MessageName, ThreadId};

use crate::error::ApiError;
use axum::http::StatusCode;

const DIGITS: usize = 32;
/// What the names begin with that this wire gives to items.
const PREFIXES: [&str; 6] = ["msg", "fc", "fco", "rs", "cmp", "item"];

pub(super) fn conversation(id: ThreadId) -> String {
    format!("conv_{}", id.0.simple())
}

/// The thread that a conversation is. What is no such name names none.
pub(super) fn thread(conversation: &str) -> Result<ThreadId, ApiError> {
    let digits = conversation.strip_prefix("conv_").filter(|digits| digits.len() == DIGITS);
    let id = digits.and_then(|digits| digits.parse().ok());
    id.ok_or_else(|| no_conversation(conversation))
}

pub(super) fn no_conversation(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Conversation with id '{id}' not found."))
}

pub(super) fn no_item(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Item with id '{id}' not found in conversation."))
}

/// Says of what was not found that it is this conversation.
pub(super) fn about<'a>(conversation: &'a str) -> impl Fn(ApiError) -> ApiError + 'a {
    move |error| if error.status == StatusCode::NOT_FOUND { no_conversation(conversation) } else { error }
}

/// What a message's item of a kind is called.
pub(super) fn item(prefix: &str, message: MessageId, external_id: Option<&str>, place: usize) -> String {
    match (external_id.filter(|id| is_item_id(id)), place) {
        (Some(id), 0) => id.to_owned(),
        (_, 0) => format!("{prefix}_{}", message.0.simple()),
        (_, place) => format!("{prefix}_{}_{place}", message.0.simple()),
    }
}

/// How the message is named that an item belongs to, and which of its items it is.
pub(super) fn message(item: &str) -> Option<(MessageName, usize)> {
    let own = item.split_once('_').filter(|(prefix, _)| PREFIXES.contains(prefix)).and_then(|(_, rest)| {
        let (digits, place) = rest.split_once('_').unwrap_or((rest, "0"));
        Some((own_digits(digits)?, place.parse().ok()?))
    });
    match own {
        Some((id, place)) => Some((MessageName::Id(id), place)),
        None => is_item_id(item).then(|| (MessageName::External(item.to_owned()), 0)),
    }
}

/// The id of the message whose item a client names so, if the name is one that this wire gives.
pub(super) fn given(prefix: &str, item: &str) -> Option<MessageId> {
    item.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('_')).and_then(own_digits)
}

fn own_digits(digits: &str) -> Option<MessageId> {
    if digits.len() != DIGITS || digits.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return None;
    }
    digits.parse().ok()
}

/// Whether a client may call an item so: what a path can hold.
pub(super) fn is_item_id(id: &str) -> bool {
    !id.is_empty() && id.len() <= 200 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.:".contains(&byte))
}
