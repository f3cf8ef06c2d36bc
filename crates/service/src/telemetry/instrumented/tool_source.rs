use std::sync::Arc;

use async_trait::async_trait;
use threadkeep::{Tool, ToolSource};

use super::Instrumentation;

/// A source whose tools are instrumented.
#[derive(Debug)]
pub(super) struct InstrumentedToolSource {
    pub(super) source: Arc<dyn ToolSource>,
    pub(super) instrumentation: Instrumentation,
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ToolSource for InstrumentedToolSource {
    async fn wait_until_ready(&self) {
        self.source.wait_until_ready().await;
    }

    fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.source.tools().into_iter().map(|tool| self.instrumentation.wrap_tool(tool)).collect()
    }
}
