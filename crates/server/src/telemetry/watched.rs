use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use threadkeep::{ChatAnswer, ChatModel, ChatRequest, DeltaSink, Finish, ModelError};

use super::{Span, Telemetry};
use crate::operations::metrics::Metrics;

/// A model whose calls are counted and traced, by the conventions for generative models.
#[derive(Clone, Debug)]
pub(crate) struct Watched {
    model: Arc<dyn ChatModel>,
    metrics: Metrics,
    telemetry: Telemetry,
}

impl Watched {
    pub(crate) fn new(model: Arc<dyn ChatModel>, metrics: &Metrics, telemetry: &Telemetry) -> Self {
        Self { model, metrics: metrics.clone(), telemetry: telemetry.clone() }
    }

    fn begin(&self, request: &ChatRequest) -> Option<Span> {
        let mut span = self.telemetry.begin_call()?;
        let model = self.model.name();
        span.named(format!("chat {model}"));
        span.text("gen_ai.operation.name", "chat");
        span.text("gen_ai.request.model", model);
        // The port knows models by name; one that names its provider says so.
        span.text("gen_ai.provider.name", model.split_once(':').map_or("threadkeep", |(provider, _)| provider));
        if let Some(most) = request.max_tokens {
            span.number("gen_ai.request.max_tokens", most);
        }
        if let Some(temperature) = request.temperature {
            span.decimal("gen_ai.request.temperature", temperature);
        }
        Some(span)
    }

    fn end(&self, mut span: Span, answered: &Result<ChatAnswer, ModelError>) {
        match answered {
            Ok(answer) => {
                span.text("gen_ai.response.model", &answer.model);
                span.texts("gen_ai.response.finish_reasons", &[finish(answer.finish)]);
                if let Some(usage) = &answer.usage {
                    span.number("gen_ai.usage.input_tokens", usage.input_tokens);
                    span.number("gen_ai.usage.output_tokens", usage.output_tokens);
                }
            }
            Err(error) => {
                span.text("error.type", error.code());
                span.failed();
            }
        }
        self.telemetry.end(span);
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ChatModel for Watched {
    fn name(&self) -> &str {
        self.model.name()
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let (started, span) = (Instant::now(), self.begin(request));
        let answered = self.model.answer(request, deltas).await;
        let outcome = answered.as_ref().map_or_else(ModelError::code, |_| "answered");
        self.metrics.count_model_call(self.model.name(), outcome, started.elapsed());
        if let Some(usage) = answered.as_ref().ok().and_then(|answer| answer.usage.as_ref()) {
            self.metrics.count_model_tokens(self.model.name(), usage.input_tokens, usage.output_tokens);
        }
        if let Some(span) = span {
            self.end(span, &answered);
        }
        answered
    }
}

fn finish(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        _ => "other",
    }
}
