use threadkeep::{Agent, ThreadId, Turn, TurnStatus};

use super::{Call, Instrumentation, Operation};

impl Instrumentation {
    /// Starts to count and trace a turn.
    pub(crate) fn turn<'a>(&'a self, agent: &'a Agent, thread: ThreadId) -> Call<'a> {
        let definition = agent.assistant().definition();
        let mut call = self.call(Operation::InvokeAgent, self.metrics.turns(), &definition.name);
        call.with_span(|span| {
            span.text("gen_ai.provider.name", definition.model.provider());
            span.text("gen_ai.request.model", definition.model.name());
            span.text("gen_ai.agent.name", &definition.name);
            span.text("gen_ai.conversation.id", &thread.to_string());
        });
        call
    }
}

impl Call<'_> {
    /// Sets the outcome of a turn.
    pub(crate) fn set_turn(&mut self, turn: &Turn) {
        self.with_span(|span| {
            span.text("gen_ai.response.model", &turn.model);
            span.number("gen_ai.usage.input_tokens", turn.usage.input_tokens);
            span.number("gen_ai.usage.output_tokens", turn.usage.output_tokens);
        });
        match (turn.status, &turn.error) {
            (TurnStatus::Completed, _) => self.set_succeeded("completed"),
            (TurnStatus::WaitingForApproval, _) => self.set_succeeded("waiting_for_approval"),
            (TurnStatus::Failed, Some(failure)) => self.set_failed(failure.code.clone()),
            (TurnStatus::Failed, None) => self.set_failed("failed"),
        }
    }
}
