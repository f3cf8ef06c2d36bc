//! Calling tools. Every failure becomes a result that the model reads.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use threadkeep_core::{Map, Tool, ToolCall, ToolContext, ToolError, ToolOutput};
use threadkeep_graph::{Outcome, RequestId, ToolOutcome};

use super::EffectExecutor;
use crate::TurnEvent;
use crate::bounded::{bound_output, storable_source};
use crate::record::RecordedEvent;

/// A tool call that may be made.
pub(crate) struct ToolInvocation {
    pub(crate) request: RequestId,
    /// The call, with aliases replaced by the names of the arguments.
    pub(crate) call: ToolCall,
    pub(crate) arguments: Map,
    pub(crate) tool: Arc<dyn Tool>,
    /// The id of the approval that allows the call, for a call with side effects.
    pub(crate) approval: Option<String>,
    /// Whether the call may change something without an approval, and therefore must not be repeated.
    pub(crate) is_once: bool,
}

impl EffectExecutor<'_> {
    pub(crate) async fn call_tool(&self, invocation: ToolInvocation) -> RecordedEvent {
        let ToolInvocation { request, call, arguments, tool, approval, is_once } = invocation;
        let (id, name) = (call.id.clone(), call.name.clone());
        self.emit(TurnEvent::ToolStarted { id, name, arguments: call.arguments.clone() });
        let began = self.now();
        let context = ToolContext {
            scope: self.access.scope.clone(),
            thread: self.access.thread,
            turn: self.turn.clone(),
            call_id: call.id.clone(),
            question: self.question.clone(),
            approval,
            now: began,
        };
        let has_side_effects = is_once || context.approval.is_some();
        let timeout = tool.spec().timeout;
        // A tool that panics fails its own call only.
        let calling = AssertUnwindSafe(tool.call(&context, &arguments)).catch_unwind();
        let result = match self.memory.runtime().timeout(timeout, calling).await {
            Some(Ok(result)) => result.map_err(|error| CallFailure { text: error.to_string(), is_unknown: false }),
            Some(Err(_)) => {
                Err(CallFailure { text: "failed: the tool panicked".to_owned(), is_unknown: has_side_effects })
            }
            None => Err(CallFailure::timed_out(timeout.as_millis(), has_side_effects)),
        };
        let characters = tool.spec().output_characters;
        let recorded = match result {
            Ok(output) => finished_call(request, call, output, characters),
            Err(failure) => refused_call(request, call, &failure.text, failure.is_unknown),
        };
        RecordedEvent { duration_ms: self.ms_since(began), ..recorded }
    }
}

struct CallFailure {
    text: String,
    /// Whether it is unknown if the call took effect.
    is_unknown: bool,
}

impl CallFailure {
    fn timed_out(millis: u128, has_side_effects: bool) -> Self {
        let text = ToolError::Unavailable(format!("no result within {millis} ms")).to_string();
        let text = if has_side_effects { format!("{text}; the call may have taken effect") } else { text };
        Self { text, is_unknown: has_side_effects }
    }
}

/// Records a call that returned a result.
fn finished_call(request: RequestId, call: ToolCall, output: ToolOutput, characters: usize) -> RecordedEvent {
    let ToolOutput { text, value, sources, cached, embedding_calls } = output;
    let bounded = bound_output(&text, characters);
    // If the text is truncated, a value with the same text is omitted, because the full text is stored already.
    let value = value.filter(|value| bounded.full.is_none() || value.as_str() != text);
    let value = value.filter(|value| value.as_str().len() <= threadkeep_core::limits::MAP_BYTES);
    let sources = sources.iter().map(storable_source).collect();
    let outcome = ToolOutcome { call_id: call.id.clone(), output: bounded.visible, is_error: false, value, sources };
    let recorded = RecordedEvent::new(request, Outcome::Tool(outcome), 0);
    RecordedEvent { call: Some(call), full_result: bounded.full, cached, embedding_calls, ..recorded }
}

/// Records a call that failed or was not made.
pub(crate) fn refused_call(request: RequestId, call: ToolCall, text: &str, is_unknown: bool) -> RecordedEvent {
    let output = bound_output(text, threadkeep_core::ToolSpec::OUTPUT_CHARACTERS).visible;
    let outcome = ToolOutcome { call_id: call.id.clone(), output, is_error: true, value: None, sources: Vec::new() };
    RecordedEvent { call: Some(call), is_unknown, ..RecordedEvent::new(request, Outcome::Tool(outcome), 0) }
}
