use threadkeep::{Agent, ThreadId, Turn, TurnStatus};

use super::{Call, Operation, Watch};

impl Watch {
    /// Begins to watch an assistant answer.
    pub(crate) fn turn<'a>(&'a self, agent: &'a Agent, thread: ThreadId) -> Call<'a> {
        let definition = agent.assistant().definition();
        let mut call = self.call(Operation::InvokeAgent, self.metrics.turns(), &definition.name);
        call.tell(|span| {
            span.text("gen_ai.provider.name", definition.model.provider());
            span.text("gen_ai.request.model", definition.model.name());
            span.text("gen_ai.agent.name", &definition.name);
            span.text("gen_ai.conversation.id", &thread.to_string());
        });
        call
    }
}

impl Call<'_> {
    /// Tells how a turn ended.
    pub(crate) fn told(&mut self, turn: &Turn) {
        self.tell(|span| {
            span.text("gen_ai.response.model", &turn.model);
            span.number("gen_ai.usage.input_tokens", turn.usage.input_tokens);
            span.number("gen_ai.usage.output_tokens", turn.usage.output_tokens);
        });
        match (turn.status, &turn.error) {
            (TurnStatus::Completed, _) => self.ended("completed"),
            (TurnStatus::WaitingForApproval, _) => self.ended("waiting_for_approval"),
            (TurnStatus::Failed, Some(failure)) => self.failed(failure.code.clone()),
            (TurnStatus::Failed, None) => self.failed("failed"),
        }
    }
}
