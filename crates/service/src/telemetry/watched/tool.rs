use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::{Map, Tool, ToolContext, ToolEffect, ToolError, ToolOutput, ToolSpec};

use super::{ANSWERED, Operation, Watch};

/// A tool whose calls are watched: its name and what became of them, never what it was given or gave.
#[derive(Debug)]
pub(super) struct WatchedTool {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) watch: Watch,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Tool for WatchedTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn effect(&self, arguments: &Map) -> ToolEffect {
        self.tool.effect(arguments)
    }

    async fn call(&self, context: &ToolContext, arguments: &Map) -> Result<ToolOutput, ToolError> {
        let name = self.spec().name();
        let mut call = self.watch.call(Operation::ExecuteTool, self.watch.metrics.tools(), name);
        call.tell(|span| {
            span.text("gen_ai.tool.name", name);
            span.text("gen_ai.tool.type", "function");
        });
        let called = call.around(self.tool.call(context, arguments)).await;
        match &called {
            Ok(_) => call.ended(ANSWERED),
            Err(error) => call.failed(code(error)),
        }
        called
    }
}

fn code(error: &ToolError) -> &'static str {
    match error {
        ToolError::Arguments(_) => "invalid_arguments",
        ToolError::NotFound(_) => "not_found",
        ToolError::Denied(_) => "denied",
        ToolError::Unavailable(_) => "unavailable",
        _ => "failed",
    }
}
