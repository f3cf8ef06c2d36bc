//! The commands that assistants bring, each below its assistant's name.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, FromArgMatches, Subcommand};
use indicatif::{HumanBytes, ProgressBar};
use threadkeep::AssistantPlugin;
use threadkeep::agent::plugin::{
    Argument, ArgumentForm, CommandArguments, CommandCall, CommandGroup, CommandHost, Fault, PluginCommand, PluginError,
};

use super::backup::Unfinished;
use super::{App, Status};
use crate::assistants::{BUILT_IN, lines};
use crate::clock::clock;
use crate::failure::Failure;
use crate::private;
use crate::progress;
use crate::table::number;

/// The column at which an example's words begin.
const SHOWS: usize = 48;

/// A command of an assistant, and what it was given.
#[derive(Debug)]
pub(crate) struct Called {
    plugin: &'static AssistantPlugin,
    command: &'static PluginCommand,
    arguments: CommandArguments,
}

pub(crate) async fn run(app: &App, called: Called) -> Result<Status> {
    let Called { plugin, command, arguments } = called;
    let host = Host { app, bar: Mutex::default() };
    let settings = app.settings.of(plugin);
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

/// The program with the commands of these assistants.
pub(crate) fn with_commands_of(program: clap::Command, assistants: &'static [AssistantPlugin]) -> clap::Command {
    let groups = assistants.iter().filter_map(|plugin| Some((plugin.name, plugin.commands.as_ref()?)));
    groups.fold(program, |program, (name, group)| program.subcommand(described(name, group)))
}

/// Reads which command of these assistants was called.
pub(crate) fn called(matches: &ArgMatches, assistants: &'static [AssistantPlugin]) -> Option<Called> {
    let (name, matches) = matches.subcommand()?;
    let plugin = assistants.iter().find(|plugin| plugin.name == name)?;
    let (name, matches) = matches.subcommand()?;
    let command = plugin.commands.as_ref()?.commands.iter().find(|command| command.name == name)?;
    let given = |argument: &'static Argument| match argument.form {
        ArgumentForm::Flag => matches.get_flag(argument.name).then(String::new),
        _ => matches.get_one::<String>(argument.name).cloned(),
    };
    let arguments = command.arguments.iter().filter_map(|argument| Some((argument.name, given(argument)?)));
    Some(Called { plugin, command, arguments: arguments.collect() })
}

fn described(name: &'static str, group: &'static CommandGroup) -> clap::Command {
    let command =
        titled(name, group.about, group.details).after_help(format!("Examples:{}", lines(group.examples, SHOWS)));
    let command = command.subcommand_required(true).arg_required_else_help(true);
    command.subcommands(group.commands.iter().map(|command| {
        let arguments = command.arguments.iter().map(argument);
        titled(command.name, command.about, command.details).args(arguments)
    }))
}

fn titled(name: &'static str, about: &'static str, details: &'static str) -> clap::Command {
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

impl FromArgMatches for Called {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        called(matches, BUILT_IN).ok_or_else(|| clap::Error::new(ErrorKind::MissingSubcommand))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl Subcommand for Called {
    fn augment_subcommands(program: clap::Command) -> clap::Command {
        with_commands_of(program, BUILT_IN)
    }

    fn augment_subcommands_for_update(program: clap::Command) -> clap::Command {
        with_commands_of(program, BUILT_IN)
    }

    fn has_subcommand(name: &str) -> bool {
        BUILT_IN.iter().any(|plugin| plugin.name == name && plugin.commands.is_some())
    }
}

/// What this program does for a command.
#[derive(Debug)]
struct Host<'a> {
    app: &'a App,
    bar: Mutex<Option<Bar>>,
}

/// What shows the step that is at work.
#[derive(Debug)]
enum Bar {
    Waiting(ProgressBar),
    Counting(ProgressBar),
}

impl Host<'_> {
    fn show(&self, next: impl FnOnce(Option<Bar>) -> Option<Bar>) {
        let mut bar = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        *bar = next(bar.take());
    }

    fn clear(&self) {
        self.show(|bar| {
            bar.inspect(Bar::clear);
            None
        });
    }

    fn replace(&self, file: &Path, bytes: &[u8]) -> Result<()> {
        let unwritten = || format!("{} cannot be written", file.display());
        private::make_folder_of(file).with_context(unwritten)?;
        let unfinished = Unfinished::beside(self.app, file)?;
        std::fs::write(unfinished.path(), bytes).with_context(unwritten)?;
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
        self.show(|_| Some(Bar::Waiting(progress::spinner(what))));
    }

    fn show_bytes(&self, done: u64, total: Option<u64>) {
        self.show(|bar| {
            let counting = match bar {
                Some(Bar::Counting(bar)) => bar,
                waiting => {
                    waiting.inspect(Bar::clear);
                    progress::bytes(total.unwrap_or(0))
                }
            };
            counting.set_position(done);
            Some(Bar::Counting(counting))
        });
    }

    fn replace_file(&self, file: &Path, bytes: &[u8]) -> Result<(), PluginError> {
        self.replace(file, bytes).map_err(|error| PluginError::new(Fault::OtherSide, error))
    }

    fn number(&self, value: u64) -> String {
        number(value)
    }

    fn size(&self, bytes: u64) -> String {
        HumanBytes(bytes).to_string()
    }
}
