//! Ids and parts for tool calls of models, including calls that were recovered from text.

#[cfg(not(target_arch = "wasm32"))]
use threadkeep_core::ChatRequest;
use threadkeep_core::{JsonText, Part, ToolCall, Value};
#[cfg(not(target_arch = "wasm32"))]
use threadkeep_dialogue::Turn;

/// The prefix of the ids of calls that a model wrote as text.
const TEXT_CALL_PREFIX: &str = "written";

/// Whether a call was parsed from a model's text or from a provider's error, according to its id. A model that writes calls
/// as text may be unable to continue from a result, so a graph can end the turn with the result.
#[must_use]
pub fn is_text_call(call: &ToolCall) -> bool {
    call.id.strip_prefix(TEXT_CALL_PREFIX).is_some_and(|rest| rest.starts_with('_'))
}

/// Returns a generator of ids for calls that a model wrote as text. The ids are unique within the thread.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn text_call_ids(request: &ChatRequest) -> impl FnMut() -> String + use<> {
    Turn::of(request).call_ids(TEXT_CALL_PREFIX)
}

/// Creates a tool call part from a JSON value.
pub(crate) fn call_part(id: String, name: &str, arguments: &Value) -> Part {
    Part::ToolCall(ToolCall { id, name: name.to_owned(), arguments: JsonText::from(arguments) })
}
