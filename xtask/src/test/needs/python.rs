//! Python packages that some tests need: one environment in the target folder, made of the file
//! `tests/requirements.txt` of every package that has one.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Lacking, apt_get};
use crate::cargo::{self, Workspace};
use crate::debian;

/// Beside the environment, what it was made of.
const MADE_OF: &str = "requirements.txt";

/// Makes the environment where it is not there or the files have changed.
pub(super) fn install(workspace: &Workspace) -> Result<Option<Lacking>> {
    let wanted = requirements(workspace)?;
    let folder = workspace.target_directory.join("python");
    let is_there = fs::read_to_string(folder.join(MADE_OF)).is_ok_and(|made_of| made_of == wanted);
    if wanted.is_empty() || is_there {
        return Ok(None);
    }
    if !make(&folder) {
        let reason = match debian::why_not_installable() {
            None if apt_get("python3-venv") && make(&folder) => None,
            None => Some("python3 with venv cannot be installed".to_owned()),
            Some(reason) => Some(format!("python3 with venv is not there, and {reason}")),
        };
        if let Some(reason) = reason {
            return Ok(Some(lacking(reason)));
        }
    }
    let list = folder.join("wanted.txt");
    fs::write(&list, &wanted).with_context(|| format!("{} cannot be written", list.display()))?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"]).arg(&list);
    if cargo::run(&mut pip).inspect_err(|error| println!("{error:#}")).is_err() {
        return Ok(Some(lacking("its packages cannot be installed".to_owned())));
    }
    fs::rename(&list, folder.join(MADE_OF)).context("the list of Python packages cannot be kept")?;
    Ok(None)
}

fn lacking(reason: String) -> Lacking {
    Lacking {
        program: "python",
        tests: "tests against official Python clients, and over PostgreSQL with pgvector",
        reason,
    }
}

fn make(folder: &Path) -> bool {
    let mut command = Command::new("python3");
    command.args(["-m", "venv", "--clear"]).arg(folder);
    cargo::run(&mut command).inspect_err(|error| println!("{error:#}")).is_ok()
}

/// What all packages want, in one text.
fn requirements(workspace: &Workspace) -> Result<String> {
    let mut lines: Vec<String> = Vec::new();
    for package in &workspace.packages {
        let file = package.manifest_path.with_file_name("tests").join("requirements.txt");
        if file.exists() {
            let text = fs::read_to_string(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            lines.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
        }
    }
    lines.sort();
    lines.dedup();
    Ok(lines.into_iter().map(|line| line + "\n").collect())
}
