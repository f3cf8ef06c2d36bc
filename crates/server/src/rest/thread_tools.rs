//! The tools that assistants may call in a thread.

pub(crate) mod get;
pub(crate) mod put;

use serde::Serialize;
use threadkeep::ThreadConfig;
use utoipa::ToSchema;

/// The tools that assistants may call in a thread.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThreadToolsJson {
    /// The only tools that may be called. `null` for all tools that the assistant has.
    enabled: Option<Vec<String>>,
    /// The tools that are switched off.
    disabled: Vec<String>,
}

impl From<ThreadConfig> for ThreadToolsJson {
    fn from(config: ThreadConfig) -> Self {
        Self { enabled: config.enabled_tools, disabled: config.disabled_tools }
    }
}
