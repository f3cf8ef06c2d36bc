//! `cargo xtask wasm`: the crates that a browser can use build for wasm32.
//!
//! Which they do only while they wait, spawn and tell the time through their ports: what tokio has for it is not among their
//! dependencies there. The standard library for wasm32 comes from no package registry, so it is checked from its source, with the
//! compiler that Debian builds browsers with. Both are unpacked into target/tools and installed nowhere.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Workspace};
use crate::debian;

const TARGET: &str = "wasm32-unknown-unknown";
/// The library without stores: a store for a browser is one of its own.
const CRATES: [&str; 6] = [
    "threadkeep-core",
    "threadkeep-context",
    "threadkeep-graph",
    "threadkeep-memory",
    "threadkeep-models",
    "threadkeep-agent",
];
const COMPILER: [&str; 3] = ["rustc-web", "rust-web-src", "libstd-rust-web-dev"];

/// Runs the check on the workspace around the current folder.
pub(crate) fn run() -> Result<ExitCode> {
    if let Some(reason) = check(&Workspace::load()?)? {
        println!("{TARGET}: left out, {reason}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails where a crate does not build. Says why it was left out, which it never is in continuous integration (`CI=true`).
pub(crate) fn check(workspace: &Workspace) -> Result<Option<String>> {
    let folder = workspace.target_directory.join("tools/rustc-web");
    if !folder.is_dir()
        && let Some(reason) = debian::why_not_installable()
    {
        let in_ci = env::var("CI").is_ok_and(|value| value == "true");
        ensure!(!in_ci, "no check may be left out in continuous integration (CI=true), and {reason}");
        return Ok(Some(format!("Debian's rustc-web is not there, and {reason}")));
    }
    if !folder.is_dir() {
        unpack(&folder)?;
    }
    let mut command = cargo::command();
    command.args(["check", "--locked", "-Z", "build-std=std,panic_abort", "--target", TARGET]);
    command.args(CRATES.iter().flat_map(|name| ["-p", name]));
    command.arg("--target-dir").arg(workspace.target_directory.join("wasm"));
    command.env("RUSTC", folder.join("usr/bin/rustc")).env("LD_LIBRARY_PATH", libraries(&folder)?);
    // `-Z` on a compiler that is no nightly one.
    cargo::run(command.env("RUSTC_BOOTSTRAP", "1"))?;
    Ok(None)
}

/// Unpacks the compiler, its libraries and the source of the standard library. The folder is there once it is whole.
fn unpack(folder: &Path) -> Result<()> {
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(&unfinished)?;
    ensure!(debian::apt_get(&["update"], &unfinished), "Debian's package lists cannot be fetched");
    let mut packages = COMPILER.map(str::to_owned).to_vec();
    // These have the versions of Rust and LLVM in their names.
    for prefix in ["libstd-rust-web-", "libllvm"] {
        let found = packages.iter().find_map(|package| dependency(package, prefix));
        packages.push(found.with_context(|| format!("no package {prefix}… that Debian's rustc-web depends on"))?);
    }
    let download: Vec<&str> = ["download"].into_iter().chain(packages.iter().map(String::as_str)).collect();
    ensure!(debian::apt_get(&download, &unfinished), "Debian's rustc-web cannot be fetched");
    for package in files(&unfinished)? {
        cargo::run(Command::new("dpkg").arg("-x").arg(&package).arg(&unfinished))?;
        fs::remove_file(package)?;
    }
    fs::rename(&unfinished, folder).context("the compiler cannot be moved to its place")
}

/// The first package of such a name that a package depends on, other than itself.
fn dependency(package: &str, prefix: &str) -> Option<String> {
    let output = Command::new("apt-cache").args(["depends", package]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut names = text.lines().filter_map(|line| line.trim_start().strip_prefix("Depends: "));
    names.find(|name| name.starts_with(prefix) && !COMPILER.contains(name)).map(str::to_owned)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    Ok(entries.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect())
}

/// Where the compiler's own libraries are: in usr/lib, and in the folder there that is named after the machine.
fn libraries(folder: &Path) -> Result<OsString> {
    let libraries = folder.join("usr/lib");
    let mut folders = vec![libraries.clone()];
    for entry in fs::read_dir(&libraries)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with("-linux-gnu") {
            folders.push(entry.path());
        }
    }
    env::join_paths(folders).context("the path of the target folder has a colon")
}
