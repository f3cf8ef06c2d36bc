//! Calling tools. Whatever goes wrong becomes a result that the model reads.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use threadkeep_core::{Map, Tool, ToolCall, ToolContext, ToolError, ToolOutput};
use threadkeep_graph::{Outcome, RequestId, ToolOutcome};

use super::Workshop;
use crate::TurnEvent;
use crate::bounded::{bound_output, storable_source};
use crate::record::Recorded;

/// A call that may be made.
pub(crate) struct Admitted {
    pub(crate) request: RequestId,
    /// With its arguments by their own names.
    pub(crate) call: ToolCall,
    pub(crate) arguments: Map,
    pub(crate) tool: Arc<dyn Tool>,
    /// The approval that allows it, for a call that changes the world.
    pub(crate) approval: Option<String>,
}

impl Workshop<'_> {
    pub(crate) async fn call_tool(&self, admitted: Admitted) -> Recorded {
        let Admitted { request, call, arguments, tool, approval } = admitted;
        let (id, name) = (call.id.clone(), call.name.clone());
        self.tell(TurnEvent::ToolStarted { id, name, arguments: call.arguments.clone() });
        let began = self.now();
        let context = ToolContext {
            scope: self.place.scope.clone(),
            thread: self.place.thread,
            turn: self.turn.clone(),
            call_id: call.id.clone(),
            question: self.question.clone(),
            approval,
            now: began,
        };
        let changes_world = context.approval.is_some();
        let timeout = tool.spec().timeout;
        // A tool that panics breaks its own call, and nothing else.
        let calling = AssertUnwindSafe(tool.call(&context, &arguments)).catch_unwind();
        let result = match self.memory.runtime().timeout(timeout, calling).await {
            Some(Ok(result)) => result.map_err(|error| Trouble { text: error.to_string(), is_unknown: false }),
            Some(Err(_)) => Err(Trouble { text: "failed: the tool broke".to_owned(), is_unknown: changes_world }),
            None => Err(Trouble::timed_out(timeout.as_millis(), changes_world)),
        };
        let characters = tool.spec().output_characters;
        let recorded = match result {
            Ok(output) => given(request, call, output, characters),
            Err(trouble) => refused(request, call, &trouble.text, trouble.is_unknown),
        };
        Recorded { duration_ms: self.since(began), ..recorded }
    }
}

struct Trouble {
    text: String,
    is_unknown: bool,
}

impl Trouble {
    fn timed_out(millis: u128, changes_world: bool) -> Self {
        let text = ToolError::Unavailable(format!("no result within {millis} ms")).to_string();
        let text = if changes_world { format!("{text}; it is unknown whether it was done") } else { text };
        Self { text, is_unknown: changes_world }
    }
}

/// What is recorded of a result.
fn given(request: RequestId, call: ToolCall, output: ToolOutput, characters: usize) -> Recorded {
    let ToolOutput { text, value, sources, cached, embedding_calls } = output;
    let bounded = bound_output(&text, characters);
    // A value that says no more than a text which was cut would keep the whole of it twice.
    let value = value.filter(|value| bounded.whole.is_none() || value.as_str() != text);
    let value = value.filter(|value| value.as_str().len() <= threadkeep_core::limits::MAP_BYTES);
    let sources = sources.iter().map(storable_source).collect();
    let outcome = ToolOutcome { call_id: call.id.clone(), output: bounded.shown, is_error: false, value, sources };
    let recorded = Recorded::new(request, Outcome::Tool(outcome), 0);
    Recorded { call: Some(call), whole: bounded.whole, cached, embedding_calls, ..recorded }
}

/// What is recorded of a call that gave nothing, or was not made.
pub(crate) fn refused(request: RequestId, call: ToolCall, text: &str, is_unknown: bool) -> Recorded {
    let output = bound_output(text, threadkeep_core::ToolSpec::OUTPUT_CHARACTERS).shown;
    let outcome = ToolOutcome { call_id: call.id.clone(), output, is_error: true, value: None, sources: Vec::new() };
    Recorded { call: Some(call), is_unknown, ..Recorded::new(request, Outcome::Tool(outcome), 0) }
}
