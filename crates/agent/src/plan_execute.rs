//! Plan, execute, synthesise: a graph for questions that take several steps.
//!
//! A model writes a plan. Each step of the plan lists the tools that may be called for it. A step is carried out by tool calls,
//! checked, and retried a limited number of times; then a model writes the answer from the results. The plan is stored with the reply,
//! so that follow-up questions can refine it.

mod todo;

use threadkeep_core::{ChatAnswer, ChatMessage, JsonText, Map, Part, Role, Source, ToolCall, ToolChoice, Value};
use threadkeep_graph::{END, Graph, History, ModelRequest, Node, Output, START, ToolOutcome, ToolSelection, state};

pub use todo::{Step, StepState};

use crate::result_message;
use todo::{Plan, read_plan};

/// Maximum number of retries of a failed step.
const MAX_RETRIES: u32 = 2;
/// Maximum number of steps in a plan.
const MAX_STEPS: usize = 12;

const PLANNING: &str = "Plan how to answer the user's last message with the available tools. Answer with JSON only: \
    {\"intent\": \"what the user wants\", \"steps\": [{\"what\": \"what to find out\", \"tools\": [\"name of a tool\"]}]}. \
    Use as few steps as possible, and none if the answer needs no tool. A plan from earlier in the conversation is \
    refined rather than started again: leave out what is already known.";
const EXECUTING: &str = "Carry out this one step of the plan by calling its tools, and nothing else.";
const SYNTHESISING: &str = "Answer the user's last message from the results of the plan's steps, briefly. Say what could \
    not be found out. Do not invent anything.";

state! {
    /// The state of a turn of [`plan_execute_synthesise`].
    pub struct PlanExecute (update PlanExecuteUpdate) {
        /// The user's question.
        replace question: String,
        /// The steps and their states.
        replace steps: Vec<Step>,
        /// What the user wants, in the planner's words.
        replace intent: String,
        /// The tool calls and results of this turn, and the answer.
        append messages: ChatMessage,
        /// The sources of the results.
        append sources: Source,
    }
}

/// Builds the graph `START → plan → execute ⇄ tools → synthesise`. It continues to `synthesise` when no step is open.
///
/// # Panics
/// Never: the graph is complete, which a test checks.
#[must_use]
pub fn plan_execute_synthesise() -> Graph<PlanExecute> {
    let begin =
        |input: &threadkeep_graph::Input| PlanExecute { question: input.question.clone(), ..PlanExecute::default() };
    Graph::<PlanExecute>::builder("plan_execute_synthesise", 1, begin)
        .node("plan", Node::model(request_plan, set_plan))
        .node("execute", Node::model(request_step, add_step_calls))
        .node("tools", Node::tools(open_calls, add_results))
        .node("synthesise", Node::model(request_answer, add_answer))
        .edge(START, "plan")
        .branch("plan", ["execute", "synthesise"], next_node)
        .branch("execute", ["tools", "execute", "synthesise"], |state| {
            if open_calls(state).is_empty() { next_node(state) } else { "tools" }
        })
        .branch("tools", ["execute", "synthesise"], next_node)
        .edge("synthesise", END)
        .max_steps(2 + 2 * MAX_STEPS as u32 * (1 + MAX_RETRIES))
        .messages(|state| &state.messages)
        .finish(finish)
        .expect("the graph is complete")
}

fn next_node(state: &PlanExecute) -> &'static str {
    if state.steps.iter().any(|step| step.state == StepState::Open) { "execute" } else { "synthesise" }
}

fn request_plan(_: &PlanExecute) -> ModelRequest {
    ModelRequest { tool_choice: ToolChoice::None, ..ModelRequest::default() }.with_instructions(PLANNING)
}

/// Parses the plan. An invalid plan is replaced by a plan without steps, so that the question is answered without tools.
fn set_plan(_: &PlanExecute, answer: ChatAnswer) -> PlanExecuteUpdate {
    let Plan { intent, mut steps } = read_plan(&answer.text()).unwrap_or_default();
    steps.truncate(MAX_STEPS);
    PlanExecuteUpdate { intent: Some(intent), steps: Some(steps), ..PlanExecuteUpdate::default() }
}

fn request_step(state: &PlanExecute) -> ModelRequest {
    let Some(step) = state.steps.iter().find(|step| step.state == StepState::Open) else {
        return ModelRequest::default();
    };
    let failure = step.last_error.as_ref().map(|error| format!("\nIt failed before: {error}")).unwrap_or_default();
    let task = format!("{EXECUTING}\nStep: {}\nTools: {}{failure}", step.what, step.tools.join(", "));
    ModelRequest { messages: state.messages.clone(), history: History::Conversation, ..ModelRequest::default() }
        .with_instructions(task)
        .with_tools(ToolSelection::Only(step.tools.clone()))
}

/// Adds the calls of the step's tools to the messages. If there is none, the attempt has failed.
fn add_step_calls(state: &PlanExecute, answer: ChatAnswer) -> PlanExecuteUpdate {
    let mut steps = state.steps.clone();
    let Some(step) = steps.iter_mut().find(|step| step.state == StepState::Open) else {
        return PlanExecuteUpdate::default();
    };
    let allowed: Vec<Part> = answer.parts.iter().filter(|part| is_call_of(part, &step.tools)).cloned().collect();
    if allowed.is_empty() {
        step.fail("none of its tools was called", MAX_RETRIES);
        return PlanExecuteUpdate { steps: Some(steps), ..PlanExecuteUpdate::default() };
    }
    let message = ChatMessage { role: Role::Assistant, author: None, parts: allowed, seq: None };
    PlanExecuteUpdate { messages: vec![message], ..PlanExecuteUpdate::default() }
}

fn is_call_of(part: &Part, tools: &[String]) -> bool {
    matches!(part, Part::ToolCall(call) if tools.contains(&call.name))
}

/// Returns the calls in the last message, which have not been made yet.
fn open_calls(state: &PlanExecute) -> Vec<ToolCall> {
    state.messages.last().into_iter().flat_map(ChatMessage::tool_calls).cloned().collect()
}

/// Adds the results to the messages. The step is done if at least one of its calls succeeded.
fn add_results(state: &PlanExecute, results: Vec<ToolOutcome>) -> PlanExecuteUpdate {
    let mut steps = state.steps.clone();
    if let Some(step) = steps.iter_mut().find(|step| step.state == StepState::Open) {
        let error = results.iter().find(|result| result.is_error).map(|result| result.output.clone());
        match error.filter(|_| results.iter().all(|result| result.is_error)) {
            Some(error) => step.fail(&error, MAX_RETRIES),
            None => step.state = StepState::Done,
        }
    }
    let sources = results.iter().flat_map(|result| result.sources.clone()).collect();
    let messages = results.into_iter().map(result_message).collect();
    PlanExecuteUpdate { steps: Some(steps), messages, sources, ..PlanExecuteUpdate::default() }
}

fn request_answer(state: &PlanExecute) -> ModelRequest {
    let failed = state.steps.iter().filter(|step| step.state == StepState::Failed);
    let failed: Vec<String> = failed.map(|step| format!("- {}", step.what)).collect();
    let failed = if failed.is_empty() { String::new() } else { format!("\nNot found out:\n{}", failed.join("\n")) };
    ModelRequest { tool_choice: ToolChoice::None, ..ModelRequest::reply(&state.messages) }
        .with_instructions(format!("{SYNTHESISING}{failed}"))
        .with_tools(ToolSelection::None)
}

fn add_answer(_: &PlanExecute, answer: ChatAnswer) -> PlanExecuteUpdate {
    PlanExecuteUpdate { messages: vec![answer.message()], ..PlanExecuteUpdate::default() }
}

fn finish(state: &PlanExecute) -> Output {
    let reply = state.messages.last().map(ChatMessage::plain_text).unwrap_or_default();
    let steps = serde_json::to_value(&state.steps).unwrap_or_default();
    let plan =
        Map::from_iter([("intent".to_owned(), Value::String(state.intent.clone())), ("steps".to_owned(), steps)]);
    let data = Map::from_iter([("plan".to_owned(), Value::Object(plan))]);
    let data = Some(JsonText::from(&Value::Object(data)));
    Output { sources: state.sources.clone(), data, ..Output::reply(reply) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graph_is_complete() {
        insta::assert_snapshot!(plan_execute_synthesise().mermaid(), @"
        flowchart TD
            START([START])
            plan{{plan}}
            execute{{execute}}
            tools[[tools]]
            synthesise{{synthesise}}
            END([END])
            START --> plan
            plan -.-> execute
            plan -.-> synthesise
            execute -.-> tools
            execute -.-> execute
            execute -.-> synthesise
            tools -.-> execute
            tools -.-> synthesise
            synthesise --> END
        ");
    }
}
