//! `cargo xtask browser`: tests the engine in Chromium: the conformance suite of the IndexedDB store, and the package for pages. With
//! `--package`, builds the package as it is published.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::cargo::{self, Workspace};
use crate::wasm::{Compiler, TARGET};
use crate::web;

/// The crate that is compiled to the package, and the files that are published with it.
const CRATE: &str = "threadkeep-browser";
const FILES: &str = "crates/browser/npm";
/// The file of the package with the classes of the ART framework.
const ART: &str = "art.js";
/// The crate that is the engine of the page without a server, and the folder from which the page's build copies it.
const PAGE_ENGINE: &str = "threadkeep-offline-page";
const ENGINE_FOLDER: &str = "web/public/offline/engine";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only the cases whose names contain this text
    filter: Option<String>,
    /// Build the npm package `@threadkeep/browser` into target/browser-package, and test it
    #[arg(long)]
    package: bool,
}

/// Runs the tests on the workspace that contains the current folder.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let filter = args.filter.as_deref();
    let skipped = if args.package { build_package(&workspace, filter)? } else { run_suite(&workspace, filter)? };
    if let Some(reason) = skipped {
        println!("browser: skipped: {reason}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the suite, and tests the package in a debug build. If the compiler, Node.js or Chromium is missing, returns the reason.
pub(crate) fn run_suite(workspace: &Workspace, filter: Option<&str>) -> Result<Option<String>> {
    let compiler = match prepare(workspace)? {
        Ok(compiler) => compiler,
        Err(reason) => return Ok(Some(reason)),
    };
    let mut build = compiler.cargo("build", workspace)?;
    cargo::run(build.args(["-p", CRATE, "--lib", "--example", "suite"]))?;
    let built = workspace.target_directory.join("wasm").join(TARGET).join("debug");
    let suite = workspace.target_directory.join("wasm/suite");
    write_module(workspace, &built.join("examples/suite.wasm"), &suite)?;
    write_module(workspace, &built.join("threadkeep_browser.wasm"), &suite)?;
    fs::copy(workspace.root.join(FILES).join(ART), suite.join(ART))?;
    test(workspace, "suite.mjs", &suite, filter)?;
    test(workspace, "package.mjs", &suite, None)?;
    Ok(None)
}

/// Builds the package and tests it. If the compiler, Node.js or Chromium is missing, returns the reason.
fn build_package(workspace: &Workspace, filter: Option<&str>) -> Result<Option<String>> {
    let compiler = match prepare(workspace)? {
        Ok(compiler) => compiler,
        Err(reason) => return Ok(Some(reason)),
    };
    let module = build_module(workspace, &compiler, CRATE, Profile::Release)?;
    let package = workspace.target_directory.join("browser-package");
    if package.exists() {
        fs::remove_dir_all(&package)?;
    }
    write_module(workspace, &module, &package)?;
    copy_files(workspace, &package)?;
    test(workspace, "package.mjs", &package, filter)?;
    println!("the package is in {}", workspace.relative(&package));
    Ok(None)
}

/// How a module is compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Profile {
    /// Quickly, for tests.
    Debug,
    /// As it is published.
    Release,
}

/// Builds the library of a crate. Returns the module.
fn build_module(workspace: &Workspace, compiler: &Compiler, name: &str, profile: Profile) -> Result<PathBuf> {
    let mut build = compiler.cargo("build", workspace)?;
    let folder = match profile {
        Profile::Debug => "debug",
        Profile::Release => {
            // A page loads the whole module before it can do anything, so size matters more than speed.
            build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "s").env("CARGO_PROFILE_RELEASE_PANIC", "abort");
            build.arg("--release");
            "release"
        }
    };
    cargo::run(build.args(["-p", name, "--lib"]))?;
    let file = format!("{}.wasm", name.replace('-', "_"));
    Ok(workspace.target_directory.join("wasm").join(TARGET).join(folder).join(file))
}

/// Builds the engine of the page without a server into the folder from which the page's build copies it. If the compiler is missing,
/// returns the reason; the page is then built without its offline variant.
pub(crate) fn build_page_engine(workspace: &Workspace, profile: Profile) -> Result<Option<String>> {
    let folder = workspace.root.join(ENGINE_FOLDER);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let compiler = match Compiler::install(workspace)? {
        Ok(compiler) => compiler,
        Err(reason) => return Ok(Some(reason)),
    };
    let module = build_module(workspace, &compiler, PAGE_ENGINE, profile)?;
    let generated = workspace.target_directory.join("wasm/page-engine");
    if generated.exists() {
        fs::remove_dir_all(&generated)?;
    }
    write_module(workspace, &module, &generated)?;
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(&generated)? {
        let path = entry?.path();
        // The page has its own declarations of the types that it uses.
        if path.extension().is_some_and(|extension| extension == "js" || extension == "wasm") {
            fs::copy(&path, folder.join(path.file_name().unwrap_or_default()))?;
        }
    }
    Ok(None)
}

/// Removes the engine, so that the page is built without its offline variant.
pub(crate) fn remove_page_engine(workspace: &Workspace) -> Result<()> {
    let folder = workspace.root.join(ENGINE_FOLDER);
    if folder.exists() { Ok(fs::remove_dir_all(folder)?) } else { Ok(()) }
}

/// Installs what building and testing need.
fn prepare(workspace: &Workspace) -> Result<Result<Compiler, String>> {
    if let Some(reason) = web::ensure_browser(workspace) {
        return Ok(Err(reason));
    }
    web::install(workspace)?;
    Compiler::install(workspace)
}

/// Writes a module with its JavaScript side.
fn write_module(workspace: &Workspace, module: &Path, folder: &Path) -> Result<()> {
    let mut bindgen = cargo::command();
    bindgen
        .args(["run", "--locked", "--quiet", "--manifest-path", "xtask/bindgen/Cargo.toml", "--target-dir"])
        .arg(workspace.target_directory.join("tools/bindgen"));
    bindgen.arg("--").arg(module).arg(folder);
    cargo::run(bindgen.current_dir(&workspace.root))
}

/// Copies the files that are published with the module, and sets the version.
fn copy_files(workspace: &Workspace, package: &Path) -> Result<()> {
    for entry in fs::read_dir(workspace.root.join(FILES))? {
        let path = entry?.path();
        fs::copy(&path, package.join(path.file_name().unwrap_or_default()))?;
    }
    for license in ["LICENSE-APACHE", "LICENSE-MIT"] {
        fs::copy(workspace.root.join(license), package.join(license))
            .with_context(|| format!("cannot copy {license}"))?;
    }
    let manifest: PathBuf = package.join("package.json");
    let mut json: Value = serde_json::from_str(&fs::read_to_string(&manifest)?).context("package.json is not JSON")?;
    json["version"] = version(workspace)?.into();
    fs::write(&manifest, format!("{}\n", serde_json::to_string_pretty(&json)?)).context("cannot write package.json")
}

fn version(workspace: &Workspace) -> Result<String> {
    let package = workspace.packages.iter().find(|package| package.name == CRATE);
    Ok(package.with_context(|| format!("there is no package {CRATE}"))?.version.clone())
}

/// Runs tests of web/tests/engine on the modules in a folder.
fn test(workspace: &Workspace, file: &str, folder: &Path, filter: Option<&str>) -> Result<()> {
    let mut node = Command::new("node");
    node.arg(format!("tests/engine/{file}")).arg(folder).args(filter).current_dir(workspace.root.join("web"));
    cargo::run(node.stdin(Stdio::null()))
}
