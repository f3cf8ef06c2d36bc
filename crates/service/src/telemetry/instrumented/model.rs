use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::{ChatAnswer, ChatModel, ChatRequest, DeltaSink, Finish, ModelError};

use super::{ANSWERED, Instrumentation, Operation};
use crate::telemetry::Span;

/// An instrumented model.
#[derive(Debug)]
pub(super) struct InstrumentedModel {
    pub(super) model: Arc<dyn ChatModel>,
    pub(super) instrumentation: Instrumentation,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for InstrumentedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn ignored(&self, request: &ChatRequest) -> Option<&'static str> {
        self.model.ignored(request)
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let metrics = &self.instrumentation.metrics;
        let mut call = self.instrumentation.start_call(Operation::Chat, metrics.models(), self.name());
        call.with_span(|span| self.add_request_attributes(span, request));
        let result = self.model.answer(request, deltas).await;
        match &result {
            Ok(answer) => {
                if let Some(usage) = &answer.usage {
                    metrics.count_model_tokens(self.name(), usage.input_tokens, usage.output_tokens);
                }
                call.with_span(|span| add_answer_attributes(span, answer));
                call.set_succeeded(ANSWERED);
            }
            Err(error) => call.set_failed(error.code()),
        }
        result
    }
}

impl InstrumentedModel {
    fn add_request_attributes(&self, span: &mut Span, request: &ChatRequest) {
        span.add_text("gen_ai.provider.name", self.provider());
        span.add_text("gen_ai.request.model", self.name());
        if let Some(max_tokens) = request.max_tokens {
            span.add_number("gen_ai.request.max_tokens", max_tokens);
        }
        if let Some(temperature) = request.temperature {
            span.add_decimal("gen_ai.request.temperature", temperature);
        }
    }
}

fn add_answer_attributes(span: &mut Span, answer: &ChatAnswer) {
    span.add_text("gen_ai.response.model", &answer.model);
    span.add_texts("gen_ai.response.finish_reasons", &[finish_reason(answer.finish)]);
    if let Some(usage) = &answer.usage {
        span.add_number("gen_ai.usage.input_tokens", usage.input_tokens);
        span.add_number("gen_ai.usage.output_tokens", usage.output_tokens);
    }
}

fn finish_reason(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        _ => "other",
    }
}
