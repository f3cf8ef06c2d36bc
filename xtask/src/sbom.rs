//! `cargo xtask sbom`: writes a software bill of materials of the `threadkeep` program as a CycloneDX document.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Workspace};
use crate::tool::Tool;

const CARGO_CYCLONEDX: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9" };
/// The file name, without extension, of the documents that cargo-cyclonedx writes next to each manifest.
const DOCUMENT: &str = "threadkeep-sbom";
/// The package of the program.
const PROGRAM: &str = "threadkeep-cli";

/// Writes `target/threadkeep.cdx.json` and prints its path.
pub(crate) fn run() -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let program = CARGO_CYCLONEDX.install(&workspace)?;
    let result = cargo::run(
        Command::new(program)
            .args(["cyclonedx", "--format", "json", "--all-features", "--override-filename", DOCUMENT])
            .current_dir(&workspace.root),
    );
    let target = workspace.target_directory.join("threadkeep.cdx.json");
    let mut is_found = false;
    // cargo-cyclonedx writes a document for each package; only the program's document is needed.
    for package in &workspace.packages {
        let document = package.folder().join(format!("{DOCUMENT}.json"));
        if document.is_file() && package.name == PROGRAM {
            std::fs::copy(&document, &target).with_context(|| format!("cannot write {}", target.display()))?;
            is_found = true;
        }
        if document.is_file() {
            std::fs::remove_file(&document).with_context(|| format!("cannot remove {}", document.display()))?;
        }
    }
    result?;
    ensure!(is_found, "cargo-cyclonedx wrote no document for {PROGRAM}");
    println!("{}", target.display());
    Ok(ExitCode::SUCCESS)
}
