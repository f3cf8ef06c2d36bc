//! Debian's kubectl, which tests run in addition to the one on the `PATH`. It is unpacked into the target folder, so
//! that it does not replace another version.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::MissingProgram;
use crate::cargo::{self, Workspace};
use crate::debian;

/// Unpacks the package if it is missing. On systems other than Debian, a kubectl on the `PATH` is sufficient.
pub(super) fn install(workspace: &Workspace) -> Result<Option<MissingProgram>> {
    let folder = workspace.target_directory.join("tools/kubectl");
    if folder.is_dir() {
        return Ok(None);
    }
    let reason = match debian::installation_problem() {
        None if unpack(&folder)? => return Ok(None),
        None => "Debian's kubernetes-client cannot be downloaded".to_owned(),
        Some(reason) => format!("kubectl is missing, and {reason}"),
    };
    let is_on_path = debian::is_on_path("kubectl");
    Ok((!is_on_path).then_some(MissingProgram {
        program: "kubectl",
        tests: "tests of the local cluster with kubectl",
        reason,
    }))
}

/// Unpacks the package; returns whether it could be downloaded. The folder appears only when it is complete.
fn unpack(folder: &Path) -> Result<bool> {
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(&unfinished).with_context(|| format!("cannot create {}", unfinished.display()))?;
    if !debian::apt_get(&["download", "kubernetes-client"], &unfinished) {
        return Ok(false);
    }
    for package in debian::packages_in(&unfinished)? {
        cargo::run(Command::new("dpkg").arg("-x").arg(&package).arg(&unfinished))?;
        fs::remove_file(package)?;
    }
    fs::rename(&unfinished, folder).context("cannot move the unpacked kubectl into place")?;
    Ok(true)
}
