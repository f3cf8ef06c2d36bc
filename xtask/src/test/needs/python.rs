//! Python packages that some tests need: one virtual environment in the target folder, created from the
//! `tests/requirements.txt` of every crate in the workspace.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{MissingProgram, apt_get};
use crate::cargo::{self, Workspace};
use crate::debian;

/// The file in the environment that lists its packages.
const INSTALLED: &str = "requirements.txt";

/// Creates the environment if it is missing or the files have changed.
pub(super) fn install(workspace: &Workspace) -> Result<Option<MissingProgram>> {
    let folder = workspace.target_directory.join("python");
    let mut wanted = requirements(workspace)?;
    if !wanted.is_empty() {
        // Scripts in the environment contain its path, so a moved checkout needs a new environment.
        wanted.insert_str(0, &format!("# {}\n", folder.display()));
    }
    let is_current = fs::read_to_string(folder.join(INSTALLED)).is_ok_and(|installed| installed == wanted);
    if wanted.is_empty() || is_current {
        return Ok(None);
    }
    if !create(&folder) {
        let reason = match debian::installation_problem() {
            None if apt_get("python3-venv") && create(&folder) => None,
            None => Some("python3 with venv cannot be installed".to_owned()),
            Some(reason) => Some(format!("python3 with venv is missing, and {reason}")),
        };
        if let Some(reason) = reason {
            return Ok(Some(missing(reason)));
        }
    }
    let list = folder.join("wanted.txt");
    fs::write(&list, &wanted).with_context(|| format!("cannot write {}", list.display()))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&list);
    if cargo::run(&mut pip).inspect_err(|error| println!("{error:#}")).is_err() {
        return Ok(Some(missing("the Python packages cannot be installed".to_owned())));
    }
    fs::rename(&list, folder.join(INSTALLED)).context("cannot store the list of Python packages")?;
    Ok(None)
}

fn missing(reason: String) -> MissingProgram {
    MissingProgram {
        program: "python",
        tests: "tests with the official Python clients, and tests on PostgreSQL with pgvector",
        reason,
    }
}

fn create(folder: &Path) -> bool {
    let mut command = Command::new("python3");
    command.args(["-m", "venv", "--clear"]).arg(folder);
    cargo::run(&mut command).inspect_err(|error| println!("{error:#}")).is_ok()
}

/// Returns the combined requirements of all crates.
fn requirements(workspace: &Workspace) -> Result<String> {
    let mut lines: Vec<String> = Vec::new();
    for package in &workspace.packages {
        let file = package.manifest_path.with_file_name("tests").join("requirements.txt");
        if file.exists() {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            lines.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
        }
    }
    lines.sort();
    lines.dedup();
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}
