//! `agent`: what a turn costs beside its model and tools, what it leaves behind, and what becomes of it when its process
//! dies or many decide at once.

mod crash;
mod figures;
mod race;
mod trap;

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
    /// Measure a turn without model and tools, the next turn of a long thread, and bytes and syncs by turn
    Figures(figures::Args),
    /// Let the process die at every point of a run with a model, tools, an activity and an approval, and go on
    Crash(crash::Args),
    /// Let deciders of two processes race for approvals
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
