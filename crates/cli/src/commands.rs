//! Defines the subcommands, one file each.

mod append;
mod approvals;
mod ask;
pub(crate) mod assistant;
mod audit;
mod backup;
mod browse;
mod chat;
mod check;
mod completions;
pub(crate) mod config;
mod context;
mod demo;
mod docs;
mod erase;
mod export;
mod graph;
mod import;
mod keys;
mod man;
mod mcp;
mod migrate;
mod models;
mod open;
mod places;
mod recall;
mod restore;
mod search;
mod serve;
mod show;
mod slack;
mod stats;
mod supabase;
mod threads;
mod tools;
mod trace;
mod vacuum;

use std::io::IsTerminal;
use std::path::Path;

use anyhow::Result;
use clap::Subcommand;
use threadkeep::Scope;
use threadkeep::core::redact_address;

use crate::arguments::Global;
use crate::clock::clock;
use crate::erasures;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::Output;
use crate::settings::{SettingSource, Settings};
use crate::store::{Location, OpenStore, Purpose};

/// A subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Import(import::Arguments),
    Threads(threads::Arguments),
    Show(show::Arguments),
    Append(append::Arguments),
    Search(search::Arguments),
    Browse(browse::Arguments),
    Recall(recall::Arguments),
    Context(context::Arguments),
    Tools(tools::Arguments),
    Export(export::Arguments),
    Erase(erase::Arguments),
    Stats(stats::Arguments),
    Check(check::Arguments),
    Backup(backup::Arguments),
    Restore(restore::Arguments),
    Migrate(migrate::Arguments),
    Vacuum(vacuum::Arguments),
    Supabase(supabase::Arguments),
    Serve(serve::Arguments),
    Open(open::Arguments),
    Mcp(mcp::Arguments),
    Slack(slack::Arguments),
    Keys(keys::Arguments),
    Audit(audit::Arguments),
    Demo(demo::Arguments),
    Chat(chat::Arguments),
    Ask(ask::Arguments),
    Docs(docs::Arguments),
    Approvals(approvals::Arguments),
    Trace(trace::Arguments),
    Graph(graph::Arguments),
    #[command(flatten)]
    Assistant(assistant::Invocation),
    Config(config::Arguments),
    Models(models::Arguments),
    Completions(completions::Arguments),
    Man(man::Arguments),
}

impl Command {
    /// Whether the command itself reports invalid settings. Such a command runs even if there are any.
    pub(crate) fn checks_settings(&self) -> bool {
        matches!(self, Self::Config(arguments) if arguments.is_check())
    }

    pub(crate) fn serves(&self) -> bool {
        matches!(self, Self::Serve(_))
    }

    /// Whether the command draws on the whole terminal, where lines of a log would be in the way.
    pub(crate) fn is_full_screen(&self) -> bool {
        matches!(self, Self::Browse(_))
    }
}

/// The outcome of a command that did not fail. Determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// The command did everything.
    Done,
    /// Problems were reported that the user has to fix.
    Findings,
    /// The command did everything possible, and reported which data the store could not read.
    Incomplete,
    /// The user stopped the command.
    Interrupted,
}

/// State that all commands share.
#[derive(Debug)]
pub(crate) struct App {
    pub(crate) global: Global,
    pub(crate) output: Output,
    pub(crate) interrupt: Interrupt,
    pub(crate) settings: Settings,
}

impl App {
    /// Runs one command.
    pub(crate) async fn run(&self, command: Command) -> Result<Status> {
        match command {
            Command::Import(arguments) => import::run(self, arguments).await,
            Command::Threads(arguments) => threads::run(self, arguments).await,
            Command::Show(arguments) => show::run(self, arguments).await,
            Command::Append(arguments) => append::run(self, arguments).await,
            Command::Search(arguments) => search::run(self, arguments).await,
            Command::Browse(arguments) => browse::run(self, arguments).await,
            Command::Recall(arguments) => recall::run(self, arguments).await,
            Command::Context(arguments) => context::run(self, arguments).await,
            Command::Tools(arguments) => tools::run(self, arguments).await,
            Command::Export(arguments) => export::run(self, arguments).await,
            Command::Erase(arguments) => erase::run(self, arguments).await,
            Command::Stats(arguments) => stats::run(self, arguments).await,
            Command::Check(arguments) => check::run(self, arguments).await,
            Command::Backup(arguments) => backup::run(self, arguments).await,
            Command::Restore(arguments) => restore::run(self, arguments).await,
            Command::Migrate(arguments) => migrate::run(self, arguments).await,
            Command::Vacuum(arguments) => vacuum::run(self, arguments).await,
            Command::Supabase(arguments) => supabase::run(self, arguments).await,
            Command::Serve(arguments) => serve::run(self, arguments).await,
            Command::Open(arguments) => open::run(self, arguments).await,
            Command::Mcp(arguments) => mcp::run(self, arguments).await,
            Command::Slack(arguments) => slack::run(self, arguments).await,
            Command::Keys(arguments) => keys::run(self, arguments).await,
            Command::Audit(arguments) => audit::run(self, arguments).await,
            Command::Demo(arguments) => demo::run(self, arguments).await,
            Command::Chat(arguments) => chat::run(self, arguments).await,
            Command::Ask(arguments) => ask::run(self, arguments).await,
            Command::Docs(arguments) => docs::run(self, arguments).await,
            Command::Approvals(arguments) => approvals::run(self, arguments).await,
            Command::Trace(arguments) => trace::run(self, arguments).await,
            Command::Graph(arguments) => graph::run(self, arguments).await,
            Command::Assistant(invocation) => assistant::run(self, invocation).await,
            Command::Config(arguments) => config::run(self, arguments).await,
            Command::Models(arguments) => models::run(self, arguments).await,
            Command::Completions(arguments) => completions::run(self, &arguments),
            Command::Man(arguments) => man::run(self, &arguments),
        }
    }

    /// Returns the location of the store.
    pub(crate) fn location(&self) -> Result<Location> {
        Location::find(self.global.store.as_deref())
    }

    /// Returns the location of the erasure ledger.
    pub(crate) fn erasure_ledger(&self) -> erasures::LedgerLocation {
        erasures::LedgerLocation::find(self.global.erasure_ledger.as_deref())
    }

    /// Opens the store.
    pub(crate) async fn open(&self, purpose: Purpose) -> Result<OpenStore> {
        // Checked before the store is created, so that an invalid tenant or user leaves no empty store behind.
        self.scope()?;
        self.open_at(&self.location()?, purpose).await
    }

    /// Opens the store at `location`, which need not be the command's store.
    pub(crate) async fn open_at(&self, location: &Location, purpose: Purpose) -> Result<OpenStore> {
        location.open(purpose, clock(self.global.now), &self.erasure_ledger()).await
    }

    /// Returns the scope (tenant and user) of the command.
    pub(crate) fn scope(&self) -> Result<Scope> {
        Ok(self.global.scope()?)
    }

    /// Returns the options with which another process of this program uses the same store, tenant and user. Paths are absolute.
    ///
    /// # Errors
    /// The URL of the store contains a secret.
    pub(crate) fn global_words(&self) -> Result<Vec<String>> {
        let mut words = Vec::new();
        let absolute = |path: &Path| std::path::absolute(path).map(|path| path.display().to_string());
        if let Some(config) = &self.global.config {
            words.extend(["--config".to_owned(), absolute(config)?]);
        }
        let is_in_file = matches!(self.settings.find("THREADKEEP_STORE"), Some((_, SettingSource::File)));
        if self.global.store.is_some() && (self.global.is_store_typed() || !is_in_file) {
            let store = match self.location()? {
                Location::Sqlite(path) => absolute(&path)?,
                Location::Other(url) if redact_address(&url) == url => url,
                Location::Other(_) => {
                    let failure =
                        Failure::usage("the URL of the store contains a secret, which does not belong in this file");
                    return Err(failure.hint("set THREADKEEP_STORE in a configuration file and omit --store").into());
                }
            };
            words.extend(["--store".to_owned(), store]);
        }
        for (option, value, default) in [
            ("--tenant", self.global.tenant_id()?.as_str(), "local"),
            ("--user", self.global.user_id()?.as_str(), "me"),
        ] {
            if value != default {
                words.extend([option.to_owned(), value.to_owned()]);
            }
        }
        if self.global.as_tenant {
            words.push("--as-tenant".to_owned());
        }
        Ok(words)
    }

    /// Asks for confirmation before data is deleted. Without a terminal, `yes` is required.
    ///
    /// # Errors
    /// The user declines, or there is no terminal and `yes` is not set.
    pub(crate) fn confirm(&self, question: &str, yes: bool) -> Result<()> {
        if yes {
            return Ok(());
        }
        if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() || self.output.is_json() {
            let failure = Failure::usage(format!("{question} Confirming requires a terminal."));
            return Err(failure.hint("add --yes to confirm").into());
        }
        eprint_question(question);
        let mut answer = String::new();
        std::io::stdin().read_line(&mut answer)?;
        if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") {
            Ok(())
        } else {
            Err(Failure::user_error("nothing was changed").into())
        }
    }
}

fn eprint_question(question: &str) {
    use std::io::Write;
    let mut err = std::io::stderr().lock();
    // If the question cannot be written, only an explicit "y" counts as confirmation.
    drop(write!(err, "{question} [y/N] ").and_then(|()| err.flush()));
}
