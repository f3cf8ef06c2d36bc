//! Cargo subcommands that a chore needs, installed into the target folder.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::cargo::{self, Workspace};

/// A program from the package registry. Its version is fixed, because a later one may need a newer Rust than ours.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

impl Tool {
    /// Installs it if it is not there, and says where it is.
    pub(crate) fn install(&self, workspace: &Workspace) -> Result<PathBuf> {
        let Self { name, version } = self;
        let folder = workspace.target_directory.join("tools").join(format!("{name}-{version}"));
        let program = folder.join("bin").join(name);
        if !program.with_extension(std::env::consts::EXE_EXTENSION).is_file() {
            // Unoptimised, cargo-deny installs in half the time (78 s instead of 165 s on two cores) and still checks in a
            // second.
            cargo::run(
                cargo::command()
                    .args(["install", name, "--version", version, "--locked", "--debug", "--root"])
                    .arg(&folder)
                    .env("CARGO_TARGET_DIR", folder.join("build")),
            )
            .with_context(|| format!("installing {name} failed"))?;
            std::fs::remove_dir_all(folder.join("build"))
                .with_context(|| format!("removing the build of {name} failed"))?;
        }
        Ok(program)
    }
}
