use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;

use threadkeep_core::{JsonText, Timestamp};

use super::{Example, PluginError, PluginSettings};

/// An assistant's own commands, which a program offers below the assistant's name.
#[derive(Clone, Copy, Debug)]
pub struct CommandGroup {
    /// What they are for, in a line without a period: "Look after the almanac".
    pub about: &'static str,
    /// More about it, in sentences; may be empty.
    pub details: &'static str,
    /// Commands as they are typed; at least one.
    pub examples: &'static [Example],
    /// The commands; at least one.
    pub commands: &'static [PluginCommand],
}

/// One command: what it takes, and what it does.
#[derive(Clone, Copy, Debug)]
pub struct PluginCommand {
    /// The word that is typed: `fetch`.
    pub name: &'static str,
    /// What it does, in a line without a period.
    pub about: &'static str,
    /// More about it, in sentences; may be empty.
    pub details: &'static str,
    /// What it takes, positions in their order.
    pub arguments: &'static [Argument],
    /// Does it.
    pub run: for<'a> fn(CommandCall<'a>) -> CommandFuture<'a>,
}

/// Something that a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name in lower case; of an option what stands behind `--`.
    pub name: &'static str,
    /// What stands for its value in help, in capitals; of a flag nothing.
    pub value: &'static str,
    /// How it is given.
    pub form: ArgumentForm,
    /// What it is, in a line without a period, with what holds where it is not given.
    pub help: &'static str,
}

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgumentForm {
    /// By its position, and it must be given.
    Required,
    /// By its position, and it may be left out.
    Optional,
    /// As `--name VALUE`, and it may be left out.
    Option,
    /// As `--name` without a value.
    Flag,
}

/// What a command was given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandArguments(BTreeMap<&'static str, String>);

impl CommandArguments {
    /// The value of an argument, where it was given; of a flag an empty one.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

impl FromIterator<(&'static str, String)> for CommandArguments {
    fn from_iter<I: IntoIterator<Item = (&'static str, String)>>(given: I) -> Self {
        Self(given.into_iter().collect())
    }
}

/// A command as it is run.
#[derive(Debug)]
pub struct CommandCall<'a> {
    /// What it was given.
    pub arguments: CommandArguments,
    /// The assistant's settings.
    pub settings: PluginSettings,
    /// What counts as now.
    pub now: Timestamp,
    /// The program.
    pub host: &'a dyn CommandHost,
}

/// A command on its way. Where the program ends it, what [`CommandHost::replace_file`] wrote by then is as it was before.
pub type CommandFuture<'a> = Pin<Box<dyn Future<Output = Result<CommandOutcome, PluginError>> + Send + 'a>>;

/// How a command ended that did not fail. The program prints either the text and the notes, or the JSON.
#[derive(Clone, Debug)]
pub struct CommandOutcome {
    /// The result for people, without a newline at its end.
    pub text: String,
    /// What they are told beside the result, each in a line.
    pub notes: Vec<String>,
    /// The same for programs.
    pub json: JsonText,
    /// Whether it found something that the caller has to put right.
    pub has_findings: bool,
}

/// What a program does for the commands of assistants.
pub trait CommandHost: Send + Sync + fmt::Debug {
    /// Shows what is done from here on. It ends when the next step begins, or the command ends.
    fn begin_step(&self, what: &'static str);

    /// Shows how many bytes the step has done, and of how many where that is known.
    fn show_bytes(&self, done: u64, total: Option<u64>);

    /// Puts bytes in the place of a file, and makes its folder where it is missing. Until all of them are on the disk the
    /// file is as it was before, or is not there, even if the program is ended meanwhile.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    fn replace_file(&self, file: &Path, bytes: &[u8]) -> Result<(), PluginError>;

    /// A number as the program writes it for people.
    fn number(&self, number: u64) -> String;

    /// A number of bytes as the program writes it for people.
    fn size(&self, bytes: u64) -> String;
}
