//! `cargo xtask sbom`: what the `threadkeep` program is made of, as a CycloneDX document.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Workspace};
use crate::tool::Tool;

const CARGO_CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9" };
/// The name without an ending that cargo-cyclonedx gives each document, beside the manifest of its crate.
const DOCUMENT: &str = "threadkeep-sbom";
/// The crate of the program.
const PROGRAM: &str = "threadkeep-cli";

/// Writes `target/threadkeep.cdx.json` and says so.
pub(crate) fn run() -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let program = CARGO_CYCLONEDX.install(&workspace)?;
    let written = cargo::run(
        Command::new(program)
            .args(["cyclonedx", "--format", "json", "--all-features", "--override-filename", DOCUMENT])
            .current_dir(&workspace.root),
    );
    let target = workspace.target_directory.join("threadkeep.cdx.json");
    let mut is_found = false;
    // It writes a document for each crate of the workspace; only that of the program is kept.
    for package in &workspace.packages {
        let document = package.folder().join(format!("{DOCUMENT}.json"));
        if document.is_file() && package.name == PROGRAM {
            std::fs::copy(&document, &target).with_context(|| format!("writing {} failed", target.display()))?;
            is_found = true;
        }
        if document.is_file() {
            std::fs::remove_file(&document).with_context(|| format!("removing {} failed", document.display()))?;
        }
    }
    written?;
    ensure!(is_found, "cargo-cyclonedx wrote no document for {PROGRAM}");
    println!("{}", target.display());
    Ok(ExitCode::SUCCESS)
}
