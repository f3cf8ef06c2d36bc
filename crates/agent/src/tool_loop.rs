//! The default graph: a model calls tools until it answers.

use threadkeep_core::{ChatAnswer, ChatMessage, Part, Role, Source, ToolCall, ToolResult};
use threadkeep_graph::{END, Graph, ModelRequest, Node, Output, START, ToolOutcome, state};

state! {
    /// The state of a turn of [`tool_loop`].
    pub struct ToolLoop (update ToolLoopUpdate) {
        /// The answers of the model and the results of the tools in this turn.
        append messages: ChatMessage,
        /// The sources of the results.
        append sources: Source,
    }
}

/// Builds the graph `START → agent ⇄ tools`. The run ends when `agent` calls no more tools.
///
/// # Panics
/// Never: the graph is complete, which a test checks.
#[must_use]
pub fn tool_loop() -> Graph<ToolLoop> {
    Graph::<ToolLoop>::builder("tool_loop", 1, |_| ToolLoop::default())
        .node("agent", Node::model(request_answer, add_answer))
        .node("tools", Node::tools(requested_calls, add_results))
        .edge(START, "agent")
        .branch("agent", ["tools", END], |state| if requested_calls(state).is_empty() { END } else { "tools" })
        .edge("tools", "agent")
        .messages(|state| &state.messages)
        .finish(finish)
        .expect("the graph is complete")
}

fn request_answer(state: &ToolLoop) -> ModelRequest {
    ModelRequest::reply(&state.messages)
}

fn add_answer(_: &ToolLoop, answer: ChatAnswer) -> ToolLoopUpdate {
    ToolLoopUpdate { messages: vec![answer.message()], ..ToolLoopUpdate::default() }
}

fn requested_calls(state: &ToolLoop) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn add_results(_: &ToolLoop, results: Vec<ToolOutcome>) -> ToolLoopUpdate {
    let sources = results.iter().flat_map(|result| result.sources.clone()).collect();
    ToolLoopUpdate { messages: results.into_iter().map(result_message).collect(), sources }
}

/// Creates the message with a tool's result.
#[must_use]
pub fn result_message(outcome: ToolOutcome) -> ChatMessage {
    let ToolOutcome { call_id, output, is_error, .. } = outcome;
    let parts = vec![Part::ToolResult(ToolResult { call_id, output, is_error })];
    ChatMessage { role: Role::Tool, author: None, parts, seq: None }
}

fn finish(state: &ToolLoop) -> Output {
    let reply = state.messages.last().map(ChatMessage::plain_text).unwrap_or_default();
    Output { sources: state.sources.clone(), ..Output::reply(reply) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_is_complete() {
        assert!(tool_loop().mermaid().contains("tools --> agent"));
    }
}
