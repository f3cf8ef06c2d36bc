//! Tool calls that a model of ours makes, or that are made of what a provider sent.

use threadkeep_core::{ChatRequest, JsonText, Part, ToolCall, Value};

use crate::Turn;

/// Gives the calls of an answer ids that no other call of the thread has: the turn's number, and a number in it.
pub(crate) fn mint_ids(request: &ChatRequest) -> impl FnMut() -> String {
    let turn = Turn::of(request);
    let number = turn.number();
    let mut made = turn.since().iter().flat_map(|message| message.tool_calls()).count();
    move || {
        made += 1;
        format!("call_{number}_{made}")
    }
}

/// Makes the part of a call whose arguments are at hand as a value.
pub(crate) fn call_part(id: String, name: &str, arguments: &Value) -> Part {
    Part::ToolCall(ToolCall { id, name: name.to_owned(), arguments: JsonText::from(arguments) })
}
