//! `cargo xtask browser`: runs the conformance suite of the IndexedDB store in Chromium.

use std::process::{Command, ExitCode, Stdio};

use anyhow::Result;

use crate::cargo::{self, Workspace};
use crate::wasm::{Compiler, TARGET};
use crate::web;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Run only the cases whose names contain this text
    filter: Option<String>,
}

/// Runs the suite on the workspace that contains the current folder.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    if let Some(reason) = run_suite(&Workspace::load()?, args.filter.as_deref())? {
        println!("browser: skipped: {reason}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the suite. If the compiler, Node.js or Chromium is missing, returns the reason.
fn run_suite(workspace: &Workspace, filter: Option<&str>) -> Result<Option<String>> {
    if let Some(reason) = web::ensure_browser(workspace) {
        return Ok(Some(reason));
    }
    let compiler = match Compiler::install(workspace)? {
        Ok(compiler) => compiler,
        Err(reason) => return Ok(Some(reason)),
    };
    let mut build = compiler.cargo("build", workspace)?;
    cargo::run(build.args(["-p", "threadkeep-store-indexeddb", "--example", "suite"]))?;
    let target = &workspace.target_directory;
    let folder = target.join("wasm/suite");
    let tool = target.join("tools/bindgen");
    let mut bindgen = cargo::command();
    bindgen
        .args(["run", "--locked", "--quiet", "--manifest-path", "xtask/bindgen/Cargo.toml", "--target-dir"])
        .arg(tool);
    bindgen.arg("--").arg(target.join("wasm").join(TARGET).join("debug/examples/suite.wasm")).arg(&folder);
    cargo::run(bindgen.current_dir(&workspace.root))?;
    web::install(workspace)?;
    let mut node = Command::new("node");
    node.arg("tests/engine/suite.mjs").arg(&folder).args(filter).current_dir(workspace.root.join("web"));
    cargo::run(node.stdin(Stdio::null()))?;
    Ok(None)
}
