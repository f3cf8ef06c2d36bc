use std::sync::Arc;

use threadkeep::agent::plugin::{AssistantPlugin, Example};

use crate::assistant::{ABOUT, NAME};
use crate::commands::COMMANDS;
use crate::{Corpus, TesisAssistant, TesisOptions};

/// The plugin of the assistant.
pub const PLUGIN: AssistantPlugin = AssistantPlugin {
    offline_abilities: "the legal assistant quotes the tesis that it finds",
    examples: &[Example { command: "ask tesis '¿Qué es el amparo indirecto?'", shows: "" }],
    commands: Some(COMMANDS),
    ..AssistantPlugin::new(NAME, ABOUT, |parts, _| {
        let options = TesisOptions { model: parts.model, embedder: parts.embedder };
        Ok(Arc::new(TesisAssistant::new(&parts.memory, Corpus::new(&parts.memory), options)))
    })
};
