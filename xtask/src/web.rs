//! `cargo xtask web`: builds the page in the folder `web`, and checks it.
//!
//! The page is built into web/dist, which the next build of the program embeds. The types of the API come from the
//! program itself, so the checks build it first.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Workspace};
use crate::debian;

/// The first version of Node.js that the tools of the page support: major and minor.
const NODE: (u32, u32) = (20, 19);
const CHROMIUM: &str = "chromium";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also check the page: lint, types, unit tests, size, and the journeys in a browser
    #[arg(long)]
    check: bool,
}

/// Builds the page; with `--check`, also checks it.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    if !args.check {
        let reason = why_no_node();
        ensure!(reason.is_none(), "the page cannot be built: {}", reason.unwrap_or_default());
        build(&workspace)?;
        println!("the page is in web/dist; `cargo build` embeds it in the program");
        return Ok(ExitCode::SUCCESS);
    }
    let build_program = ["build", "--locked", "--package", "threadkeep-cli"];
    let skipped = [check(&workspace, &build_program)?, check_in_browser(&workspace)?];
    for reason in skipped.into_iter().flatten() {
        println!("web: skipped, {reason}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Builds the page, then the program with the given arguments of cargo, and checks the code of the page. Returns the
/// reason if Node.js is missing.
pub(crate) fn check(workspace: &Workspace, build_program: &[&str]) -> Result<Option<String>> {
    if let Some(reason) = why_no_node() {
        return Ok(Some(reason));
    }
    build(workspace)?;
    npm(workspace, &["run", "--silent", "size"])?;
    cargo::run(cargo::command().args(build_program))?;
    let document = Command::new(program(workspace)).args(["serve", "--openapi"]).stderr(Stdio::inherit()).output();
    let document = document.context("cannot run the program")?;
    ensure!(document.status.success(), "`threadkeep serve --openapi` failed");
    fs::write(workspace.target_directory.join("openapi.json"), document.stdout).context("cannot write the document")?;
    for script in ["types", "check", "lint", "test"] {
        npm(workspace, &["run", "--silent", script])?;
    }
    Ok(None)
}

/// Runs the journeys in a browser, with the program that [`check`] built. Returns the reason if Node.js or Chromium is missing.
pub(crate) fn check_in_browser(workspace: &Workspace) -> Result<Option<String>> {
    if let Some(reason) = why_no_browser(workspace) {
        return Ok(Some(reason));
    }
    npm(workspace, &["run", "--silent", "browser"])?;
    Ok(None)
}

/// Installs Chromium if it is missing. Returns why there is no browser or no Node.js on this machine; `None` if there are.
pub(crate) fn why_no_browser(workspace: &Workspace) -> Option<String> {
    if let Some(reason) = why_no_node() {
        return Some(reason);
    }
    if !debian::is_found(CHROMIUM) {
        if let Some(reason) = debian::why_not_installable() {
            return Some(format!("{CHROMIUM} is missing, and {reason}"));
        }
        // A browser without fonts shows no text.
        let packages = ["install", "-y", "--no-install-recommends", CHROMIUM, "fonts-dejavu-core"];
        if !debian::apt_get(&packages, &workspace.root) {
            return Some(format!("{CHROMIUM} cannot be installed"));
        }
    }
    None
}

/// Installs the packages of the page, if they are missing.
pub(crate) fn install(workspace: &Workspace) -> Result<()> {
    if workspace.root.join("web/node_modules").is_dir() {
        return Ok(());
    }
    npm(workspace, &["ci", "--no-audit", "--no-fund", "--loglevel", "error"])
}

fn build(workspace: &Workspace) -> Result<()> {
    npm(workspace, &["ci", "--no-audit", "--no-fund", "--loglevel", "error"])?;
    npm(workspace, &["run", "--silent", "build"])
}

/// Runs npm in the folder of the page.
fn npm(workspace: &Workspace, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new("npm");
    command.args(arguments).current_dir(workspace.root.join("web")).stdin(Stdio::null());
    cargo::run(command.env("THREADKEEP_PROGRAM", program(workspace)))
}

fn program(workspace: &Workspace) -> PathBuf {
    workspace.target_directory.join("debug").join("threadkeep").with_extension(env::consts::EXE_EXTENSION)
}

/// Returns why the page cannot be built on this machine; `None` if it can.
fn why_no_node() -> Option<String> {
    let wanted = format!("{}.{}", NODE.0, NODE.1);
    let Ok(output) = Command::new("node").arg("--version").output() else {
        return Some(format!("Node.js {wanted} or later is missing"));
    };
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if parse_version(&version).is_none_or(|found| found < NODE) {
        return Some(format!("Node.js is {version}, and the page needs {wanted} or later"));
    }
    (!debian::is_found("npm")).then(|| "npm is missing".to_owned())
}

/// Returns the major and minor version in a text such as `v20.20.2`.
fn parse_version(text: &str) -> Option<(u32, u32)> {
    let mut parts = text.strip_prefix('v')?.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_node_are_compared_by_number() {
        for (text, is_new_enough) in [
            ("v20.19.0", true),
            ("v20.9.0", false),
            ("v18.20.4", false),
            ("v100.1.2", true),
            ("", false),
            ("v20", false),
        ] {
            assert_eq!(parse_version(text).is_some_and(|found| found >= NODE), is_new_enough, "{text}");
        }
    }
}
