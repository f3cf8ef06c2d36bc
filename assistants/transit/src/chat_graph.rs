//! A graph of the model and its tools, until the model answers.

use threadkeep::agent::result_message;
use threadkeep::graph::{END, Graph, Input, ModelRequest, Node, Output, START, ToolOutcome, state};
use threadkeep::models::is_text_call;
use threadkeep::{ChatAnswer, ChatMessage, Role, ToolCall, Value};

/// The key of the user id in the graph's input.
pub const USER_ID: &str = "user_id";

/// Maximum number of steps in a turn (model, tools, model, …). A typical question takes at most two tool calls.
const STEPS: u32 = 25;

state! {
    /// The state of a turn.
    pub struct TurnState (update TurnStateUpdate) {
        /// The messages of the model and the tools in this turn.
        append messages: ChatMessage,
        /// The id of the user; empty in a tenant's scope.
        replace user_id: String,
    }
}

/// `START → agent ⇄ tools`, and from `agent` to the end as soon as the model calls no more tools.
///
/// If a model wrote a call as text, the result of the call is the answer: a model that cannot call tools properly may not be
/// able to continue from a result either.
///
/// # Panics
/// Never: the graph is complete, which a test checks.
#[must_use]
pub fn chat_graph(name: &'static str) -> Graph<TurnState> {
    let begin = |input: &Input| TurnState {
        user_id: input.extra_input.get(USER_ID).and_then(Value::as_str).unwrap_or_default().to_owned(),
        ..TurnState::default()
    };
    Graph::<TurnState>::builder(name, 1, begin)
        .max_steps(STEPS)
        .node("agent", Node::model(ask_agent, take_answer))
        .node("tools", Node::tools(calls, take_results))
        .edge(START, "agent")
        .branch("agent", ["tools", END], |state| if calls(state).is_empty() { END } else { "tools" })
        .branch("tools", ["agent", END], |state| if wrote_calls_as_text(state) { END } else { "agent" })
        .messages(|state| &state.messages)
        .finish(finish)
        .expect("the graph is complete: a test builds it")
}

fn ask_agent(state: &TurnState) -> ModelRequest {
    ModelRequest::reply(&state.messages)
}

fn take_answer(_: &TurnState, answer: ChatAnswer) -> TurnStateUpdate {
    TurnStateUpdate { messages: vec![answer.message()], ..TurnStateUpdate::default() }
}

fn calls(state: &TurnState) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn take_results(_: &TurnState, results: Vec<ToolOutcome>) -> TurnStateUpdate {
    TurnStateUpdate { messages: results.into_iter().map(result_message).collect(), ..TurnStateUpdate::default() }
}

/// Whether the model wrote its last calls as text.
fn wrote_calls_as_text(state: &TurnState) -> bool {
    let last = state.messages.iter().rev().find(|message| message.role == Role::Assistant);
    let mut calls = last.into_iter().flat_map(ChatMessage::tool_calls).peekable();
    calls.peek().is_some() && calls.all(is_text_call)
}

fn finish(state: &TurnState) -> Output {
    let last = state.messages.last();
    match last.filter(|message| message.role == Role::Tool) {
        Some(_) => Output::reply(results(state)),
        None => Output::reply(last.map(ChatMessage::plain_text).unwrap_or_default()),
    }
}

/// Returns the text of the last tool results. A failed call becomes an apology that does not quote the call's markup.
fn results(state: &TurnState) -> String {
    let last = state.messages.iter().rev().take_while(|message| message.role == Role::Tool);
    let mut texts: Vec<String> = last.flat_map(ChatMessage::tool_results).map(text).collect();
    texts.reverse();
    texts.join("\n\n")
}

fn text(result: &threadkeep::ToolResult) -> String {
    match result.is_error {
        true => format!("Sorry, I could not look that up: {}.", result.output.trim_end_matches('.')),
        false => result.output.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_is_complete() {
        let mermaid = chat_graph("subway").mermaid();
        assert!(mermaid.contains("agent") && mermaid.contains("tools"), "{mermaid}");
    }
}
