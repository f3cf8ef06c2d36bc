//! An assistant as a program plugs it in: one value that the assistant's crate exports, [`AssistantPlugin`].
//!
//! A program holds a list of such values and reads everything from it: the settings that it shows, the commands that it
//! offers, how an assistant is made, the files that it follows, and which tool answers which of the documents' endpoints.
//! Nothing here knows a command line or HTTP.

mod command;
mod error;
mod lookup;
mod setting;

use std::sync::Arc;

use threadkeep_core::{ChatModel, Embedder};
use threadkeep_memory::Memory;

use crate::Assistant;
pub use command::{
    Argument, ArgumentForm, CommandArguments, CommandCall, CommandFuture, CommandGroup, CommandHost, CommandOutcome,
    PluginCommand,
};
pub use error::{Fault, PluginError};
pub use lookup::Lookup;
pub use setting::{PluginSettings, Setting, SettingDefault, SettingKind};

/// All that a program needs to know of an assistant.
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
    /// Its name: that of the [`Definition`](crate::Definition) that `make` gives, and of its command. ASCII letters, digits,
    /// `-`, `_` and `.`, beginning with a letter or a digit.
    pub name: &'static str,
    /// What it is for, in a sentence; the description of the [`Definition`](crate::Definition).
    pub about: &'static str,
    /// What it does without a language model, as a clause that names it: "the gardener's reads the almanac".
    pub offline: &'static str,
    /// Commands of the program that show what it can do, for the help of those commands.
    pub examples: &'static [Example],
    /// All that it takes from outside. It sees nothing else.
    pub settings: &'static [Setting],
    /// Those of its settings that name a file which it reads when it is made: a server makes it again when such a file
    /// changes.
    pub watched: &'static [Setting],
    /// The one of its settings that holds the key which clients of the documents' endpoints share.
    pub client_key: Option<Setting>,
    /// Makes it. It neither writes nor asks the network.
    pub make: Make,
    /// Looks at what it stands on, such as the files that it reads: a line about it, where there is something to say.
    ///
    /// # Errors
    /// What keeps it from being made.
    pub health: Health,
    /// Its own commands.
    pub commands: Option<CommandGroup>,
    /// Which tools answer the documents' endpoints. The first that applies answers.
    pub lookups: &'static [Lookup],
}

/// Makes an assistant.
pub type Make = fn(AssistantParts, &PluginSettings) -> Result<Arc<dyn Assistant>, PluginError>;

/// Looks at what an assistant stands on.
pub type Health = fn(&PluginSettings) -> Result<Option<String>, PluginError>;

/// What an assistant is made from beside its settings.
#[derive(Clone, Debug)]
pub struct AssistantParts {
    /// The memory, which its agent has as well.
    pub memory: Memory,
    /// The model that speaks; `None` for the assistant's own offline model.
    pub model: Option<Arc<dyn ChatModel>>,
    /// Finds passages by meaning, where one is named.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// A command that shows something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// The command without the program's name, such as `ask gardener 'When do I sow carrots?'`.
    pub command: &'static str,
    /// What it shows, in a few words; empty where the command says it.
    pub shows: &'static str,
}

impl AssistantPlugin {
    /// An assistant without settings, files, commands and endpoints.
    #[must_use]
    pub const fn new(name: &'static str, about: &'static str, make: Make) -> Self {
        Self {
            name,
            about,
            offline: "",
            examples: &[],
            settings: &[],
            watched: &[],
            client_key: None,
            make,
            health: |_| Ok(None),
            commands: None,
            lookups: &[],
        }
    }
}
