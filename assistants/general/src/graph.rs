//! The general assistant's graph: look things up, then the model and its tools until it answers.

use threadkeep::agent::{DynamicContext, FIND_CONTEXT, Failure, result_message};
use threadkeep::graph::{END, Graph, ModelAsk, Node, Output, START, ToolOutcome, state};
use threadkeep::{ChatAnswer, ChatMessage, JsonText, Source, StoreError, ToolCall, Value};

use crate::evidence::best_first;

/// The member of what the graph is given that holds the question's position.
pub(crate) const QUESTION_SEQ: &str = "question_seq";

state! {
    /// What a turn knows.
    pub(crate) struct Answering (update AnsweringUpdate) {
        /// What is asked.
        replace question: String,
        /// Where the question stands.
        set seq: u64,
        /// What was looked up.
        set found: DynamicContext,
        /// What the model said and the tools gave in this turn.
        append messages: ChatMessage,
        /// What the results stand on.
        append sources: Source,
    }
}

/// `START → look_up → agent ⇄ tools`, and from `agent` to the end once it calls no more tools.
pub(crate) fn general_graph() -> Graph<Answering> {
    let begin = |input: &threadkeep::graph::Input| Answering {
        question: input.question.clone(),
        seq: input.given.get(QUESTION_SEQ).and_then(Value::as_u64),
        ..Answering::default()
    };
    Graph::<Answering>::draw("general", 2, begin)
        .node("look_up", Node::activity(FIND_CONTEXT, ask_context, take_context).or_else(without_context))
        .node("agent", Node::model(ask_agent, take_answer))
        .node("tools", Node::tools(calls, take_results))
        .edge(START, "look_up")
        .edge("look_up", "agent")
        .branch("agent", ["tools", END], |state| if calls(state).is_empty() { END } else { "tools" })
        .edge("tools", "agent")
        .said(|state| &state.messages)
        .finish(finish)
        .expect("the drawing is complete, which a test holds")
}

fn ask_context(state: &Answering) -> Result<JsonText, StoreError> {
    DynamicContext::ask(&state.question, state.seq)
}

fn take_context(state: &Answering, found: JsonText) -> AnsweringUpdate {
    let ordered = |mut found: DynamicContext| {
        found.excerpts = best_first(&state.question, found.excerpts);
        found
    };
    AnsweringUpdate { found: found.read().ok().map(ordered), ..AnsweringUpdate::default() }
}

fn without_context(_: &Answering, _: &Failure) -> AnsweringUpdate {
    AnsweringUpdate::default()
}

fn ask_agent(state: &Answering) -> ModelAsk {
    let ask = ModelAsk::reply(&state.messages);
    match state.found.as_ref().and_then(DynamicContext::instructions) {
        Some(instructions) => ask.with_instructions(instructions),
        None => ask,
    }
}

fn take_answer(_: &Answering, answer: ChatAnswer) -> AnsweringUpdate {
    AnsweringUpdate { messages: vec![answer.message()], ..AnsweringUpdate::default() }
}

fn calls(state: &Answering) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn take_results(_: &Answering, results: Vec<ToolOutcome>) -> AnsweringUpdate {
    let sources = results.iter().flat_map(|result| result.sources.clone()).collect();
    let messages = results.into_iter().map(result_message).collect();
    AnsweringUpdate { messages, sources, ..AnsweringUpdate::default() }
}

/// The sources are what the reply cites of what was looked up, and what tools gave.
fn finish(state: &Answering) -> Output {
    let reply = state.messages.last().map(ChatMessage::plain_text).unwrap_or_default();
    let mut sources = state.found.as_ref().map(|found| found.cited(&reply)).unwrap_or_default();
    for source in &state.sources {
        if !sources.iter().any(|known| (&known.kind, &known.id) == (&source.kind, &source.id)) {
            sources.push(source.clone());
        }
    }
    Output { sources, ..Output::reply(reply) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drawing_is_complete() {
        assert!(general_graph().mermaid().contains("look_up --> agent"));
    }
}
