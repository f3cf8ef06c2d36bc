//! The workspace as described by `cargo metadata`, and cargo as a child process.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The workspace: its folders and its members.
#[derive(Debug, Deserialize)]
pub(crate) struct Workspace {
    #[serde(rename = "workspace_root")]
    pub(crate) root: PathBuf,
    pub(crate) target_directory: PathBuf,
    pub(crate) packages: Vec<Package>,
}

/// One member of the workspace.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) version: String,
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) features: serde_json::Map<String, serde_json::Value>,
}

/// A dependency of a package.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for `[dependencies]`, otherwise `build` or `dev`.
    pub(crate) kind: Option<String>,
    /// The folder of a path dependency; `None` for a published crate.
    pub(crate) path: Option<PathBuf>,
}

impl Workspace {
    /// Loads the workspace that contains the current folder.
    pub(crate) fn load() -> Result<Self> {
        let output = command()
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .stderr(Stdio::inherit())
            .output()
            .context("failed to start cargo metadata")?;
        ensure!(output.status.success(), "cargo metadata failed");
        Self::from_json(&output.stdout)
    }

    /// Parses the output of `cargo metadata --format-version 1 --no-deps`.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self> {
        serde_json::from_slice(json).context("unexpected output from cargo metadata")
    }

    /// Returns a path relative to the root of the workspace, with forward slashes.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.to_string_lossy().replace('\\', "/")
    }
}

impl Package {
    /// Returns the folder of the manifest.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }
}

/// Creates a cargo command that behaves as if it had been typed into a shell.
///
/// `cargo run` sets environment variables that describe xtask. Build scripts that depend on them would run again each time a
/// developer switches between `cargo xtask` and cargo itself, so they are removed.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    let prefixes = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    for (name, _) in env::vars_os() {
        if prefixes.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// Prints and runs a command; fails unless it exits successfully.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", as_typed(command));
    let status = command.status().with_context(|| format!("failed to start `{}`", as_typed(command)))?;
    ensure!(status.success(), "`{}` failed ({status})", as_typed(command));
    Ok(())
}

/// Formats a command as it would be typed into a shell, for messages.
pub(crate) fn as_typed(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
