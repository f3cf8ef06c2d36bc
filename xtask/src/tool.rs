//! Cargo subcommands that a task needs, installed into the target folder.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::cargo::{self, Workspace};

/// A program from the package registry. Its version is pinned, because later versions may need a newer Rust.
pub(crate) struct Tool {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
}

impl Tool {
    /// Installs the program if it is missing; returns its path.
    pub(crate) fn install(&self, workspace: &Workspace) -> Result<PathBuf> {
        let Self { name, version } = self;
        let folder = workspace.target_directory.join("tools").join(format!("{name}-{version}"));
        let program = folder.join("bin").join(name);
        if !program.with_extension(std::env::consts::EXE_EXTENSION).is_file() {
            // A debug build of cargo-deny takes half the time (78 s instead of 165 s on two cores), and its checks still take
            // only a second.
            cargo::run(
                cargo::command()
                    .args(["install", name, "--version", version, "--locked", "--debug", "--root"])
                    .arg(&folder)
                    .env("CARGO_TARGET_DIR", folder.join("build")),
            )
            .with_context(|| format!("cannot install {name}"))?;
            std::fs::remove_dir_all(folder.join("build"))
                .with_context(|| format!("cannot remove the build folder of {name}"))?;
        }
        Ok(program)
    }
}
