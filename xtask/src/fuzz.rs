//! `cargo xtask fuzz`: runs the fuzz targets under libFuzzer, guided by coverage, on the stable toolchain.
//!
//! The compiler's own passes measure coverage. Sanitizers would need a nightly compiler, and would find little because
//! unsafe code is forbidden. Failing inputs are written to target/fuzz/findings; once the bug is fixed, add the input
//! to fuzz/corpus, which tests/replay.rs of the package runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{self, Workspace};

/// Compiler flags that count edges and comparisons for libFuzzer, the same as those of `cargo fuzz`.
const COVERAGE_FLAGS: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=16",
    "--cfg=fuzzing",
];
/// Maximum time for one input.
const TIMEOUT_SECONDS: u32 = 10;
/// Maximum memory of a target.
const MEMORY_MIB: u32 = 2_048;
/// Maximum size of an input.
const MAX_INPUT_BYTES: u32 = 64 * 1024;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Targets, which are the folders of fuzz/corpus [default: all]
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Minutes of CPU time for each target
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
}

/// Builds the targets, then runs them one after the other. Fails if a target fails.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let known = targets(&workspace.root.join("fuzz/corpus"))?;
    if let Some(unknown) = args.targets.iter().find(|target| !known.contains(target)) {
        bail!("unknown target {unknown}; the targets are {}", known.join(", "));
    }
    let chosen = if args.targets.is_empty() { &known } else { &args.targets };
    let folder = workspace.target_directory.join("fuzz");
    let program = build(&folder)?;
    let mut failed = Vec::new();
    for target in chosen {
        let minutes = Duration::from_secs(60 * args.minutes);
        let (status, spent) = fuzz(target, &program, &folder, &workspace.root, minutes)?;
        println!("{target}: {} after {:.1} CPU minutes", verdict(status), spent.as_secs_f64() / 60.0);
        if !status.success() {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("FAILED: {}; the failing inputs are in {}", failed.join(", "), folder.join("findings").display());
    Ok(ExitCode::FAILURE)
}

fn verdict(status: ExitStatus) -> &'static str {
    if status.success() { "ok" } else { "FAILED" }
}

fn targets(corpus: &Path) -> Result<Vec<String>> {
    let folders = fs::read_dir(corpus).with_context(|| format!("cannot read {}", corpus.display()))?;
    let names = folders.map(|folder| Ok(folder?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// Builds the fuzz program. Passes `--target`, so that the flags do not apply to build scripts.
fn build(folder: &Path) -> Result<PathBuf> {
    let host = host()?;
    let arguments = ["build", "-p", "threadkeep-fuzz", "--features", "libfuzzer", "--profile", "fuzz", "--locked"];
    let mut command = cargo::command();
    command.args(arguments).args(["--target", &host, "--target-dir"]).arg(folder);
    cargo::run(command.env("RUSTFLAGS", COVERAGE_FLAGS.join(" ")))?;
    Ok(folder.join(host).join("fuzz/threadkeep-fuzz"))
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("failed to start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc printed no host")?;
    Ok(host.to_owned())
}

/// Runs a target until it fails or has used its CPU time. Stores new inputs in target/fuzz/corpus.
fn fuzz(target: &str, program: &Path, folder: &Path, root: &Path, time: Duration) -> Result<(ExitStatus, Duration)> {
    let corpus = folder.join("corpus").join(target);
    let findings = folder.join("findings");
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&findings)?;
    println!("\n== {target}");
    let mut running = Command::new(program)
        .env("THREADKEEP_FUZZ_TARGET", target)
        .arg(format!("-timeout={TIMEOUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-max_len={MAX_INPUT_BYTES}"))
        .arg(format!("-artifact_prefix={}/{target}-", findings.display()))
        .args(["-print_final_stats=1", "-use_value_profile=1", "-verbosity=0"])
        .args([&corpus, &root.join("fuzz/corpus").join(target)])
        .spawn()
        .with_context(|| format!("failed to start {}", program.display()))?;
    let start = Instant::now();
    loop {
        let spent = cpu_time(&running).unwrap_or_else(|| start.elapsed());
        if let Some(status) = running.try_wait()? {
            return Ok((status, spent));
        }
        if spent >= time {
            return Ok((stop(&mut running)?, spent));
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// Interrupts the fuzzer. Its exit status for an interruption counts as success.
fn stop(running: &mut Child) -> Result<ExitStatus> {
    let killed =
        Command::new("kill").args(["-INT", &running.id().to_string()]).status().context("failed to start kill")?;
    ensure!(killed.success(), "failed to stop the fuzzer");
    let status = running.wait()?;
    // libFuzzer exits with 72 when interrupted.
    Ok(if status.code() == Some(72) { ExitStatus::default() } else { status })
}

/// Returns the CPU time of a process, from Linux's /proc; `None` on other systems.
fn cpu_time(running: &Child) -> Option<Duration> {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string(format!("/proc/{}/stat", running.id())).ok()?;
    // The program name, in parentheses, may contain spaces.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = ticks(11)? + ticks(12)?;
    Some(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_the_folders_of_the_corpus() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        let targets = targets(&corpus).unwrap();
        assert!(targets.iter().any(|target| target == "html"), "{targets:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn cpu_time_excludes_sleep() {
        let mut sleeping = Command::new("sleep").arg("60").spawn().unwrap();
        let spent = cpu_time(&sleeping);
        sleeping.kill().unwrap();
        sleeping.wait().unwrap();
        assert!(spent.is_some_and(|spent| spent < Duration::from_secs(5)), "{spent:?}");
    }
}
