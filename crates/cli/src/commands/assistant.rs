//! Runs the commands that assistants provide, as subcommands of the assistant's name.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, FromArgMatches, Subcommand};
use indicatif::{HumanBytes, ProgressBar};
use threadkeep::AssistantPlugin;
use threadkeep::agent::plugin::{
    Argument, ArgumentForm, CommandArguments, CommandCall, CommandGroup, CommandHost, CommandStore, CommandStoreFuture,
    FailureKind, PluginCommand, PluginError,
};

use super::backup::UnfinishedFile;
use super::{App, Status};
use crate::assistants::{BUILT_IN, lines};
use crate::clock::clock;
use crate::failure::Failure;
use crate::models;
use crate::private;
use crate::progress;
use crate::store::Purpose;
use crate::table::number;

/// The column at which the description of an example starts.
const DESCRIPTION_COLUMN: usize = 48;

/// A command of an assistant, with its arguments.
#[derive(Debug)]
pub(crate) struct Invocation {
    plugin: &'static AssistantPlugin,
    command: &'static PluginCommand,
    arguments: CommandArguments,
}

pub(crate) async fn run(app: &App, invocation: Invocation) -> Result<Status> {
    let Invocation { plugin, command, arguments } = invocation;
    let host = Host { app, bar: Mutex::default() };
    let settings = app.settings.for_plugin(plugin);
    let now = clock(app.global.now).now();
    let outcome = (command.run)(CommandCall { arguments, settings, now, host: &host }).await;
    host.clear();
    let outcome = outcome.map_err(Failure::from)?;
    if app.output.is_json() {
        app.output.json(&outcome.json)?;
    } else {
        app.output.line(outcome.text)?;
        for note in outcome.notes {
            app.output.note(format_args!("{} {note}", app.output.hint_label("note:")));
        }
    }
    Ok(if outcome.has_findings { Status::Findings } else { Status::Done })
}

/// Adds the commands of assistants to the command-line parser.
pub(crate) fn add_commands(program: clap::Command, assistants: &'static [AssistantPlugin]) -> clap::Command {
    let groups = assistants.iter().filter_map(|plugin| Some((plugin.name, plugin.commands.as_ref()?)));
    groups.fold(program, |program, (name, group)| program.subcommand(group_command(name, group)))
}

/// Returns the assistant's command that the parsed arguments invoke, or `None` if they invoke another command.
pub(crate) fn find_invocation(matches: &ArgMatches, assistants: &'static [AssistantPlugin]) -> Option<Invocation> {
    let (name, matches) = matches.subcommand()?;
    let plugin = assistants.iter().find(|plugin| plugin.name == name)?;
    let (name, matches) = matches.subcommand()?;
    let command = plugin.commands.as_ref()?.commands.iter().find(|command| command.name == name)?;
    let given = |argument: &'static Argument| match argument.form {
        ArgumentForm::Flag => matches.get_flag(argument.name).then(String::new),
        _ => matches.get_one::<String>(argument.name).cloned(),
    };
    let arguments = command.arguments.iter().filter_map(|argument| Some((argument.name, given(argument)?)));
    Some(Invocation { plugin, command, arguments: arguments.collect() })
}

fn group_command(name: &'static str, group: &'static CommandGroup) -> clap::Command {
    let command = with_about(name, group.about, group.details)
        .after_help(format!("Examples:{}", lines(group.examples, DESCRIPTION_COLUMN)));
    let command = command.subcommand_required(true).arg_required_else_help(true);
    command.subcommands(group.commands.iter().map(|command| {
        let arguments = command.arguments.iter().map(argument);
        with_about(command.name, command.about, command.details).args(arguments)
    }))
}

fn with_about(name: &'static str, about: &'static str, details: &'static str) -> clap::Command {
    let command = clap::Command::new(name).about(about);
    if details.is_empty() { command } else { command.long_about(format!("{about}\n\n{details}")) }
}

fn argument(argument: &'static Argument) -> Arg {
    let Argument { name, value, form, help } = *argument;
    let arg = Arg::new(name).help(help);
    match form {
        ArgumentForm::Required => arg.value_name(value).required(true),
        ArgumentForm::Optional => arg.value_name(value),
        ArgumentForm::Option => arg.value_name(value).long(name),
        ArgumentForm::Flag => arg.long(name).action(ArgAction::SetTrue),
    }
}

impl FromArgMatches for Invocation {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        find_invocation(matches, BUILT_IN).ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Invocation {
    fn augment_subcommands(program: clap::Command) -> clap::Command {
        add_commands(program, BUILT_IN)
    }

    fn augment_subcommands_for_update(program: clap::Command) -> clap::Command {
        add_commands(program, BUILT_IN)
    }

    fn has_subcommand(name: &str) -> bool {
        BUILT_IN.iter().any(|plugin| plugin.name == name && plugin.commands.is_some())
    }
}

/// The services of this program for an assistant's command: progress bars and files.
#[derive(Debug)]
struct Host<'a> {
    app: &'a App,
    bar: Mutex<Option<Bar>>,
}

/// The progress bar of the current step.
#[derive(Debug)]
enum Bar {
    /// A spinner.
    Waiting(ProgressBar),
    /// A bar that counts bytes.
    Counting(ProgressBar),
}

impl Host<'_> {
    fn update_bar(&self, next: impl FnOnce(Option<Bar>) -> Option<Bar>) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        *bar = next(bar.take());
    }

    fn clear(&self) {
        self.update_bar(|bar| {
            bar.inspect(Bar::clear);
            None
        });
    }

    fn replace(&self, file: &Path, bytes: &[u8]) -> Result<()> {
        let cannot_write = || format!("cannot write {}", file.display());
        private::make_parent_folder(file).with_context(cannot_write)?;
        let unfinished = UnfinishedFile::next_to(self.app, file)?;
        std::fs::write(unfinished.path(), bytes).with_context(cannot_write)?;
        unfinished.rename(file)
    }
}

impl Bar {
    fn clear(&self) {
        let (Self::Waiting(bar) | Self::Counting(bar)) = self;
        bar.finish_and_clear();
    }
}

impl CommandHost for Host<'_> {
    fn begin_step(&self, what: &'static str) {
        self.clear();
        self.update_bar(|_| Some(Bar::Waiting(progress::spinner(what))));
    }

    fn show_bytes(&self, done: u64, total: Option<u64>) {
        self.update_bar(|bar| {
            let progress_bar = match bar {
                Some(Bar::Counting(bar)) => bar,
                waiting => {
                    waiting.inspect(Bar::clear);
                    progress::bytes(total.unwrap_or(0))
                }
            };
            progress_bar.set_position(done);
            Some(Bar::Counting(progress_bar))
        });
    }

    fn open_store(&self) -> CommandStoreFuture<'_> {
        Box::pin(async move {
            let opening = async {
                let embedder = models::embedder(&self.app.settings)?;
                let scope = self.app.scope()?;
                let memory = self.app.open(Purpose::CreateOrWrite).await?.memory;
                Ok(CommandStore { memory, scope, embedder })
            };
            opening.await.map_err(|error: anyhow::Error| PluginError::new(FailureKind::External, error))
        })
    }

    fn replace_file(&self, file: &Path, bytes: &[u8]) -> Result<(), PluginError> {
        self.replace(file, bytes).map_err(|error| PluginError::new(FailureKind::External, error))
    }

    fn format_number(&self, value: u64) -> String {
        number(value)
    }

    fn format_size(&self, bytes: u64) -> String {
        HumanBytes(bytes).to_string()
    }
}
