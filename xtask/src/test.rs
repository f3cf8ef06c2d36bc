//! `cargo xtask test`: installs what the tests need, then runs every test of the workspace.
//!
//! Tests over the data sets are a step of their own, because the data is not part of the repository: the targets named
//! `data`, which cargo leaves out by itself (`test = false`). Whatever cannot run is named in the summary.

mod needs;
mod tally;

use std::io::{self, BufRead, BufReader, IsTerminal, PipeReader, Write};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use tally::Tally;

use crate::cargo::{self, Workspace};

const DATA: &str = "../shared/data";

/// Arguments of `cargo xtask test`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Run only the tests over the data sets
    #[arg(long)]
    data: bool,
    /// Arguments for cargo test, such as a test's name or `-p PACKAGE`; the data-set step then runs only with --data
    #[arg(allow_hyphen_values = true)]
    extra: Vec<String>,
    /// Arguments for the test binaries
    #[arg(last = true)]
    harness: Vec<String>,
}

impl Args {
    fn selects_tests(&self) -> bool {
        !self.extra.is_empty() || !self.harness.is_empty()
    }
}

/// Runs the tests and prints the summary, failed or not.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let summary = run_tests(&Workspace::load()?, args)?;
    summary.print();
    println!("{}", summary.verdict());
    Ok(if summary.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What ran, with which result, and what did not.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    tally: Tally,
    left_out: Vec<String>,
    failure: Option<String>,
}

/// Runs the steps up to the first that fails; an error only where the tests could not even start.
pub(crate) fn run_tests(workspace: &Workspace, args: &Args) -> Result<Summary> {
    let lacking = needs::install(workspace)?;
    let mut tests = Tests { left_out: needs::names(&lacking), summary: Summary::default() };
    tests.summary.left_out.extend(lacking.iter().map(needs::Lacking::to_string));
    if !args.data {
        tests.run_workspace(args)?;
    }
    if let Some(reason) = why_without_data_sets(workspace, args, &tests.summary) {
        tests.summary.left_out.push(format!("data-set tests: left out, {reason}"));
    } else {
        tests.run_data_sets(workspace, args)?;
    }
    Ok(tests.summary)
}

fn why_without_data_sets(workspace: &Workspace, args: &Args, summary: &Summary) -> Option<String> {
    if summary.failure.is_some() {
        Some("a step before it failed".to_owned())
    } else if !args.data && args.selects_tests() {
        Some("only a selection was asked for".to_owned())
    } else if !workspace.root.join(DATA).is_dir() {
        Some(format!("{DATA} is not there"))
    } else {
        None
    }
}

struct Tests {
    /// Names of the programs that are not there, for the tests that need them.
    left_out: String,
    summary: Summary,
}

impl Tests {
    fn run_workspace(&mut self, args: &Args) -> Result<()> {
        let selects_a_package = |word: &String| word.starts_with("-p") || word.starts_with("--package");
        let mut command = self.cargo_test();
        if !args.extra.iter().any(selects_a_package) {
            command.arg("--workspace");
        }
        self.stream(command, args)
    }

    fn run_data_sets(&mut self, workspace: &Workspace, args: &Args) -> Result<()> {
        let folder = workspace.root.join(DATA).canonicalize().with_context(|| format!("{DATA} cannot be reached"))?;
        let mut packages = workspace.packages_with_data_tests().into_iter();
        for package in packages.by_ref() {
            let mut command = self.cargo_test();
            command.args(["-p", package, "--test", "data"]).env("THREADKEEP_DATA", &folder);
            self.stream(command, args)?;
            if self.summary.failure.is_some() {
                break;
            }
        }
        let after_failure = packages.map(|package| format!("data-set tests of {package}: left out after the failure"));
        self.summary.left_out.extend(after_failure);
        Ok(())
    }

    fn cargo_test(&self) -> Command {
        let mut command = cargo::command();
        command.args(["test", "--locked"]);
        if !self.left_out.is_empty() {
            command.env("THREADKEEP_LEFT_OUT", &self.left_out);
        }
        command
    }

    /// Shows the output as it comes and counts in it; a failing test is noted, not returned.
    fn stream(&mut self, mut command: Command, args: &Args) -> Result<()> {
        command.args(&args.extra);
        if !args.harness.is_empty() {
            command.arg("--").args(&args.harness);
        }
        let typed = cargo::as_typed(&command);
        println!("$ {typed}");
        if io::stdout().is_terminal() {
            command.env("CARGO_TERM_COLOR", "always");
        }
        let (output, input) = io::pipe().context("there is no pipe for the output of the tests")?;
        command.stdout(input.try_clone()?).stderr(input);
        let mut child = command.spawn().with_context(|| format!("`{typed}` does not start"))?;
        // The command keeps the writing ends of the pipe open, and reading would never come to an end.
        drop(command);
        show_and_count(output, &mut self.summary.tally)?;
        let status = child.wait()?;
        if !status.success() {
            self.summary.failure = Some(format!("`{typed}` failed ({status})"));
        }
        Ok(())
    }
}

fn show_and_count(output: PipeReader, tally: &mut Tally) -> Result<()> {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        io::stdout().write_all(&line)?;
        tally.add_line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}

impl Summary {
    /// Whether everything that ran passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.failure.is_none()
    }

    /// What failed, for a message.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Prints everything but the verdict.
    pub(crate) fn print(&self) {
        let Tally { binaries, doc_tested_crates, passed, failed, ignored } = self.tally;
        println!("\nSummary");
        println!("  test binaries  {binaries}, and the doc tests of {doc_tested_crates} crates");
        println!("  tests          {passed} passed; {failed} failed; {ignored} ignored");
        if self.left_out.is_empty() {
            println!("  left out       nothing");
        }
        for what in &self.left_out {
            println!("  left out       {what}");
        }
        if let Some(failure) = &self.failure {
            println!("  FAILED         {failure}");
        }
    }

    /// The last line of a run.
    pub(crate) fn verdict(&self) -> String {
        format!("{} passed, {} failed", self.tally.passed, self.tally.failed)
    }
}
