//! Plugins: the crate of each assistant exports one value, an [`AssistantPlugin`].
//!
//! A program has a list of plugins. They describe the settings that the program displays, the commands that it offers, how
//! assistants are created, the files that it watches, and the tools that answer lookup endpoints. This module does not depend on a
//! command line or on HTTP.

mod command;
mod error;
mod lookup;
mod network_map;
mod setting;

use std::sync::Arc;

use threadkeep_core::{ChatModel, Embedder, ToolSource};
use threadkeep_memory::{Memory, Retention};

use crate::Assistant;
pub use command::{
    Argument, ArgumentForm, CommandArguments, CommandCall, CommandFuture, CommandGroup, CommandHost, CommandOutcome,
    CommandStore, CommandStoreFuture, PluginCommand,
};
pub use error::{FailureKind, PluginError};
pub use lookup::Lookup;
pub use network_map::{MapLine, MapOf, MapStation, NetworkMap};
pub use setting::{PluginSettings, Setting, SettingDefault, SettingKind};

/// Everything that a program needs in order to offer an assistant.
///
/// ```
/// use std::sync::Arc;
///
/// use threadkeep_agent::Definition;
/// use threadkeep_agent::plugin::{AssistantPlugin, Setting, SettingDefault, SettingKind};
///
/// const ALMANAC: Setting = Setting {
///     variable: "GARDENER_ALMANAC",
///     key: "gardener.almanac",
///     kind: SettingKind::File,
///     help: "the file with the days for sowing",
///     default: SettingDefault::DataFile("gardener.almanac"),
/// };
///
/// pub const PLUGIN: AssistantPlugin = AssistantPlugin {
///     settings: &[ALMANAC],
///     watched: &[ALMANAC],
///     ..AssistantPlugin::new("gardener", "Knows the allotment.", |parts, _| {
///         let model = parts.model.unwrap_or_else(|| Arc::new(threadkeep_models::ScriptedModel::new()));
///         Ok(Arc::new(Definition::new("gardener", model)))
///     })
/// };
/// ```
#[derive(Clone, Copy, Debug)]
pub struct AssistantPlugin {
    /// The assistant's name, as in the [`Definition`](crate::Definition) that `make` returns and in its command. ASCII
    /// letters, digits, `-`, `_` and `.`, starting with a letter or a digit.
    pub name: &'static str,
    /// Its purpose, as a sentence; the description of the [`Definition`](crate::Definition).
    pub about: &'static str,
    /// What its offline model does, as the end of a sentence about offline models: "the gardener's reads the almanac".
    pub offline_abilities: &'static str,
    /// Examples for the help of the program's commands.
    pub examples: &'static [Example],
    /// All settings of the assistant. It has no other configuration.
    pub settings: &'static [Setting],
    /// The settings that name a file which `make` reads. A server creates the assistant again when one of these files changes.
    pub watched: &'static [Setting],
    /// The setting with the key that clients of the lookup endpoints share.
    pub client_key: Option<Setting>,
    /// Creates the assistant. It must not write files or use the network.
    pub make: Make,
    /// Checks the assistant's dependencies, such as its files. Returns a line to display, if there is anything to report.
    ///
    /// # Errors
    /// The reason why the assistant cannot be created.
    pub health: Health,
    /// Returns how long its conversations are kept, if the assistant determines this instead of the program.
    ///
    /// # Errors
    /// The reason why the assistant cannot be created.
    pub retention: RetentionOf,
    /// Its own commands.
    pub commands: Option<CommandGroup>,
    /// The tools that answer lookup endpoints. The first lookup that applies to a request answers it.
    pub lookups: &'static [Lookup],
    /// Whether its model may call the tools that the operator adds, such as those of MCP servers.
    pub uses_tool_sources: bool,
    /// The map of the network that its answers are about.
    pub network_map: Option<MapOf>,
}

/// Creates an assistant.
pub type Make = fn(AssistantParts, &PluginSettings) -> Result<Arc<dyn Assistant>, PluginError>;

/// Returns how long the conversations of an assistant are kept.
pub type RetentionOf = fn(&PluginSettings) -> Result<Option<Retention>, PluginError>;

/// Checks the dependencies of an assistant.
pub type Health = fn(&PluginSettings) -> Result<Option<String>, PluginError>;

/// The values from which an assistant is created, in addition to its settings.
#[derive(Clone, Debug)]
pub struct AssistantParts {
    /// The memory, shared with its agent.
    pub memory: Memory,
    /// The model that writes its replies; `None` for the assistant's own offline model.
    pub model: Option<Arc<dyn ChatModel>>,
    /// The embedder, if one is configured. With an embedder, passages are also found by meaning.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// The operator's further tools, for assistants whose plugin sets `uses_tool_sources`.
    pub tool_sources: Vec<Arc<dyn ToolSource>>,
}

/// An example command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The command without the program's name, such as `ask gardener 'When do I sow carrots?'`.
    pub command: &'static str,
    /// What it demonstrates, in a few words; empty if the command is self-explanatory.
    pub shows: &'static str,
}

impl AssistantPlugin {
    /// Creates a plugin without settings, watched files, commands, lookup endpoints or a map.
    #[must_use]
    pub const fn new(name: &'static str, about: &'static str, make: Make) -> Self {
        Self {
            name,
            about,
            offline_abilities: "",
            examples: &[],
            settings: &[],
            watched: &[],
            client_key: None,
            make,
            health: |_| Ok(None),
            retention: |_| Ok(None),
            commands: None,
            lookups: &[],
            uses_tool_sources: false,
            network_map: None,
        }
    }
}
