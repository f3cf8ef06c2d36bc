//! `cargo xtask ci`: all checks that a change must pass, cheap ones first. Stops at the first failure.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::cargo::{self, Workspace};
use crate::test;
use crate::{browser, deny, layers, wasm, web, words};

const FACADE: &str = "threadkeep";

/// Builds the program together with the tests. On its own it would be built with other features, and every dependency twice.
const TESTS_AND_PROGRAM: [&str; 4] = ["test", "--workspace", "--locked", "--no-run"];

struct Step {
    name: String,
    action: Action,
}

enum Action {
    Cargo(Vec<String>),
    Doc,
    Layers,
    Words,
    Wasm,
    Deny,
    Web,
    Browser,
    Engine,
    Tests,
}

struct Outcome {
    name: String,
    verdict: Verdict,
    /// `None` if an earlier step failed.
    elapsed: Option<Duration>,
}

enum Verdict {
    Passed,
    Failed,
    NotRun,
    /// Not applicable on this machine, for the given reason.
    Skipped(String),
}

/// Runs all steps, then prints a table of the results and, if the tests ran, their counts.
pub(crate) fn run() -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let steps = steps(&workspace);
    let start = Instant::now();
    let count = steps.len();
    let mut outcomes = Vec::new();
    let mut summary = None;
    let mut failure = None;
    for (index, Step { name, action }) in steps.into_iter().enumerate() {
        if failure.is_some() {
            outcomes.push(Outcome { name, verdict: Verdict::NotRun, elapsed: None });
            continue;
        }
        println!("\n== {}/{count} {name} (after {})", index + 1, formatted(start.elapsed()));
        let step_start = Instant::now();
        let verdict = perform(&action, &workspace, &mut summary).unwrap_or_else(|error| {
            failure = Some(format!("{name}: {error:#}"));
            Verdict::Failed
        });
        outcomes.push(Outcome { name, verdict, elapsed: Some(step_start.elapsed()) });
    }
    print_table(&outcomes, start.elapsed());
    if let Some(failure) = &failure {
        println!("FAILED at {failure}");
    }
    if let Some(summary) = summary {
        println!("{summary}");
    }
    Ok(if failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn steps(workspace: &Workspace) -> Vec<Step> {
    let mut steps = vec![
        cargo_step("format", "fmt --all --check"),
        cargo_step("clippy", "clippy --workspace --all-targets --locked -- -D warnings"),
        // `--all-targets` excludes targets with `test = false`.
        cargo_step("clippy, data-set tests", "clippy --workspace --test data --locked -- -D warnings"),
    ];
    steps.push(Step { name: "documentation".to_owned(), action: Action::Doc });
    steps.push(Step { name: "layers".to_owned(), action: Action::Layers });
    steps.push(Step { name: "words".to_owned(), action: Action::Words });
    steps.extend(facade_features(workspace).map(|feature| {
        let arguments = format!("check -p {FACADE} --no-default-features --features {feature} --locked");
        cargo_step(&format!("feature {feature} alone"), &arguments)
    }));
    steps.push(Step { name: "wasm32".to_owned(), action: Action::Wasm });
    steps.push(Step { name: "licences, bans, sources, advisories".to_owned(), action: Action::Deny });
    steps.push(Step { name: "web page".to_owned(), action: Action::Web });
    steps.push(Step { name: "web page in a browser".to_owned(), action: Action::Browser });
    steps.push(Step { name: "engine in a browser".to_owned(), action: Action::Engine });
    steps.push(Step { name: "tests".to_owned(), action: Action::Tests });
    steps
}

fn cargo_step(name: &str, arguments: &str) -> Step {
    let arguments = arguments.split_whitespace().map(str::to_owned).collect();
    Step { name: name.to_owned(), action: Action::Cargo(arguments) }
}

/// Returns the features of the facade. The list cannot become empty unnoticed: if the facade were renamed, the layers
/// check would fail.
fn facade_features(workspace: &Workspace) -> impl Iterator<Item = &String> {
    let facade = workspace.packages.iter().filter(|package| package.name == FACADE);
    facade.flat_map(|package| package.features.keys()).filter(|feature| *feature != "default")
}

/// Runs a step. Sets `summary` to the counts of the tests.
fn perform(action: &Action, workspace: &Workspace, summary: &mut Option<String>) -> Result<Verdict> {
    match action {
        Action::Cargo(arguments) => cargo::run(cargo::command().args(arguments))?,
        Action::Doc => {
            let arguments = ["doc", "--workspace", "--no-deps", "--locked"];
            cargo::run(cargo::command().args(arguments).env("RUSTDOCFLAGS", "-D warnings"))?;
        }
        Action::Layers => layers::check(workspace)?,
        Action::Words => words::check(workspace)?,
        Action::Wasm => {
            if let Some(reason) = wasm::check(workspace)? {
                return Ok(Verdict::Skipped(reason));
            }
        }
        Action::Deny => deny::check(workspace)?,
        Action::Web => {
            if let Some(reason) = web::check(workspace, &TESTS_AND_PROGRAM)? {
                return Ok(Verdict::Skipped(reason));
            }
        }
        Action::Browser => {
            if let Some(reason) = web::check_in_browser(workspace)? {
                return Ok(Verdict::Skipped(reason));
            }
        }
        Action::Engine => {
            if let Some(reason) = browser::run_suite(workspace, None)? {
                return Ok(Verdict::Skipped(reason));
            }
        }
        Action::Tests => {
            let tests = test::run_tests(workspace, &test::Args::default())?;
            tests.print();
            *summary = Some(tests.verdict());
            if let Some(failure) = tests.failure() {
                bail!("{failure}");
            }
        }
    }
    Ok(Verdict::Passed)
}

fn print_table(outcomes: &[Outcome], total: Duration) {
    println!();
    let width = outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0);
    for Outcome { name, verdict, elapsed } in outcomes {
        let elapsed = elapsed.map_or(String::new(), formatted);
        match verdict {
            Verdict::Passed => println!("{name:<width$}  ok      {elapsed:>11}"),
            Verdict::Failed => println!("{name:<width$}  FAILED  {elapsed:>11}"),
            Verdict::NotRun => println!("{name:<width$}  not run"),
            Verdict::Skipped(reason) => println!("{name:<width$}  skipped: {reason}"),
        }
    }
    println!("{:<width$}          {:>11}", "total", formatted(total));
}

fn formatted(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}
