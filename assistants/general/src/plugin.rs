use std::sync::Arc;

use threadkeep::agent::plugin::{AssistantPlugin, FailureKind, PluginError};

use crate::assistant::{ABOUT, NAME};
use crate::{General, GeneralOptions};

/// The plugin of the general assistant.
pub const PLUGIN: AssistantPlugin = AssistantPlugin {
    offline_abilities: "the general assistant stores your messages, and quotes your messages and documents",
    uses_tool_sources: true,
    ..AssistantPlugin::new(NAME, ABOUT, |parts, _| {
        let options = GeneralOptions {
            model: parts.model,
            embedder: parts.embedder,
            tool_sources: parts.tool_sources,
            ..GeneralOptions::default()
        };
        let general =
            General::new(&parts.memory, options).map_err(|error| PluginError::new(FailureKind::Setup, error))?;
        Ok(Arc::new(general))
    })
};
