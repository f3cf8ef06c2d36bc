//! `cargo xtask deny`: licences and bans of all dependencies, by cargo-deny and deny.toml.
//!
//! Advisories are not part of it: they change from day to day, and a change that passed must pass again.

use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::cargo::{self, Workspace};

/// Fixed, because later releases may ask for a newer Rust than ours.
const VERSION: &str = "0.20.2";

/// Runs the check on the workspace around the current folder.
pub(crate) fn run() -> Result<ExitCode> {
    check(&Workspace::load()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Installs cargo-deny into the target folder if it is not there, then fails on a licence or crate not allowed.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let folder = workspace.target_directory.join("tools").join(format!("cargo-deny-{VERSION}"));
    let program = folder.join("bin").join("cargo-deny");
    if !program.with_extension(std::env::consts::EXE_EXTENSION).is_file() {
        // Unoptimised it installs in half the time (78 s instead of 165 s on two cores) and still checks in a second.
        cargo::run(
            cargo::command()
                .args(["install", "cargo-deny", "--version", VERSION, "--locked", "--debug", "--root"])
                .arg(&folder)
                .env("CARGO_TARGET_DIR", folder.join("build")),
        )
        .context("cargo-deny cannot be installed")?;
        std::fs::remove_dir_all(folder.join("build")).context("the build folder of cargo-deny cannot be removed")?;
    }
    let arguments = ["--workspace", "--all-features", "--locked", "check", "licenses", "bans"];
    cargo::run(Command::new(program).args(arguments).current_dir(&workspace.root))
}
