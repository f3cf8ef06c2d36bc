//! `kill`: kills a process with writers repeatedly, and checks that no acknowledged turn is lost.
//!
//! The writers run in a separate process ([`child`]), which prints each turn that it attempts and each acknowledgement.
//! After each kill every turn without an acknowledgement is repeated with its idempotency key, and the whole file is
//! compared with the acknowledgements.

pub(crate) mod ack_log;
pub(crate) mod child;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::engine::Engine;
use crate::random::{Random, fresh_seed};
use ack_log::AckLog;

/// Time from the first write of a child process to its kill, in milliseconds: minimum and maximum.
const LIFETIME_MS: (u64, u64) = (30, 200);

/// Arguments of `threadkeep-bench kill`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of kills
    #[arg(long, default_value_t = 200)]
    times: u64,
    /// Number of writers
    #[arg(long, default_value_t = 8)]
    writers: usize,
    /// Seed of the times between kills [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folder for the store
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

/// The results.
#[derive(Debug, Default, Serialize)]
struct Report {
    seed: u64,
    kills: u64,
    acknowledged: u64,
    /// Turns without an acknowledgement when the process was killed.
    unknown: u64,
    /// Turns without an acknowledgement that had been stored.
    stored_unacknowledged: u64,
    messages: u64,
    lost: u64,
    doubled: u64,
    out_of_order: u64,
    findings: u64,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("threadkeep-kill-").tempdir_in(&args.folder)?;
    let store = folder.path().join("killed.db");
    let seed = args.seed.unwrap_or_else(fresh_seed);
    let mut random = Random::new(seed);
    let mut report = Report { seed, ..Report::default() };
    let mut ack_log = AckLog::new(args.writers);
    let progress = indicatif::ProgressBar::new(args.times);
    for _ in 0..args.times {
        let life = Duration::from_millis(LIFETIME_MS.0 + random.below(LIFETIME_MS.1 - LIFETIME_MS.0));
        kill_once(&store, &mut ack_log, life).with_context(|| format!("with seed {seed}"))?;
        report.kills += 1;
        check(&store, &mut ack_log, &mut report).await.with_context(|| format!("with seed {seed}"))?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    report.acknowledged = ack_log.acknowledged();
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report:#?}");
    }
    let wrong = report.lost + report.doubled + report.out_of_order + report.findings;
    ensure!(wrong == 0, "acknowledged turns are missing or wrong (seed {seed})");
    Ok(())
}

/// Starts writers, kills them after `life`, and records their output.
fn kill_once(store: &Path, ack_log: &mut AckLog, life: Duration) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("kill-child").arg("--store").arg(store);
    command.arg("--next").arg(ack_log.next_turns()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut output = BufReader::new(child.stdout.take().context("stdout is not piped")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    ensure!(line == "ready\n", "the writers did not start: {line:?}");
    // The output is read concurrently, because a full pipe would block the writers.
    let reader = std::thread::spawn(move || output.lines().map_while(Result::ok).collect::<Vec<_>>());
    // The delay does not wait for a condition: it sets the time of the kill.
    std::thread::sleep(life);
    child.kill()?;
    child.wait()?;
    let lines = reader.join().map_err(|_| anyhow::anyhow!("reading the writers' output failed"))?;
    lines.iter().try_for_each(|line| ack_log.record_line(line))
}

/// Repeats unacknowledged turns, then compares the whole file with the log of acknowledgements.
async fn check(store: &Path, ack_log: &mut AckLog, report: &mut Report) -> Result<()> {
    let engine = Engine::sqlite(store)?;
    for turn in ack_log.unknown() {
        let appended = child::append(&engine, turn).await?;
        report.unknown += 1;
        report.stored_unacknowledged += u64::from(appended.replayed);
        ack_log.acknowledge(turn);
    }
    let maintenance = &engine.memory.backend().maintenance;
    let verified = maintenance.verify().await?;
    report.findings += verified.findings.len() as u64;
    report.messages = verified.messages;
    let found = ack_log.compare(&engine).await?;
    report.lost += found.lost;
    report.doubled += found.doubled;
    report.out_of_order += found.out_of_order;
    Ok(())
}
