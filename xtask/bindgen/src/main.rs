//! Writes the JavaScript side of a WebAssembly module: `threadkeep-bindgen MODULE FOLDER`.
//!
//! wasm-bindgen's command-line tool does the same, but also includes a test runner with an HTTP client, and takes three times as long to
//! build.

use std::env;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let module = arguments.next().context("no module given")?;
    let folder = arguments.next().context("no folder given")?;
    Bindgen::new()
        .input_path(module)
        .web(true)?
        .typescript(true)
        // Pages that do not say where the module is load it from the folder of the script.
        .omit_default_module_path(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(folder)
}
