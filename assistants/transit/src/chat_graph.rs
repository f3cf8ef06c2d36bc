//! A graph that runs the model and its tools until the model answers.

use threadkeep::agent::result_message;
use threadkeep::graph::{END, Graph, GraphBuilder, Input, ModelRequest, Node, Output, START, ToolOutcome, state};
use threadkeep::models::is_text_call;
use threadkeep::{ChatAnswer, ChatMessage, JsonText, Role, ToolCall, Value};

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
        /// The question.
        replace question: String,
        /// Further input, such as the user's location.
        merge input,
        /// The agent that answers, if the assistant has several.
        optional agent: String,
        /// The confidence in the choice of that agent, from 0 to 1.
        optional confidence: f64,
        /// The structured results of the tools.
        append results: JsonText,
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
    chat_loop(Graph::<TurnState>::builder(name, 1, begin))
        .edge(START, "agent")
        .finish(finish)
        .expect("a test builds the graph")
}

/// What an assistant with several agents adds to [`chat_graph`].
#[derive(Clone, Copy, Debug)]
pub struct Routing {
    /// Returns the agent that answers, and the confidence in the choice: from the question at first, and from the calls of the turn, too,
    /// for the stored answer.
    pub choose: fn(&TurnState) -> (String, f64),
    /// Returns the data that is stored with the answer.
    pub data: fn(&TurnState) -> Option<JsonText>,
}

/// `START → route → agent ⇄ tools`: chooses one of the assistant's agents before the model answers.
///
/// # Panics
/// Never: the graph is complete, which a test checks.
#[must_use]
pub fn routed_graph(name: &'static str, routing: Routing) -> Graph<TurnState> {
    let route = move |state: &TurnState| {
        let (agent, confidence) = (routing.choose)(state);
        TurnStateUpdate { agent: Some(agent), confidence: Some(confidence), ..TurnStateUpdate::default() }
    };
    chat_loop(Graph::<TurnState>::builder(name, 1, begin).node("route", Node::pure(route)))
        .edge(START, "route")
        .edge("route", "agent")
        .finish(move |state| {
            // The calls of the turn may show more than the question did.
            let (agent, confidence) = (routing.choose)(state);
            Output { agent: Some(agent), confidence: Some(confidence), data: (routing.data)(state), ..finish(state) }
        })
        .expect("a test builds the graph")
}

fn begin(input: &Input) -> TurnState {
    TurnState {
        user_id: input.extra_input.get(USER_ID).and_then(Value::as_str).unwrap_or_default().to_owned(),
        question: input.question.clone(),
        input: input.extra_input.clone(),
        ..TurnState::default()
    }
}

fn chat_loop(builder: GraphBuilder<TurnState>) -> GraphBuilder<TurnState> {
    builder
        .max_steps(STEPS)
        .node("agent", Node::model(model_request, add_answer))
        .node("tools", Node::tools(calls, add_results))
        .branch("agent", ["tools", END], |state| if calls(state).is_empty() { END } else { "tools" })
        .branch("tools", ["agent", END], |state| if wrote_calls_as_text(state) { END } else { "agent" })
        .messages(|state| &state.messages)
}

fn model_request(state: &TurnState) -> ModelRequest {
    ModelRequest::reply(&state.messages)
}

fn add_answer(_: &TurnState, answer: ChatAnswer) -> TurnStateUpdate {
    TurnStateUpdate { messages: vec![answer.message()], ..TurnStateUpdate::default() }
}

fn calls(state: &TurnState) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn add_results(_: &TurnState, results: Vec<ToolOutcome>) -> TurnStateUpdate {
    let values = results.iter().filter_map(|result| result.value.clone()).collect();
    let messages = results.into_iter().map(result_message).collect();
    TurnStateUpdate { messages, results: values, ..TurnStateUpdate::default() }
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
        let mermaid = chat_graph("chat").mermaid();
        assert!(mermaid.contains("agent") && mermaid.contains("tools"), "{mermaid}");
        let routing = Routing { choose: |_| ("STATUS".to_owned(), 0.5), data: |_| None };
        assert!(routed_graph("routed", routing).mermaid().contains("route --> agent"));
    }
}
