//! Development tasks of the workspace, run as `cargo xtask <command>`.
//!
//! One file per command. Tasks access the workspace only through cargo and the file system, and link none of its crates, so
//! that they work even if a crate does not compile.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command line tool")]

mod browser;
mod cargo;
mod ci;
mod debian;
mod deny;
mod fuzz;
mod layers;
mod london_network;
mod sbom;
mod statements;
mod subway_network;
mod test;
mod tool;
mod train;
mod wasm;
mod web;
mod words;

use std::process::ExitCode;

use clap::Parser;

/// Development tasks of the Threadkeep workspace.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
enum Command {
    /// Check that dependencies between the crates match the table in ARCHITECTURE.md
    Layers,
    /// Check that no text uses a word that plain English avoids
    Words,
    /// List the checklist's statements with the files that refer to them
    Statements(statements::Args),
    /// Install what the tests need, then run every test
    Test(test::Args),
    /// Train the classifiers of the offline assistants from their phrase files
    Train,
    /// Regenerate the built-in subway network from a GTFS feed and the station table
    SubwayNetwork(subway_network::Args),
    /// Regenerate the built-in tables of London's network from TfL's data
    LondonNetwork(london_network::Args),
    /// Run the fuzz targets, guided by coverage; fuzz/README.md lists them
    Fuzz(fuzz::Args),
    /// Check all dependencies for licences, sources, known vulnerabilities and banned crates
    Deny,
    /// Check that the crates for browsers compile for wasm32
    Wasm,
    /// Test the engine in Chromium: the suite of the IndexedDB store, and the npm package; with --package, build the package
    Browser(browser::Args),
    /// Build the web page of `threadkeep serve` in web/dist; with --check, also check it
    Web(web::Args),
    /// Write a software bill of materials (CycloneDX) to target/threadkeep.cdx.json
    Sbom,
    /// Run all checks that a change must pass
    Ci,
}

fn main() -> ExitCode {
    let outcome = match Command::parse() {
        Command::Layers => layers::run(),
        Command::Words => words::run(),
        Command::Statements(args) => statements::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Train => train::run(),
        Command::SubwayNetwork(args) => subway_network::run(&args),
        Command::LondonNetwork(args) => london_network::run(&args),
        Command::Fuzz(args) => fuzz::run(&args),
        Command::Deny => deny::run(),
        Command::Wasm => wasm::run(),
        Command::Browser(args) => browser::run(&args),
        Command::Web(args) => web::run(&args),
        Command::Sbom => sbom::run(),
        Command::Ci => ci::run(),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
