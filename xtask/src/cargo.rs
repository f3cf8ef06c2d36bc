//! The workspace as `cargo metadata` describes it, and cargo as a child process.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The members of the workspace and where it lies.
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
    pub(crate) manifest_path: PathBuf,
    pub(crate) dependencies: Vec<Dependency>,
    #[serde(default)]
    pub(crate) features: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    targets: Vec<Target>,
}

/// A line of a dependency table.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `None` for `[dependencies]`, otherwise `build` or `dev`.
    pub(crate) kind: Option<String>,
    /// Set where the dependency is a folder of this repository rather than a published crate.
    pub(crate) path: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

impl Workspace {
    /// Asks cargo for the workspace around the current folder.
    pub(crate) fn load() -> Result<Self> {
        let output = command()
            .args(["metadata", "--format-version", "1", "--no-deps"])
            .stderr(Stdio::inherit())
            .output()
            .context("cargo metadata does not start")?;
        ensure!(output.status.success(), "cargo metadata failed");
        Self::from_json(&output.stdout)
    }

    /// Reads the output of `cargo metadata --format-version 1 --no-deps`.
    pub(crate) fn from_json(json: &[u8]) -> Result<Self> {
        serde_json::from_slice(json).context("cargo metadata gave something else than expected")
    }

    /// The path as seen from the root of the workspace, with forward slashes.
    pub(crate) fn relative(&self, path: &Path) -> String {
        let path = path.strip_prefix(&self.root).unwrap_or(path);
        path.to_string_lossy().replace('\\', "/")
    }

    /// Names of the packages whose tests/data.rs runs over the data sets.
    pub(crate) fn packages_with_data_tests(&self) -> Vec<&str> {
        self.packages.iter().filter(|package| package.has_test("data")).map(|package| package.name.as_str()).collect()
    }
}

impl Package {
    /// The folder of its manifest.
    pub(crate) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(Path::new("."))
    }

    fn has_test(&self, name: &str) -> bool {
        self.targets.iter().any(|target| target.name == name && target.kind.iter().any(|kind| kind == "test"))
    }
}

/// A cargo command that behaves as if it had been typed into a shell.
///
/// `cargo run` describes xtask to its child in environment variables. Build scripts that watch those would run again
/// each time a developer changes between `cargo xtask` and cargo itself.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo")));
    let of_xtask = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
    for (name, _) in env::vars_os() {
        if of_xtask.iter().any(|prefix| name.to_string_lossy().starts_with(prefix)) {
            command.env_remove(name);
        }
    }
    command
}

/// Prints and runs a command; an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    println!("$ {}", as_typed(command));
    let status = command.status().with_context(|| format!("`{}` does not start", as_typed(command)))?;
    ensure!(status.success(), "`{}` failed ({status})", as_typed(command));
    Ok(())
}

/// The command as a person would type it, for messages.
pub(crate) fn as_typed(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_stem().unwrap_or_default();
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}
