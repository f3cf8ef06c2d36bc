//! `cargo xtask subway-network`: regenerates the network table of the subway assistant.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Workspace};

const TABLE: &str = "assistants/subway/data/network.tsv";

/// Arguments of `cargo xtask subway-network`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A GTFS feed of the subway, as a zip
    #[arg(long, default_value = "../shared/data/mta-gtfs/gtfs_subway.zip")]
    gtfs: PathBuf,
    /// The MTA's table of stations
    #[arg(long, default_value = "../shared/data/mta-gtfs/Stations.csv")]
    stations: PathBuf,
}

/// Runs the generator, an example of the assistant's package, and writes its output to the table.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = Workspace::load()?.root;
    let mut command = cargo::command();
    command.args(["run", "--quiet", "--locked", "-p", "threadkeep-subway", "--example", "subway-network", "--"]);
    let output = command.arg(root.join(&args.gtfs)).arg(root.join(&args.stations)).output()?;
    ensure!(output.status.success(), "the generator failed: {}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(root.join(TABLE), output.stdout).with_context(|| format!("cannot write {TABLE}"))?;
    println!("wrote {TABLE}");
    Ok(ExitCode::SUCCESS)
}
