//! `agent`: the overhead and storage of an assistant's turn, and its behaviour in crashes and with concurrent decisions.

mod crash;
mod crash_points;
mod figures;
mod race;

use anyhow::Result;
use clap::Subcommand;

/// Arguments of `threadkeep-bench agent`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Measure the overhead of a turn, the growth of its cost in a long thread, and its bytes and syncs
    Figures(figures::Args),
    /// Crash the process at every point of a run with a model, tools, an activity and an approval, and resume it
    Crash(crash::Args),
    /// Decide on the same approvals concurrently in two processes
    Race(race::Args),
    #[command(hide = true)]
    Turns(figures::TurnsArgs),
    #[command(hide = true)]
    CrashChild(crash::child::Args),
    #[command(hide = true)]
    RaceChild(race::ChildArgs),
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    match &args.command {
        Command::Figures(args) => figures::run(args).await,
        Command::Crash(args) => crash::run(args),
        Command::Race(args) => race::run(args).await,
        Command::Turns(args) => figures::turns(args).await,
        Command::CrashChild(args) => crash::child::run(args).await,
        Command::RaceChild(args) => race::run_child(args).await,
    }
}
