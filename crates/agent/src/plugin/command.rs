use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use threadkeep_core::{Embedder, JsonText, Scope, Timestamp};
use threadkeep_memory::Memory;

use super::{Example, PluginError, PluginSettings};

/// An assistant's own commands, which a program offers as subcommands of the assistant's name.
#[derive(Clone, Copy, Debug)]
pub struct CommandGroup {
    /// The purpose of the commands, as a line without a period: "Manage the almanac".
    pub about: &'static str,
    /// Further help, in sentences; may be empty.
    pub details: &'static str,
    /// Example commands; at least one.
    pub examples: &'static [Example],
    /// The commands; at least one.
    pub commands: &'static [PluginCommand],
}

/// A command: its arguments and its function.
#[derive(Clone, Copy, Debug)]
pub struct PluginCommand {
    /// The command's name: `fetch`.
    pub name: &'static str,
    /// What it does, as a line without a period.
    pub about: &'static str,
    /// Further help, in sentences; may be empty.
    pub details: &'static str,
    /// Its arguments, positional ones in their order.
    pub arguments: &'static [Argument],
    /// Runs the command.
    pub run: for<'a> fn(CommandCall<'a>) -> CommandFuture<'a>,
}

/// An argument of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name in lower case; for an option, the part after `--`.
    pub name: &'static str,
    /// The placeholder for its value in help text, in capitals; empty for a flag.
    pub value: &'static str,
    /// How it is passed.
    pub form: ArgumentForm,
    /// Its description, as a line without a period; includes its default.
    pub help: &'static str,
}

/// How an argument is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentForm {
    /// Positional and required.
    Required,
    /// Positional and optional.
    Optional,
    /// `--name VALUE`, optional.
    Option,
    /// `--name`, without a value.
    Flag,
}

/// The arguments of a command call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandArguments(BTreeMap<&'static str, String>);

impl CommandArguments {
    /// Returns the value of an argument; an empty string for a flag. `None` if the argument was not passed.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl FromIterator<(&'static str, String)> for CommandArguments {
    fn from_iter<I: IntoIterator<Item = (&'static str, String)>>(arguments: I) -> Self {
        Self(arguments.into_iter().collect())
    }
}

/// A command call.
#[derive(Debug)]
pub struct CommandCall<'a> {
    /// The arguments.
    pub arguments: CommandArguments,
    /// The assistant's settings.
    pub settings: PluginSettings,
    /// The current time.
    pub now: Timestamp,
    /// The program.
    pub host: &'a dyn CommandHost,
}

/// The future of a command call. It may be dropped at any time: [`CommandHost::replace_file`] never leaves a partial file.
pub type CommandFuture<'a> = Pin<Box<dyn Future<Output = Result<CommandOutcome, PluginError>> + Send + 'a>>;

/// The result of a command that succeeded. The program prints either the text and the notes, or the JSON.
#[derive(Clone, Debug)]
pub struct CommandOutcome {
    /// The result for people, without a trailing newline.
    pub text: String,
    /// Notes in addition to the result, one line each.
    pub notes: Vec<String>,
    /// The result for programs.
    pub json: JsonText,
    /// Whether the command found something that the caller must correct.
    pub has_findings: bool,
}

/// The store of a program, as commands of assistants use it.
#[derive(Clone, Debug)]
pub struct CommandStore {
    /// The memory.
    pub memory: Memory,
    /// The scope of the command.
    pub scope: Scope,
    /// The embedder, if one is configured.
    pub embedder: Option<Arc<dyn Embedder>>,
}

/// The future of [`CommandHost::open_store`].
pub type CommandStoreFuture<'a> = Pin<Box<dyn Future<Output = Result<CommandStore, PluginError>> + Send + 'a>>;

/// The services that a program provides to the commands of assistants.
pub trait CommandHost: Send + Sync + fmt::Debug {
    /// Displays the start of a step, described by `what`. The step ends when the next one starts or the command ends.
    fn begin_step(&self, what: &'static str);

    /// Displays how many bytes the current step has processed, and the total if it is known.
    fn show_bytes(&self, done: u64, total: Option<u64>);

    /// Opens the program's store, and creates it if it is missing.
    ///
    /// # Errors
    /// The store cannot be opened, or a setting is invalid.
    fn open_store(&self) -> CommandStoreFuture<'_>;

    /// Replaces a file atomically and durably, and creates its folder if it is missing. Until all bytes are on the disk, the
    /// file keeps its previous content or does not exist, even if the program is terminated.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    fn replace_file(&self, file: &Path, bytes: &[u8]) -> Result<(), PluginError>;

    /// Formats a number for people.
    fn format_number(&self, number: u64) -> String;

    /// Formats a number of bytes for people.
    fn format_size(&self, bytes: u64) -> String;
}
