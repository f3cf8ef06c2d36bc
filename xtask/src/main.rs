//! The chores of the workspace, run as `cargo xtask <command>`.
//!
//! One file per command. Everything here looks at the workspace from outside, through cargo and the file system, and
//! links none of its crates: a chore works while a crate does not compile.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

mod cargo;
mod ci;
mod debian;
mod deny;
mod fuzz;
mod layers;
mod sbom;
mod statements;
mod subway_network;
mod test;
mod tool;
mod wasm;

use std::process::ExitCode;

use clap::Parser;

/// The chores of the Threadkeep workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Check that crates depend on each other only as the table of layers allows
    Layers,
    /// List the statements of the checklist with the files that name them
    Statements(statements::Args),
    /// Install what the tests need, then run every test
    Test(test::Args),
    /// Write the built-in network of the subway anew, from a GTFS feed and the table of stations
    SubwayNetwork(subway_network::Args),
    /// Run the fuzz targets, guided by coverage; README.md of fuzz/ has the table of them
    Fuzz(fuzz::Args),
    /// Check the licences, sources and known vulnerabilities of all dependencies, and that no banned crate is among them
    Deny,
    /// Check that the crates which a browser can use build for wasm32
    Wasm,
    /// Write a bill of materials of the program (CycloneDX) to target/threadkeep.cdx.json
    Sbom,
    /// Run everything that a change has to pass
    Ci,
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Layers => layers::run(),
        Command::Statements(args) => statements::run(&args),
        Command::Test(args) => test::run(&args),
        Command::SubwayNetwork(args) => subway_network::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Deny => deny::run(),
        Command::Wasm => wasm::run(),
        Command::Sbom => sbom::run(),
        Command::Ci => ci::run(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
