//! `cargo xtask train`: trains the classifiers of the offline assistants from their phrase files.
//!
//! Each assistant has a test that compares its `weights.bin` with the result of training. If the environment contains
//! `THREADKEEP_TRAIN`, the test writes the file instead.

use std::process::ExitCode;

use anyhow::Result;

use crate::cargo;

/// The packages with a classifier.
const PACKAGES: [&str; 3] = ["threadkeep-general", "threadkeep-subway", "threadkeep-underground"];
const TEST: &str = "the_classifier_is_trained_from_the_phrases";

/// Writes the weights of all assistants.
pub(crate) fn run() -> Result<ExitCode> {
    let mut command = cargo::command();
    command.args(["test", "--quiet", "--locked", "--lib"]);
    command.args(PACKAGES.iter().flat_map(|name| ["-p", name])).arg(TEST);
    cargo::run(command.env("THREADKEEP_TRAIN", "1"))?;
    println!("trained the classifiers of {}", PACKAGES.join(", "));
    Ok(ExitCode::SUCCESS)
}
