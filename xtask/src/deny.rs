//! `cargo xtask deny`: checks licences, bans, sources and advisories of all dependencies with cargo-deny and deny.toml.
//!
//! Advisories need the RustSec database. If it cannot be fetched, that check is skipped with a message.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{self, Workspace};
use crate::tool::Tool;

const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

/// Runs the check on the workspace that contains the current folder.
pub(crate) fn run() -> Result<ExitCode> {
    check(&Workspace::load()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails if a licence, crate or source is not allowed, or if a crate has an advisory.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let program = CARGO_DENY.install(workspace)?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["--workspace", "--all-features", "--locked"]).args(arguments).current_dir(&workspace.root);
        command
    };
    cargo::run(&mut deny(&["check", "licenses", "bans", "sources"]))?;
    let mut fetch = deny(&["fetch", "db"]);
    let fetched = fetch.stdin(Stdio::null()).output().context("failed to run cargo-deny")?;
    if !fetched.status.success() {
        println!("advisories: skipped: the RustSec advisory database cannot be fetched");
        return Ok(());
    }
    cargo::run(&mut deny(&["check", "--disable-fetch", "advisories"]))
}
