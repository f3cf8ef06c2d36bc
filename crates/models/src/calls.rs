//! Tool calls that a model of ours makes, or that are made of what a provider sent.

use threadkeep_core::{ChatRequest, JsonText, Part, ToolCall, Value};

use crate::Turn;

/// What the ids of calls begin with that a model wrote as text.
const WRITTEN: &str = "written";

/// Whether a call was read from the words of a model that cannot call tools otherwise, or from a provider's error about
/// them. Its id says so. Such a model may be unable to go on from a result: a graph can end with the result instead.
#[must_use]
pub fn is_written(call: &ToolCall) -> bool {
    call.id.strip_prefix(WRITTEN).is_some_and(|rest| rest.starts_with('_'))
}

/// Gives the calls of an answer ids that no other call of the thread has: the turn's number, and a number in it.
pub(crate) fn mint_ids(request: &ChatRequest) -> impl FnMut() -> String {
    mint_ids_with("call", request)
}

/// As [`mint_ids`], for calls that a model wrote as text.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn mint_written_ids(request: &ChatRequest) -> impl FnMut() -> String {
    mint_ids_with(WRITTEN, request)
}

fn mint_ids_with(prefix: &'static str, request: &ChatRequest) -> impl FnMut() -> String {
    let turn = Turn::of(request);
    let number = turn.number();
    let mut made = turn.since().iter().flat_map(|message| message.tool_calls()).count();
    move || {
        made += 1;
        format!("{prefix}_{number}_{made}")
    }
}

/// Makes the part of a call whose arguments are at hand as a value.
pub(crate) fn call_part(id: String, name: &str, arguments: &Value) -> Part {
    Part::ToolCall(ToolCall { id, name: name.to_owned(), arguments: JsonText::from(arguments) })
}
