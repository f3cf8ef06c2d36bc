//! Defines the arguments that all commands share.

use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use threadkeep::core::redact_address;
use threadkeep::{MetadataFilter, Scope, StoreError, TenantId, Timestamp, UserId};

use crate::commands::Command;
use crate::instants;
use crate::settings::{SettingSource, Settings};
use crate::usage;

/// Stores an AI assistant's conversations: imports, shows, searches and exports them, and explains what a model sees of them.
#[derive(Debug, Parser)]
#[command(
    name = "threadkeep",
    version,
    arg_required_else_help = true,
    after_help = "Examples:
  threadkeep demo                               try it on a small conversation
  threadkeep chat                               talk with an assistant that remembers
  threadkeep docs add notes/                    add documents that answers can cite
  threadkeep import conversations.json          import an export of ChatGPT or Claude
  threadkeep threads                            list threads
  threadkeep search camping stove               search messages
  threadkeep recall 'Who has the keys?'         find the turns that answer a question
  threadkeep context notes --recall --explain   show what a model sees of a thread, and why
  threadkeep export -o backup.jsonl.gz          export everything

Exit codes:
  0 success, 1 invalid input or findings, 2 wrong usage,
  3 the store, the disk or a remote service failed, 130 interrupted"
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// A filter on the metadata of threads.
#[derive(Clone, Debug, Args)]
pub(crate) struct MetadataArguments {
    /// Only threads with this value in their metadata. Can be repeated: all must match
    #[arg(long = "metadata", value_name = "KEY=VALUE", value_parser = parse_pair)]
    pairs: Vec<(String, String)>,
}

impl MetadataArguments {
    /// Returns the filter. A value matches an equal string, and an integer or boolean with the same text.
    pub(crate) fn filter(&self) -> MetadataFilter {
        self.pairs.iter().fold(MetadataFilter::default(), |filter, (key, value)| filter.with_text(key, value))
    }

    /// Returns the arguments as typed, each preceded by a space, for a suggested command.
    pub(crate) fn text(&self) -> String {
        self.pairs.iter().map(|(key, value)| format!(" --metadata {}", quoted(&format!("{key}={value}")))).collect()
    }
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as env=prod")?;
    if key.is_empty() {
        return Err("the key before `=` is empty".to_owned());
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// The options of every command: store, scope and output.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The configuration file, TOML or YAML [default: threadkeep.toml in your configuration folder]
    #[arg(long, global = true, env = "THREADKEEP_CONFIG", hide_env_values = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The store: a file, sqlite:FILE, postgres://USER@HOST/DATABASE, redis://HOST or redis-cluster://HOST,HOST [default: threadkeep.db in your data folder]
    #[arg(long, global = true, env = "THREADKEEP_STORE", hide_env_values = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The erasure ledger: a file that records erasures, so that restoring an older backup does not bring erased data back;
    /// `none` disables it [default: erasures.jsonl in your state folder]
    #[arg(long, global = true, env = "THREADKEEP_ERASURE_LEDGER", hide_env_values = true, value_name = "FILE")]
    pub(crate) erasure_ledger: Option<PathBuf>,
    /// The options given on the command line, not in the environment. Suggested commands repeat them.
    #[arg(skip)]
    typed: Vec<&'static str>,
    /// The tenant: one customer of an application; no other tenant sees its conversations
    #[arg(
        long,
        global = true,
        env = "THREADKEEP_TENANT",
        hide_env_values = true,
        value_name = "NAME",
        default_value = "local"
    )]
    tenant: String,
    /// The user whose conversations the command reads and writes
    #[arg(
        long,
        global = true,
        env = "THREADKEEP_USER",
        hide_env_values = true,
        value_name = "NAME",
        default_value = "me"
    )]
    user: String,
    /// Act for the whole tenant: all users' threads and shared threads
    #[arg(long, global = true)]
    pub(crate) as_tenant: bool,
    /// Use this time as the current time, to reproduce a situation (RFC 3339)
    #[arg(
        long,
        global = true,
        env = "THREADKEEP_NOW",
        hide_env_values = true,
        value_name = "INSTANT",
        value_parser = instants::parse
    )]
    pub(crate) now: Option<Timestamp>,
    /// Print JSON (docs/cli.md lists the fields)
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

/// When to use colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The options that select the store and the scope. Suggested commands repeat them.
const REPEATED: [&str; 7] = ["config", "store", "erasure_ledger", "tenant", "user", "as_tenant", "now"];

impl Arguments {
    /// Parses the command line. If there is no command to run, prints help or an error and exits.
    pub(crate) fn from_command_line() -> Self {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(std::env::args_os());
        let matches = matches.unwrap_or_else(|error| usage::exit_with(error, &mut command));
        let mut arguments =
            Self::from_arg_matches(&matches).unwrap_or_else(|error| usage::exit_with(error, &mut command));
        arguments.global.typed = REPEATED.into_iter().filter(|name| is_typed(&matches, name)).collect();
        arguments
    }
}

fn is_typed(matches: &ArgMatches, name: &str) -> bool {
    let in_subcommand = matches.subcommand().is_some_and(|(_, matches)| is_typed(matches, name));
    in_subcommand || matches.value_source(name) == Some(ValueSource::CommandLine)
}

impl Global {
    /// Fills in, from the settings, the options that neither the command line nor the environment specifies.
    pub(crate) fn complete(&mut self, settings: &Settings) {
        let from_file =
            |name: &str| settings.find(name).filter(|(_, from)| *from == SettingSource::File).map(|(value, _)| value);
        if self.store.is_none() {
            self.store = settings.get("THREADKEEP_STORE");
        }
        if self.erasure_ledger.is_none() {
            self.erasure_ledger = settings.get("THREADKEEP_ERASURE_LEDGER").map(PathBuf::from);
        }
        for (option, name, value) in
            [("tenant", "THREADKEEP_TENANT", &mut self.tenant), ("user", "THREADKEEP_USER", &mut self.user)]
        {
            if let Some(set) = from_file(name).filter(|_| !self.typed.contains(&option)) {
                *value = set;
            }
        }
        if self.now.is_none() {
            self.now = settings.get("THREADKEEP_NOW").and_then(|now| instants::parse(&now).ok());
        }
    }

    /// Returns the value of a setting if its option was given on the command line.
    pub(crate) fn typed_value(&self, setting: &str) -> Option<String> {
        let (option, value) = match setting {
            "THREADKEEP_CONFIG" => ("config", self.config.as_ref()?.display().to_string()),
            "THREADKEEP_STORE" => ("store", self.store.clone()?),
            "THREADKEEP_ERASURE_LEDGER" => ("erasure_ledger", self.erasure_ledger.as_ref()?.display().to_string()),
            "THREADKEEP_TENANT" => ("tenant", self.tenant.clone()),
            "THREADKEEP_USER" => ("user", self.user.clone()),
            "THREADKEEP_NOW" => ("now", self.now?.to_string()),
            _ => return None,
        };
        self.typed.contains(&option).then_some(value)
    }

    /// Whether --store was given on the command line, not in the environment.
    pub(crate) fn is_store_typed(&self) -> bool {
        self.typed.contains(&"store")
    }

    /// Returns the beginning of a suggested command for the same store and user, quoted for a shell.
    pub(crate) fn command_prefix(&self) -> String {
        let mut words = vec![program_name()];
        for name in &self.typed {
            match *name {
                "config" => {
                    let config = self.config.as_deref().map(|config| config.display().to_string());
                    words.extend(["--config".to_owned(), quoted(&config.unwrap_or_default())]);
                }
                "store" => words
                    .extend(["--store".to_owned(), quoted(&redact_address(self.store.as_deref().unwrap_or_default()))]),
                "erasure_ledger" => {
                    let ledger = self.erasure_ledger.as_deref().map(|ledger| ledger.display().to_string());
                    words.extend(["--erasure-ledger".to_owned(), quoted(&ledger.unwrap_or_default())]);
                }
                "tenant" => words.extend(["--tenant".to_owned(), quoted(&self.tenant)]),
                "user" => words.extend(["--user".to_owned(), quoted(&self.user)]),
                // Suggested commands run later, so they use the system clock.
                "now" => {}
                _ => words.push("--as-tenant".to_owned()),
            }
        }
        words.join(" ")
    }

    /// Returns the scope of the command's reads and writes.
    pub(crate) fn scope(&self) -> Result<Scope, StoreError> {
        if self.as_tenant { Scope::tenant(&self.tenant) } else { Scope::user(&self.tenant, &self.user) }
    }

    pub(crate) fn tenant_id(&self) -> Result<TenantId, StoreError> {
        TenantId::new(&self.tenant)
    }

    pub(crate) fn user_id(&self) -> Result<UserId, StoreError> {
        UserId::new(&self.user)
    }
}

/// Returns the program's name as the user invoked it.
pub(crate) fn program_name() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    path.map_or_else(|| "threadkeep".to_owned(), |path| path.display().to_string())
}

/// Quotes a word for a shell if necessary.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@,+=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_definitions_are_valid() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn suggested_commands_are_quoted_for_a_shell() {
        assert_eq!(quoted("slack:T1:C1:17.01"), "slack:T1:C1:17.01");
        assert_eq!(quoted("Ana's notes"), r"'Ana'\''s notes'");
        assert_eq!(quoted(""), "''");
    }
}
