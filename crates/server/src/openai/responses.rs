//! Responses: what a model answers, in a conversation, after an earlier response, or alone.
//!
//! A response in a conversation is a turn of its thread (`super::turn`), and its id names the thread. One without is kept
//! whole, as a document of the caller, for 30 days. One in the background has a document of its own until it is over.
//! A stream that was cut is taken up by asking for the response again: the same events come, with the same numbers.

pub(crate) mod answer;
mod asked;
mod assistant;
mod background;
mod body;
pub(crate) mod cancel;
mod chain;
pub(crate) mod compact;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod input_items;
pub(crate) mod input_tokens;
mod kept;
mod pieces;
pub(crate) mod retrieve;
mod stream;
mod teller;

use axum::http::StatusCode;
use threadkeep::{Memory, MessageId, ThreadId};

use super::turn;
use crate::error::ApiError;

pub(super) use kept::find_item as kept_item;

const PREFIX: &str = "resp_";

/// What a response is called: random digits, of which the last are left to its items (`turn::item_id`), then those of its
/// conversation's thread.
fn mint_id(memory: &Memory, named: Option<ThreadId>, thread: Option<ThreadId>) -> String {
    let own = named.unwrap_or_else(|| memory.mint_thread_id());
    let thread = thread.map(|thread| thread.0.simple().to_string()).unwrap_or_default();
    format!("{PREFIX}{}{thread}", turn::family(own.0.simple()))
}

/// The id of the message that the first words of a response become.
fn words_of(id: &str) -> MessageId {
    let digits = id.strip_prefix(PREFIX).and_then(|digits| digits.get(..32)).and_then(|digits| digits.parse().ok());
    turn::words_id(digits.expect("an id of a response begins with 32 digits"))
}

/// The thread that a response's id names; `None` for one without a conversation. What is no id names no response.
fn thread_of(id: &str) -> Result<Option<ThreadId>, ApiError> {
    let digits = id.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match digits {
        Some(digits) if digits.len() == 32 => Ok(None),
        Some(digits) if digits.len() == 64 => digits[32..].parse().map(Some).map_err(|_| unknown(id)),
        _ => Err(unknown(id)),
    }
}

fn unknown(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Response with id '{id}' not found."))
}
