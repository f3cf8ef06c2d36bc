//! `cargo xtask fuzz`: the fuzz targets under libFuzzer, guided by coverage, on the stable toolchain.
//!
//! The compiler's own passes count what is covered; a sanitizer, which would need a nightly one, finds little where
//! unsafe code is forbidden. What is found is written to target/fuzz/findings; once mended it joins fuzz/corpus, which
//! tests/replay.rs of the package runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{self, Workspace};

/// What counts edges and comparisons for libFuzzer, as `cargo fuzz` sets it.
const COVERAGE: [&str; 7] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=16",
    "--cfg=fuzzing",
];
/// Seconds that one input may take.
const TIMEOUT_SECONDS: u32 = 10;
/// MiB that a target may take.
const MEMORY_MIB: u32 = 2_048;
/// Bytes of an input.
const INPUT_BYTES: u32 = 64 * 1024;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Targets, which are the folders of fuzz/corpus; all of them where none is named
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
    /// Minutes of processor time for each target
    #[arg(long, value_name = "N", default_value_t = 10)]
    minutes: u64,
}

/// Builds the targets, then runs one after the other; fails where one of them failed.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let workspace = Workspace::load()?;
    let known = targets(&workspace.root.join("fuzz/corpus"))?;
    if let Some(unknown) = args.targets.iter().find(|target| !known.contains(target)) {
        bail!("there is no target {unknown}; there are {}", known.join(", "));
    }
    let chosen = if args.targets.is_empty() { &known } else { &args.targets };
    let folder = workspace.target_directory.join("fuzz");
    let program = build(&folder)?;
    let mut failed = Vec::new();
    for target in chosen {
        let minutes = Duration::from_secs(60 * args.minutes);
        let (status, spent) = fuzz(target, &program, &folder, &workspace.root, minutes)?;
        println!("{target}: {} after {:.1} processor-minutes", verdict(status), spent.as_secs_f64() / 60.0);
        if !status.success() {
            failed.push(target.as_str());
        }
    }
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("FAILED: {}; the inputs are in {}", failed.join(", "), folder.join("findings").display());
    Ok(ExitCode::FAILURE)
}

fn verdict(status: ExitStatus) -> &'static str {
    if status.success() { "ok" } else { "FAILED" }
}

fn targets(corpus: &Path) -> Result<Vec<String>> {
    let folders = fs::read_dir(corpus).with_context(|| format!("{} cannot be read", corpus.display()))?;
    let names = folders.map(|folder| Ok(folder?.file_name().to_string_lossy().into_owned()));
    let mut names = names.collect::<Result<Vec<_>>>()?;
    names.sort();
    Ok(names)
}

/// With a target of its own the flags do not reach build scripts.
fn build(folder: &Path) -> Result<PathBuf> {
    let host = host()?;
    let arguments = ["build", "-p", "threadkeep-fuzz", "--features", "libfuzzer", "--profile", "fuzz", "--locked"];
    let mut command = cargo::command();
    command.args(arguments).args(["--target", &host, "--target-dir"]).arg(folder);
    cargo::run(command.env("RUSTFLAGS", COVERAGE.join(" ")))?;
    Ok(folder.join(host).join("fuzz/threadkeep-fuzz"))
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc does not start")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).context("rustc names no host")?;
    Ok(host.to_owned())
}

/// Runs a target until it fails or has had its processor time. What it learns stays in target/fuzz/corpus.
fn fuzz(target: &str, program: &Path, folder: &Path, root: &Path, time: Duration) -> Result<(ExitStatus, Duration)> {
    let learnt = folder.join("corpus").join(target);
    let findings = folder.join("findings");
    fs::create_dir_all(&learnt)?;
    fs::create_dir_all(&findings)?;
    println!("\n== {target}");
    let mut running = Command::new(program)
        .env("THREADKEEP_FUZZ_TARGET", target)
        .arg(format!("-timeout={TIMEOUT_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MIB}"))
        .arg(format!("-max_len={INPUT_BYTES}"))
        .arg(format!("-artifact_prefix={}/{target}-", findings.display()))
        .args(["-print_final_stats=1", "-use_value_profile=1", "-verbosity=0"])
        .args([&learnt, &root.join("fuzz/corpus").join(target)])
        .spawn()
        .with_context(|| format!("{} does not start", program.display()))?;
    let begun = Instant::now();
    loop {
        let spent = processor_time(&running).unwrap_or_else(|| begun.elapsed());
        if let Some(status) = running.try_wait()? {
            return Ok((status, spent));
        }
        if spent >= time {
            return Ok((stop(&mut running)?, spent));
        }
        thread::sleep(Duration::from_secs(1));
    }
}

/// libFuzzer ends well when it is interrupted; it counts as a failure only where it says so.
fn stop(running: &mut Child) -> Result<ExitStatus> {
    let killed = Command::new("kill").args(["-INT", &running.id().to_string()]).status().context("no `kill`")?;
    ensure!(killed.success(), "the fuzzer cannot be stopped");
    let status = running.wait()?;
    // Its own code for an interruption.
    Ok(if status.code() == Some(72) { ExitStatus::default() } else { status })
}

/// What a process has used of its processors, on Linux.
fn processor_time(running: &Child) -> Option<Duration> {
    const TICKS_PER_SECOND: u64 = 100;
    let stat = fs::read_to_string(format!("/proc/{}/stat", running.id())).ok()?;
    // The name of the program, in brackets, may hold blanks.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let ticks = ticks(11)? + ticks(12)?;
    Some(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_folder_of_the_corpus_is_a_target() {
        let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
        let targets = targets(&corpus).unwrap();
        assert!(targets.iter().any(|target| target == "html"), "{targets:?}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn processor_time_is_that_of_the_process() {
        let mut sleeping = Command::new("sleep").arg("60").spawn().unwrap();
        let spent = processor_time(&sleeping);
        sleeping.kill().unwrap();
        sleeping.wait().unwrap();
        assert!(spent.is_some_and(|spent| spent < Duration::from_secs(5)), "{spent:?}");
    }
}
