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

/// Builds the graph: `START → agent ⇄ tools`, and from `agent` to the end once it calls no more tools.
///
/// # Panics
/// Never; a test checks that the graph is complete.
#[must_use]
pub fn tool_loop() -> Graph<ToolLoop> {
    Graph::<ToolLoop>::draw("tool_loop", 1, |_| ToolLoop::default())
        .node("agent", Node::model(ask_agent, take_answer))
        .node("tools", Node::tools(ask_tools, take_results))
        .edge(START, "agent")
        .branch("agent", ["tools", END], |state| if ask_tools(state).is_empty() { END } else { "tools" })
        .edge("tools", "agent")
        .said(|state| &state.messages)
        .finish(finish)
        .expect("the graph is complete")
}

fn ask_agent(state: &ToolLoop) -> ModelRequest {
    ModelRequest::reply(&state.messages)
}

fn take_answer(_: &ToolLoop, answer: ChatAnswer) -> ToolLoopUpdate {
    ToolLoopUpdate { messages: vec![answer.message()], ..ToolLoopUpdate::default() }
}

fn ask_tools(state: &ToolLoop) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn take_results(_: &ToolLoop, results: Vec<ToolOutcome>) -> ToolLoopUpdate {
    let sources = results.iter().flat_map(|result| result.sources.clone()).collect();
    ToolLoopUpdate { messages: results.into_iter().map(result_message).collect(), sources }
}

/// Returns the message that carries a tool's result.
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
