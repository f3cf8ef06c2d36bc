//! Responses, which are answers by a model. A response is part of a conversation, continues an earlier response, or stands alone.
//!
//! A response in a conversation is a turn of its thread (`super::turn`), and its id contains the id of the thread. Any other
//! response is stored for 30 days with its input, as a record of the caller. A background response has an additional record while
//! it is in progress. A client resumes an interrupted stream by retrieving the response, which returns the same events with the
//! same numbers.

pub(crate) mod answer;
mod assistant;
mod background;
mod body;
pub(crate) mod cancel;
mod chain;
pub(crate) mod compact;
mod conversation_name;
pub(crate) mod create;
pub(crate) mod delete;
mod event_writer;
pub(crate) mod input_items;
pub(crate) mod input_tokens;
pub(crate) mod list;
mod resolved_input;
pub(crate) mod retrieve;
mod stored_response;
mod stream;
mod strict_tools;
mod text_deltas;

use axum::http::StatusCode;
use threadkeep::{Memory, MessageId, ThreadId};

use super::turn;
use crate::error::ApiError;

pub(super) use stored_response::find_item as find_stored_item;

const PREFIX: &str = "resp_";

/// Creates the id of a response. It consists of random digits, the last of which distinguish the items of the response
/// (`turn::item_id`), and the digits of the conversation's thread if there is one. `named_id` replaces the random digits, so that a
/// repeated request gets the same id.
fn create_id(memory: &Memory, named_id: Option<ThreadId>, thread: Option<ThreadId>) -> String {
    let own_id = named_id.unwrap_or_else(|| memory.generate_thread_id());
    let thread = thread.map(|thread| thread.0.simple().to_string()).unwrap_or_default();
    format!("{PREFIX}{}{thread}", turn::id_family(own_id.0.simple()))
}

/// Returns the id of the message that contains the first text of a response.
fn text_message_id(id: &str) -> MessageId {
    let digits = id.strip_prefix(PREFIX).and_then(|digits| digits.get(..32)).and_then(|digits| digits.parse().ok());
    turn::text_message_id(digits.expect("the id of a response starts with 32 digits"))
}

/// Returns the thread id in the id of a response; `None` for a response without a conversation. An invalid id is reported as not
/// found.
fn thread_in_id(id: &str) -> Result<Option<ThreadId>, ApiError> {
    let digits = id.strip_prefix(PREFIX).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match digits {
        Some(digits) if digits.len() == 32 => Ok(None),
        Some(digits) if digits.len() == 64 => digits[32..].parse().map(Some).map_err(|_| not_found(id)),
        _ => Err(not_found(id)),
    }
}

fn not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("Response with id '{id}' not found."))
}
