//! Checks the tables of a Supabase application and their row security.

mod catalog;
mod connect;
mod doctor;
mod environment;
mod findings;
mod trial;

use anyhow::Result;
use clap::Subcommand;

use super::{App, Status};

/// Check an application's tables in Supabase
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  threadkeep supabase doctor postgresql://postgres:PASSWORD@db.PROJECT.supabase.co:5432/postgres")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Doctor(doctor::Arguments),
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    match arguments.action {
        Action::Doctor(arguments) => doctor::run(app, arguments).await,
    }
}
