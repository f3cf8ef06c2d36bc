use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::{Map, Tool, ToolContext, ToolEffect, ToolError, ToolOutput, ToolSpec};

use super::{ANSWERED, Instrumentation, Operation};

/// An instrumented tool. Spans contain its name and outcome, but neither arguments nor results.
#[derive(Debug)]
pub(super) struct InstrumentedTool {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) instrumentation: Instrumentation,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Tool for InstrumentedTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn effect(&self, arguments: &Map) -> ToolEffect {
        self.tool.effect(arguments)
    }

    async fn call(&self, context: &ToolContext, arguments: &Map) -> Result<ToolOutput, ToolError> {
        let name = self.spec().name();
        let mut call =
            self.instrumentation.start_call(Operation::ExecuteTool, self.instrumentation.metrics.tools(), name);
        call.with_span(|span| {
            span.add_text("gen_ai.tool.name", name);
            span.add_text("gen_ai.tool.type", "function");
        });
        let result = call.in_scope(self.tool.call(context, arguments)).await;
        match &result {
            Ok(_) => call.set_succeeded(ANSWERED),
            Err(error) => call.set_failed(error_code(error)),
        }
        result
    }
}

fn error_code(error: &ToolError) -> &'static str {
    match error {
        ToolError::Arguments(_) => "invalid_arguments",
        ToolError::NotFound(_) => "not_found",
        ToolError::Denied(_) => "denied",
        ToolError::Unavailable(_) => "unavailable",
        _ => "failed",
    }
}
