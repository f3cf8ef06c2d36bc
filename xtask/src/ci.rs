//! `cargo xtask ci`: everything that a change has to pass, cheap checks first, up to the first that fails.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use crate::cargo::{self, Workspace};
use crate::test;
use crate::{deny, layers};

const FACADE: &str = "threadkeep";

struct Step {
    name: String,
    action: Action,
}

enum Action {
    Cargo(Vec<String>),
    Doc,
    Layers,
    Deny,
    Tests,
}

struct Outcome {
    name: String,
    /// `None` where an earlier step failed.
    elapsed: Option<Duration>,
    has_failed: bool,
}

/// Runs all steps, then prints a table of them and, where the tests ran, their counts.
pub(crate) fn run() -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let steps = steps(&workspace);
    let start = Instant::now();
    let count = steps.len();
    let mut outcomes = Vec::new();
    let mut verdict = None;
    let mut failure = None;
    for (index, Step { name, action }) in steps.into_iter().enumerate() {
        if failure.is_some() {
            outcomes.push(Outcome { name, elapsed: None, has_failed: false });
            continue;
        }
        println!("\n== {}/{count} {name} (after {})", index + 1, shown(start.elapsed()));
        let step_start = Instant::now();
        failure = perform(&action, &workspace, &mut verdict).err().map(|error| format!("{name}: {error:#}"));
        outcomes.push(Outcome { name, elapsed: Some(step_start.elapsed()), has_failed: failure.is_some() });
    }
    print_table(&outcomes, start.elapsed());
    if let Some(failure) = &failure {
        println!("FAILED at {failure}");
    }
    if let Some(verdict) = verdict {
        println!("{verdict}");
    }
    Ok(if failure.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn steps(workspace: &Workspace) -> Vec<Step> {
    let mut steps = vec![
        cargo_step("format", "fmt --all --check"),
        cargo_step("clippy", "clippy --workspace --all-targets --locked -- -D warnings"),
    ];
    // `--all-targets` passes over targets with `test = false`.
    let data_tests = workspace.packages_with_data_tests();
    if !data_tests.is_empty() {
        let packages = data_tests.iter().map(|package| format!("-p {package} ")).collect::<String>();
        let arguments = format!("clippy {packages}--test data --locked -- -D warnings");
        steps.push(cargo_step("clippy, data-set tests", &arguments));
    }
    steps.push(Step { name: "documentation".to_owned(), action: Action::Doc });
    steps.push(Step { name: "layers".to_owned(), action: Action::Layers });
    steps.extend(facade_features(workspace).map(|feature| {
        let arguments = format!("check -p {FACADE} --no-default-features --features {feature} --locked");
        cargo_step(&format!("feature {feature} alone"), &arguments)
    }));
    steps.push(Step { name: "licences, bans, sources, advisories".to_owned(), action: Action::Deny });
    steps.push(Step { name: "tests".to_owned(), action: Action::Tests });
    steps
}

fn cargo_step(name: &str, arguments: &str) -> Step {
    let arguments = arguments.split_whitespace().map(str::to_owned).collect();
    Step { name: name.to_owned(), action: Action::Cargo(arguments) }
}

/// A facade of another name has no row in the table of layers, so it cannot go unchecked.
fn facade_features(workspace: &Workspace) -> impl Iterator<Item = &String> {
    let facade = workspace.packages.iter().filter(|package| package.name == FACADE);
    facade.flat_map(|package| package.features.keys()).filter(|feature| *feature != "default")
}

fn perform(action: &Action, workspace: &Workspace, verdict: &mut Option<String>) -> Result<()> {
    match action {
        Action::Cargo(arguments) => cargo::run(cargo::command().args(arguments)),
        Action::Doc => {
            let arguments = ["doc", "--workspace", "--no-deps", "--locked"];
            cargo::run(cargo::command().args(arguments).env("RUSTDOCFLAGS", "-D warnings"))
        }
        Action::Layers => layers::check(workspace),
        Action::Deny => deny::check(workspace),
        Action::Tests => {
            let summary = test::run_tests(workspace, &test::Args::default())?;
            summary.print();
            *verdict = Some(summary.verdict());
            summary.failure().map_or(Ok(()), |failure| Err(anyhow!("{failure}")))
        }
    }
}

fn print_table(outcomes: &[Outcome], total: Duration) {
    println!();
    let width = outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0);
    for Outcome { name, elapsed, has_failed } in outcomes {
        let verdict = if *has_failed { "FAILED" } else { "ok" };
        let verdict = elapsed.map_or("not run".to_owned(), |elapsed| format!("{verdict:<6}  {:>11}", shown(elapsed)));
        println!("{name:<width$}  {verdict}");
    }
    println!("{:<width$}          {:>11}", "total", shown(total));
}

fn shown(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 60 {
        format!("{:.1} s", duration.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}
