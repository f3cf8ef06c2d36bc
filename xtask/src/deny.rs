//! `cargo xtask deny`: licences, bans, sources and advisories of all dependencies, by cargo-deny and deny.toml.
//!
//! Advisories need the RustSec database. Where it cannot be fetched they are left out, and the output says so.

use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};

use crate::cargo::{self, Workspace};
use crate::tool::Tool;

const CARGO_DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };

/// Runs the check on the workspace around the current folder.
pub(crate) fn run() -> Result<ExitCode> {
    check(&Workspace::load()?)?;
    Ok(ExitCode::SUCCESS)
}

/// Fails on a licence, crate or source that is not allowed, and on a crate with an advisory.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    let program = CARGO_DENY.install(workspace)?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["--workspace", "--all-features", "--locked"]).args(arguments).current_dir(&workspace.root);
        command
    };
    cargo::run(&mut deny(&["check", "licenses", "bans", "sources"]))?;
    let mut fetch = deny(&["fetch", "db"]);
    let fetched = fetch.stdin(Stdio::null()).output().context("running cargo-deny failed")?;
    if !fetched.status.success() {
        println!("advisories: left out, the RustSec advisory database cannot be fetched");
        return Ok(());
    }
    cargo::run(&mut deny(&["check", "--disable-fetch", "advisories"]))
}
