//! Node.js packages that some tests need: one folder in the target folder, with the packages that are listed in the
//! `tests/packages.txt` of every crate in the workspace.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use super::{MissingProgram, apt_get};
use crate::cargo::{self, Workspace};
use crate::debian;

/// The file in the folder that lists its packages.
const INSTALLED: &str = "packages.txt";

/// Installs the packages if they are missing or the files have changed.
pub(super) fn install(workspace: &Workspace) -> Result<Option<MissingProgram>> {
    let folder = workspace.target_directory.join("node");
    let wanted = packages(workspace)?;
    let text: String = wanted.iter().map(|package| format!("{package}\n")).collect();
    let is_current = fs::read_to_string(folder.join(INSTALLED)).is_ok_and(|installed| installed == text);
    if wanted.is_empty() || is_current {
        return Ok(None);
    }
    if !debian::is_on_path("npm") {
        let reason = match debian::installation_problem() {
            None if apt_get("npm") => None,
            None => Some("npm cannot be installed".to_owned()),
            Some(reason) => Some(format!("npm is missing, and {reason}")),
        };
        if let Some(reason) = reason {
            return Ok(Some(missing(reason)));
        }
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--loglevel", "error", "--prefix"]).arg(&folder);
    if cargo::run(npm.args(&wanted)).inspect_err(|error| println!("{error:#}")).is_err() {
        return Ok(Some(missing("the Node.js packages cannot be installed".to_owned())));
    }
    fs::write(folder.join(INSTALLED), text).context("cannot store the list of Node.js packages")?;
    Ok(None)
}

fn missing(reason: String) -> MissingProgram {
    MissingProgram { program: "node", tests: "tests with Node.js clients and code generators", reason }
}

/// Returns the packages that the tests of all crates need, such as `typescript@5.9.3`.
fn packages(workspace: &Workspace) -> Result<Vec<String>> {
    let mut packages: Vec<String> = Vec::new();
    for package in &workspace.packages {
        let file = package.manifest_path.with_file_name("tests").join("packages.txt");
        if file.exists() {
            let text = fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
            packages.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
        }
    }
    packages.sort();
    packages.dedup();
    Ok(packages)
}
