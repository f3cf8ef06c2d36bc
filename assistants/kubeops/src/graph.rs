//! The graph of a turn: the model requests commands, changes are checked with a dry run, and the commands are carried out.
//!
//! Only what the user reads is stored in the conversation: questions, answers, requests for approvals, decisions and outcomes.

use serde::{Deserialize, Serialize};
use threadkeep::agent::{Failure, result_message};
use threadkeep::graph::{END, Graph, Input, ModelRequest, Node, Output, START, ToolOutcome, state};
use threadkeep::{ChatAnswer, ChatMessage, JsonText, StoreError, ToolCall, Value};

use crate::cluster::Outcome;
use crate::command::Command;
use crate::conversation::{Conversation, Step, data_to_store};

/// The field of the graph's input that contains the conversation.
pub(crate) const CONVERSATION: &str = "conversation";
/// The name of the activity that checks commands.
pub(crate) const CHECK: &str = "check_commands";

/// A call after its check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CheckedCall {
    pub(crate) id: String,
    /// The name of the tool that the model called.
    pub(crate) tool: String,
    /// The arguments; those of a change include the state of the object.
    pub(crate) arguments: JsonText,
    /// Why the call must not be made.
    pub(crate) refusal: Option<String>,
}

state! {
    /// The state of a turn.
    pub(crate) struct TurnState (update TurnStateUpdate) {
        /// The conversation so far.
        optional conversation: Conversation,
        /// The messages of the model and the results of this turn.
        append messages: ChatMessage,
        /// The calls of the last answer after their check.
        replace checked: Vec<CheckedCall>,
        /// The commands of this turn and their results.
        append steps: Step,
    }
}

/// Builds the graph `START → agent → check → run → agent`, which ends when `agent` calls no tools.
pub(crate) fn kubeops_graph() -> Graph<TurnState> {
    let begin = |input: &Input| TurnState {
        conversation: input.extra_input.get(CONVERSATION).and_then(|value| serde_json::from_value(value.clone()).ok()),
        ..TurnState::default()
    };
    Graph::<TurnState>::builder("kubeops", 1, begin)
        .node("agent", Node::model(model_request, add_answer))
        .node("check", Node::activity(CHECK, check_input, apply_check).or_else(refuse_all))
        .node("run", Node::tools(calls, add_results))
        .edge(START, "agent")
        .branch("agent", ["check", END], |state| if requested(state).is_empty() { END } else { "check" })
        .branch("check", ["run", "agent"], |state| if calls(state).is_empty() { "agent" } else { "run" })
        .edge("run", "agent")
        .messages(|_| &[])
        .finish(finish)
        .expect("the graph is complete, which a test checks")
}

fn model_request(state: &TurnState) -> ModelRequest {
    let conversation = Conversation {
        steps: state.steps.clone(),
        question: String::new(),
        ..state.conversation.clone().unwrap_or_default()
    };
    ModelRequest::reply(&state.messages).with_instructions(conversation.block())
}

fn add_answer(_: &TurnState, answer: ChatAnswer) -> TurnStateUpdate {
    TurnStateUpdate { messages: vec![answer.message()], ..TurnStateUpdate::default() }
}

/// Returns the calls of the model's last answer.
fn requested(state: &TurnState) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

fn check_input(state: &TurnState) -> Result<JsonText, StoreError> {
    let calls: Vec<CheckedCall> = requested(state)
        .into_iter()
        .map(|call| CheckedCall { id: call.id, tool: call.name, arguments: call.arguments, refusal: None })
        .collect();
    JsonText::of(&calls)
}

fn apply_check(state: &TurnState, checked: JsonText) -> TurnStateUpdate {
    match checked.read::<Vec<CheckedCall>>() {
        Ok(checked) => with_refusals(checked),
        Err(error) => refuse_all(state, &Failure::new("check_failed", error.to_string())),
    }
}

fn refuse_all(state: &TurnState, failure: &Failure) -> TurnStateUpdate {
    let refuse = |call: ToolCall| CheckedCall {
        id: call.id,
        tool: call.name,
        arguments: call.arguments,
        refusal: Some(failure.message.clone()),
    };
    with_refusals(requested(state).into_iter().map(refuse).collect())
}

/// Passes the refusals to the model as results.
fn with_refusals(checked: Vec<CheckedCall>) -> TurnStateUpdate {
    let mut update = TurnStateUpdate::default();
    for call in &checked {
        let Some(refusal) = &call.refusal else { continue };
        let outcome = ToolOutcome {
            call_id: call.id.clone(),
            output: refusal.clone(),
            is_error: true,
            value: None,
            sources: Vec::new(),
        };
        update.messages.push(result_message(outcome));
        if let Ok(command) = call.arguments.read::<Command>() {
            update.steps.push(Step { command, outcome: None, error: Some(refusal.clone()) });
        }
    }
    update.checked = Some(checked);
    update
}

/// Returns the calls that the check allowed, with the arguments that it completed.
fn calls(state: &TurnState) -> Vec<ToolCall> {
    let allowed = state.checked.iter().filter(|call| call.refusal.is_none());
    let call = |call: &CheckedCall| ToolCall {
        id: call.id.clone(),
        name: call.tool.clone(),
        arguments: call.arguments.clone(),
    };
    allowed.map(call).collect()
}

fn add_results(state: &TurnState, results: Vec<ToolOutcome>) -> TurnStateUpdate {
    let mut steps = Vec::new();
    for result in &results {
        let call = state.checked.iter().find(|call| call.id == result.call_id);
        let Some(Ok(command)) = call.map(|call| call.arguments.read::<Command>()) else { continue };
        let outcome: Option<Outcome> = result.value.as_ref().and_then(|value| value.read().ok());
        let error = result.is_error.then(|| result.output.clone());
        steps.push(Step { command, outcome, error });
    }
    let messages = results.into_iter().map(result_message).collect();
    TurnStateUpdate { messages, steps, checked: Some(Vec::new()), ..TurnStateUpdate::default() }
}

fn finish(state: &TurnState) -> Output {
    let reply = state.messages.last().map(ChatMessage::plain_text).unwrap_or_default();
    let question = state.conversation.as_ref().map_or("", |conversation| &conversation.question);
    Output { data: data_to_store(&state.steps, question, &reply), ..Output::reply(reply) }
}

/// Returns the value for [`CONVERSATION`] in the graph's input.
pub(crate) fn conversation_value(conversation: &Conversation) -> Value {
    serde_json::to_value(conversation).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_is_complete() {
        assert!(kubeops_graph().mermaid().contains("check"));
    }
}
