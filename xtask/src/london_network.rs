//! `cargo xtask london-network`: regenerates the tables of the London assistant.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::cargo::{self, Workspace};

const FOLDER: &str = "assistants/underground/data";

/// Arguments of `cargo xtask london-network`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A folder with TfL's route sequences, timetables and station topology
    #[arg(long, default_value = "../shared/data/tfl")]
    data: PathBuf,
}

/// Runs the generator, a Cargo example in the assistant's package, which writes the tables.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let root = Workspace::load()?.root;
    let mut command = cargo::command();
    command.args(["run", "--quiet", "--locked", "-p", "threadkeep-underground", "--example", "london-network", "--"]);
    let output = command.arg(root.join(&args.data)).arg(root.join(FOLDER)).output()?;
    ensure!(output.status.success(), "the generator failed: {}", String::from_utf8_lossy(&output.stderr));
    println!("wrote the tables in {FOLDER}");
    Ok(ExitCode::SUCCESS)
}
