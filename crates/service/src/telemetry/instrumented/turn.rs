use threadkeep::{Agent, ThreadId, Turn, TurnStatus};

use super::{Call, Instrumentation, Operation};

impl Instrumentation {
    /// Starts to count and trace a turn.
    pub(crate) fn start_turn<'a>(&'a self, agent: &'a Agent, thread: ThreadId) -> Call<'a> {
        let definition = agent.assistant().definition();
        let mut call = self.start_call(Operation::InvokeAgent, self.metrics.turns(), &definition.name);
        call.with_span(|span| {
            span.add_text("gen_ai.provider.name", definition.model.provider());
            span.add_text("gen_ai.request.model", definition.model.name());
            span.add_text("gen_ai.agent.name", &definition.name);
            span.add_text("gen_ai.conversation.id", &thread.to_string());
        });
        call
    }
}

impl Call<'_> {
    /// Sets the outcome of the call to that of a turn.
    pub(crate) fn set_turn_outcome(&mut self, turn: &Turn) {
        self.with_span(|span| {
            span.add_text("gen_ai.response.model", &turn.model);
            span.add_number("gen_ai.usage.input_tokens", turn.usage.input_tokens);
            span.add_number("gen_ai.usage.output_tokens", turn.usage.output_tokens);
        });
        match (turn.status, &turn.error) {
            (TurnStatus::Completed, _) => self.set_succeeded("completed"),
            (TurnStatus::WaitingForApproval, _) => self.set_succeeded("waiting_for_approval"),
            (TurnStatus::Failed, Some(failure)) => self.set_failed(failure.code.clone()),
            (TurnStatus::Failed, None) => self.set_failed("failed"),
        }
    }
}
