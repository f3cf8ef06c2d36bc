//! `cargo xtask test`: installs what the tests need, then runs every test of the workspace.
//!
//! Tests that read the data sets run as a separate step, because the data is not part of the repository: they are the
//! targets named `data`, which cargo does not run by default (`test = false`). The summary lists tests that could not
//! run.

mod counts;
mod needs;

pub(crate) use needs::postgres_problem;

use std::env;
use std::io::{self, BufRead, BufReader, IsTerminal, PipeReader, Write};
use std::num::NonZero;
use std::process::{Command, ExitCode};
use std::thread;

use anyhow::{Context, Result};
use counts::TestCounts;

use crate::cargo::{self, Workspace};

const DATA: &str = "../shared/data";
/// The environment variable from which the test harness takes the number of its threads.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// Arguments of `cargo xtask test`.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    /// Run only the tests that read the data sets
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

/// Runs the tests and prints the summary.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let summary = run_tests(&Workspace::load()?, args)?;
    summary.print();
    println!("{}", summary.verdict());
    Ok(if summary.has_passed() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The results of a test run.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    counts: TestCounts,
    skipped: Vec<String>,
    failure: Option<String>,
}

/// Runs the steps up to the first that fails. Returns an error only if the tests could not be started.
pub(crate) fn run_tests(workspace: &Workspace, args: &Args) -> Result<Summary> {
    let missing = needs::install(workspace)?;
    let mut tests = Tests { skipped: needs::names(&missing), summary: Summary::default() };
    tests.summary.skipped.extend(missing.iter().map(needs::MissingProgram::to_string));
    if !args.data {
        let command = tests.cargo_test(args);
        tests.stream(command, args)?;
    }
    if let Some(reason) = why_data_sets_are_skipped(workspace, args, &tests.summary) {
        tests.summary.skipped.push(format!("data-set tests: skipped: {reason}"));
    } else {
        tests.run_data_sets(workspace, args)?;
    }
    Ok(tests.summary)
}

fn why_data_sets_are_skipped(workspace: &Workspace, args: &Args, summary: &Summary) -> Option<String> {
    if summary.failure.is_some() {
        Some("an earlier step failed".to_owned())
    } else if !args.data && args.selects_tests() {
        Some("only selected tests were requested".to_owned())
    } else if !workspace.root.join(DATA).is_dir() {
        Some(format!("{DATA} does not exist"))
    } else {
        None
    }
}

struct Tests {
    /// The names of the missing programs, for the tests that need them.
    skipped: String,
    summary: Summary,
}

impl Tests {
    fn run_data_sets(&mut self, workspace: &Workspace, args: &Args) -> Result<()> {
        let folder = workspace.root.join(DATA).canonicalize().with_context(|| format!("cannot resolve {DATA}"))?;
        // The whole workspace: packages chosen by name would be built with other features, and their dependencies again.
        let mut command = self.cargo_test(args);
        command.args(["--test", "data"]).env("THREADKEEP_DATA", &folder);
        self.stream(command, args)
    }

    fn cargo_test(&self, args: &Args) -> Command {
        let mut command = cargo::command();
        command.args(["test", "--locked"]);
        let selects_a_package = |word: &String| word.starts_with("-p") || word.starts_with("--package");
        if !args.extra.iter().any(selects_a_package) {
            command.arg("--workspace");
        }
        if env::var_os(TEST_THREADS).is_none() {
            // Many tests wait: for a disk, for a client, for another process. With two threads for each core, the binaries
            // that take longest use half of the processor.
            let threads = 3 * thread::available_parallelism().map_or(1, NonZero::get);
            command.env(TEST_THREADS, threads.to_string());
        }
        if !self.skipped.is_empty() {
            command.env("THREADKEEP_MISSING_PROGRAMS", &self.skipped);
        }
        command
    }

    /// Runs a command, prints its output and counts the test results in it. Stores a failure in the summary.
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
        let (output, input) = io::pipe().context("cannot create a pipe for the output of the tests")?;
        command.stdout(input.try_clone()?).stderr(input);
        let mut child = command.spawn().with_context(|| format!("failed to start `{typed}`"))?;
        // `command` owns the write ends of the pipe. While they are open, reading would never reach the end.
        drop(command);
        print_and_count(output, &mut self.summary.counts)?;
        let status = child.wait()?;
        if !status.success() {
            self.summary.failure = Some(format!("`{typed}` failed ({status})"));
        }
        Ok(())
    }
}

fn print_and_count(output: PipeReader, counts: &mut TestCounts) -> Result<()> {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    while output.read_until(b'\n', &mut line)? > 0 {
        io::stdout().write_all(&line)?;
        counts.add_line(&String::from_utf8_lossy(&line));
        line.clear();
    }
    Ok(())
}

impl Summary {
    /// Whether all tests that ran passed.
    pub(crate) fn has_passed(&self) -> bool {
        self.failure.is_none()
    }

    /// Returns the command that failed, for a message.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// Prints the counts, and what was skipped or failed.
    pub(crate) fn print(&self) {
        let TestCounts { binaries, doc_tested_crates, passed, failed, ignored } = self.counts;
        println!("\nSummary");
        println!("  test binaries  {binaries}, and the doc tests of {doc_tested_crates} crates");
        println!("  tests          {passed} passed; {failed} failed; {ignored} ignored");
        if self.skipped.is_empty() {
            println!("  skipped        nothing");
        }
        for what in &self.skipped {
            println!("  skipped        {what}");
        }
        if let Some(failure) = &self.failure {
            println!("  FAILED         {failure}");
        }
    }

    /// Returns the last line of the output.
    pub(crate) fn verdict(&self) -> String {
        format!("{} passed, {} failed", self.counts.passed, self.counts.failed)
    }
}
