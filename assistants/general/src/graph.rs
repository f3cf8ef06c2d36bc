//! The graph of the general assistant: look up the context, then alternate between model and tools until the model answers.

use threadkeep::agent::{DynamicContext, FIND_CONTEXT, Failure, result_message};
use threadkeep::graph::{END, Graph, ModelRequest, Node, Output, START, ToolOutcome, state};
use threadkeep::{ChatAnswer, ChatMessage, JsonText, Source, StoreError, ToolCall, Value};

use crate::evidence::best_first;
use crate::evidence::question::Question;

/// The key of the question's position in the graph input.
pub(crate) const QUESTION_SEQ: &str = "question_seq";

state! {
    /// The state of a turn.
    pub(crate) struct AnswerState (update AnswerStateUpdate) {
        /// The question.
        replace question: String,
        /// The position of the question in the thread.
        optional seq: u64,
        /// The context that was looked up.
        optional found: DynamicContext,
        /// The messages of the model and the tool results of this turn.
        append messages: ChatMessage,
        /// The sources of the tool results.
        append sources: Source,
    }
}

/// Builds the graph `START → look_up → agent ⇄ tools`. It ends when `agent` calls no tools.
pub(crate) fn general_graph() -> Graph<AnswerState> {
    let begin = |input: &threadkeep::graph::Input| AnswerState {
        question: input.question.clone(),
        seq: input.extra_input.get(QUESTION_SEQ).and_then(Value::as_u64),
        ..AnswerState::default()
    };
    Graph::<AnswerState>::builder("general", 2, begin)
        .node("look_up", Node::activity(FIND_CONTEXT, context_request, context_update).or_else(without_context))
        .node("agent", Node::model(agent_request, answer_update))
        .node("tools", Node::tools(calls, results_update))
        .edge(START, "look_up")
        .edge("look_up", "agent")
        .branch("agent", ["tools", END], |state| if calls(state).is_empty() { END } else { "tools" })
        .edge("tools", "agent")
        .messages(|state| &state.messages)
        .finish(finish)
        .expect("the graph is complete (a test checks this)")
}

fn context_request(state: &AnswerState) -> Result<JsonText, StoreError> {
    DynamicContext::activity_input(&state.question, state.seq)
}

fn context_update(state: &AnswerState, found: JsonText) -> AnswerStateUpdate {
    let ordered = |mut found: DynamicContext| {
        // The query is the question, followed by the earlier questions that it refers to.
        let earlier = found.query.strip_prefix(state.question.trim()).unwrap_or_default();
        found.excerpts = best_first(&Question::new(&state.question, earlier), found.excerpts);
        found
    };
    AnswerStateUpdate { found: found.read().ok().map(ordered), ..AnswerStateUpdate::default() }
}

fn without_context(_: &AnswerState, _: &Failure) -> AnswerStateUpdate {
    AnswerStateUpdate::default()
}

fn agent_request(state: &AnswerState) -> ModelRequest {
    let request = ModelRequest::reply(&state.messages);
    match state.found.as_ref().and_then(DynamicContext::instructions) {
        Some(instructions) => request.with_instructions(instructions),
        None => request,
    }
}

fn answer_update(_: &AnswerState, answer: ChatAnswer) -> AnswerStateUpdate {
    AnswerStateUpdate { messages: vec![answer.message()], ..AnswerStateUpdate::default() }
}

fn calls(state: &AnswerState) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn results_update(_: &AnswerState, results: Vec<ToolOutcome>) -> AnswerStateUpdate {
    let sources = results.iter().flat_map(|result| result.sources.clone()).collect();
    let messages = results.into_iter().map(result_message).collect();
    AnswerStateUpdate { messages, sources, ..AnswerStateUpdate::default() }
}

/// Builds the output. Its sources are the cited excerpts of the context and the sources of the tool results.
fn finish(state: &AnswerState) -> Output {
    let reply = state.messages.last().map(ChatMessage::plain_text).unwrap_or_default();
    let mut sources = state.found.as_ref().map(|found| found.cited_sources(&reply)).unwrap_or_default();
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
    fn the_graph_is_complete() {
        assert!(general_graph().mermaid().contains("look_up --> agent"));
    }
}
