//! The assistants of the page without a server.

use js_sys::Error;
use threadkeep::agent::plugin::{AssistantParts, PluginSettings};
use threadkeep::{Agent, AssistantPlugin, Memory};
use wasm_bindgen::JsValue;

/// The plugins, which answer without a language model and without a network.
const BUILT_IN: [AssistantPlugin; 1] = [threadkeep_general::PLUGIN];

/// Creates the agents of all assistants.
pub(crate) fn create(memory: &Memory) -> Result<Vec<Agent>, JsValue> {
    BUILT_IN
        .iter()
        .map(|plugin| {
            let parts =
                AssistantParts { memory: memory.clone(), model: None, embedder: None, tool_sources: Vec::new() };
            let assistant = (plugin.make)(parts, &PluginSettings::default());
            let assistant = assistant.map_err(|error| JsValue::from(Error::new(&error.to_string())))?;
            Ok(Agent::with_assistant(memory.clone(), assistant))
        })
        .collect()
}
