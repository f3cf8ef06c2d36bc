//! `cargo xtask wasm`: checks that the crates for browsers compile for wasm32. `browser.rs` builds and runs them.
//!
//! On wasm32 the crates do not depend on tokio, so they must sleep, spawn tasks and read the clock through their ports.
//! Package registries do not offer the standard library for wasm32. The check builds it from source, with the compiler
//! that Debian uses to build browsers. Both are unpacked into target/tools, not installed.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::cargo::{self, Workspace};
use crate::debian;

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// The library with the store for browsers, the package for pages, and the engine of the page without a server.
const CRATES: [&str; 12] = [
    "threadkeep-core",
    "threadkeep-context",
    "threadkeep-graph",
    "threadkeep-dialogue",
    "threadkeep-memory",
    "threadkeep-models",
    "threadkeep-agent",
    "threadkeep-store-indexeddb",
    "threadkeep-browser",
    "threadkeep-api",
    "threadkeep-general",
    "threadkeep-offline-page",
];
/// Debian packages of the compiler and the source of its standard library.
const COMPILER: [&str; 3] = ["rustc-web", "rust-web-src", "libstd-rust-web-dev"];

/// Runs the check on the workspace that contains the current folder.
pub(crate) fn run() -> Result<ExitCode> {
    if let Some(reason) = check(&Workspace::load()?)? {
        println!("{TARGET}: skipped: {reason}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Fails if a crate does not build. If the check cannot run, returns the reason or, in continuous integration (`CI=true`), fails.
pub(crate) fn check(workspace: &Workspace) -> Result<Option<String>> {
    let compiler = match Compiler::install(workspace)? {
        Ok(compiler) => compiler,
        Err(reason) => return Ok(Some(reason)),
    };
    let mut command = compiler.cargo("check", workspace)?;
    command.args(CRATES.iter().flat_map(|name| ["-p", name]));
    cargo::run(&mut command)?;
    Ok(None)
}

/// Debian's compiler.
pub(crate) struct Compiler {
    folder: PathBuf,
}

impl Compiler {
    /// Unpacks the compiler if it is missing. If it cannot be had, returns the reason or, in continuous integration, fails.
    pub(crate) fn install(workspace: &Workspace) -> Result<Result<Self, String>> {
        let folder = workspace.target_directory.join("tools/rustc-web");
        if !folder.is_dir()
            && let Some(reason) = debian::installation_problem()
        {
            let in_ci = env::var("CI").is_ok_and(|value| value == "true");
            ensure!(
                !in_ci,
                "continuous integration (CI=true) must not skip a check, but Debian's rustc-web is missing and {reason}"
            );
            return Ok(Err(format!("Debian's rustc-web is missing, and {reason}")));
        }
        if !folder.is_dir() {
            unpack(&folder)?;
        }
        Ok(Ok(Self { folder }))
    }

    /// Returns a cargo command, such as `build`, for wasm32 and into target/wasm.
    pub(crate) fn cargo(&self, subcommand: &str, workspace: &Workspace) -> Result<Command> {
        let mut command = cargo::command();
        command.args([subcommand, "--locked", "-Z", "build-std=std,panic_abort", "--target", TARGET]);
        command.arg("--target-dir").arg(workspace.target_directory.join("wasm"));
        command.env("RUSTC", self.folder.join("usr/bin/rustc")).env("LD_LIBRARY_PATH", libraries(&self.folder)?);
        // Debian's compiler has no linker for wasm32.
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker()?);
        // A page loads the whole module, and a browser reads no debug information from it.
        command.env("CARGO_PROFILE_DEV_DEBUG", "0");
        // Allows `-Z` on a stable compiler.
        command.env("RUSTC_BOOTSTRAP", "1");
        Ok(command)
    }
}

/// Returns the linker of the compiler of this workspace.
fn linker() -> Result<PathBuf> {
    let output = |arguments: &[&str]| -> Result<String> {
        let output = Command::new("rustc").args(arguments).output().context("cannot run rustc")?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let version = output(&["-vV"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc does not name its host")?;
    let sysroot = output(&["--print", "sysroot"])?;
    Ok(Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/rust-lld"))
}

/// Unpacks the compiler, its libraries and the source of the standard library. The folder appears only when it is complete.
fn unpack(folder: &Path) -> Result<()> {
    let unfinished = folder.with_extension("unfinished");
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished)?;
    }
    fs::create_dir_all(&unfinished)?;
    ensure!(debian::apt_get(&["update"], &unfinished), "cannot fetch Debian's package lists");
    let mut packages = COMPILER.map(str::to_owned).to_vec();
    // The names of these packages contain the versions of Rust and LLVM.
    for prefix in ["libstd-rust-web-", "libllvm"] {
        let found = packages.iter().find_map(|package| dependency(package, prefix));
        packages.push(found.with_context(|| format!("no dependency {prefix}… of Debian's rustc-web"))?);
    }
    let download: Vec<&str> = ["download"].into_iter().chain(packages.iter().map(String::as_str)).collect();
    ensure!(debian::apt_get(&download, &unfinished), "cannot download Debian's rustc-web");
    for package in debian::packages_in(&unfinished)? {
        cargo::run(Command::new("dpkg").arg("-x").arg(&package).arg(&unfinished))?;
        fs::remove_file(package)?;
    }
    fs::rename(&unfinished, folder).context("cannot move the unpacked compiler into place")
}

/// Returns the first dependency of a package whose name has a prefix, other than the compiler packages.
fn dependency(package: &str, prefix: &str) -> Option<String> {
    let output = Command::new("apt-cache").args(["depends", package]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut names = text.lines().filter_map(|line| line.trim_start().strip_prefix("Depends: "));
    names.find(|name| name.starts_with(prefix) && !COMPILER.contains(name)).map(str::to_owned)
}

/// Returns the library path of the compiler: usr/lib, and the folder within it that is named after the architecture.
fn libraries(folder: &Path) -> Result<OsString> {
    let libraries = folder.join("usr/lib");
    let mut folders = vec![libraries.clone()];
    for entry in fs::read_dir(&libraries)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with("-linux-gnu") {
            folders.push(entry.path());
        }
    }
    env::join_paths(folders).context("the path of the target folder contains a colon")
}
