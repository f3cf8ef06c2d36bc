//! The assistant's graph: the model and its tools, until it answers.

use threadkeep::agent::result_message;
use threadkeep::graph::{END, Graph, Input, ModelAsk, Node, Output, START, ToolOutcome, state};
use threadkeep::models::is_written;
use threadkeep::{ChatAnswer, ChatMessage, Role, ToolCall, Value};

/// The member of what the graph is given that holds the user.
pub(crate) const USER_ID: &str = "user_id";

/// Steps of a turn: a model, its tools, a model again. A rider's question takes two calls of tools at most.
const STEPS: u32 = 25;

state! {
    /// What a turn knows.
    pub(crate) struct Riding (update RidingUpdate) {
        /// What the model said and the tools gave in this turn.
        append messages: ChatMessage,
        /// Who asks.
        replace user_id: String,
    }
}

/// `START → agent ⇄ tools`, and from `agent` to the end once it calls no more tools.
///
/// A call that a model wrote as text ends with its result as the answer: a model that cannot call tools properly may not be
/// able to go on from a result either.
pub(crate) fn subway_graph() -> Graph<Riding> {
    let begin = |input: &Input| Riding {
        user_id: input.given.get(USER_ID).and_then(Value::as_str).unwrap_or_default().to_owned(),
        ..Riding::default()
    };
    Graph::<Riding>::draw("subway", 1, begin)
        .max_steps(STEPS)
        .node("agent", Node::model(ask_agent, take_answer))
        .node("tools", Node::tools(calls, take_results))
        .edge(START, "agent")
        .branch("agent", ["tools", END], |state| if calls(state).is_empty() { END } else { "tools" })
        .branch("tools", ["agent", END], |state| if were_written(state) { END } else { "agent" })
        .said(|state| &state.messages)
        .finish(finish)
        .expect("the drawing is complete, which a test holds")
}

fn ask_agent(state: &Riding) -> ModelAsk {
    ModelAsk::reply(&state.messages)
}

fn take_answer(_: &Riding, answer: ChatAnswer) -> RidingUpdate {
    RidingUpdate { messages: vec![answer.message()], ..RidingUpdate::default() }
}

fn calls(state: &Riding) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn take_results(_: &Riding, results: Vec<ToolOutcome>) -> RidingUpdate {
    RidingUpdate { messages: results.into_iter().map(result_message).collect(), ..RidingUpdate::default() }
}

/// Whether the calls that were made last stood in the model's text.
fn were_written(state: &Riding) -> bool {
    let last = state.messages.iter().rev().find(|message| message.role == Role::Assistant);
    let mut calls = last.into_iter().flat_map(ChatMessage::tool_calls).peekable();
    calls.peek().is_some() && calls.all(is_written)
}

fn finish(state: &Riding) -> Output {
    let last = state.messages.last();
    match last.filter(|message| message.role == Role::Tool) {
        Some(_) => Output::reply(results(state)),
        None => Output::reply(last.map(ChatMessage::plain_text).unwrap_or_default()),
    }
}

/// What the tools said last. What failed is told as the failure that it is, never as the call's markup.
fn results(state: &Riding) -> String {
    let last = state.messages.iter().rev().take_while(|message| message.role == Role::Tool);
    let mut told: Vec<String> = last.flat_map(ChatMessage::tool_results).map(words).collect();
    told.reverse();
    told.join("\n\n")
}

fn words(result: &threadkeep::ToolResult) -> String {
    match result.is_error {
        true => format!("Sorry, I could not look that up: {}.", result.output.trim_end_matches('.')),
        false => result.output.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawing_is_complete() {
        let mermaid = subway_graph().mermaid();
        assert!(mermaid.contains("agent") && mermaid.contains("tools"), "{mermaid}");
    }
}
