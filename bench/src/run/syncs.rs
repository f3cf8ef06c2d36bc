//! Counts syncs, which do not depend on the disk's mood: strace watches `serve` while writers append for a moment.
//!
//! A process of its own, so that nothing of what is timed is watched.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::turns::GROW;
use crate::session::Session;

/// How long they append.
const SECONDS: f64 = 1.0;

/// What was counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Syncs {
    pub(super) per_turn: f64,
    /// Turns that shared a transaction: each has one sync of the log.
    pub(super) group: usize,
}

/// `None` where there is no strace.
pub(super) fn count(folder: &Path, pool: &[String], writers: usize) -> Result<Option<Syncs>> {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let trace = folder.join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "--seccomp-bpf", "-ttt", "-y", "-e", "trace=fdatasync,fsync", "-o"]).arg(&trace);
    command.arg(std::env::current_exe()?);
    let mut session = Session::start(command, folder, pool)?;
    session.ask(&json!({ "op": "seed", "thread": "grown", "start": 0, "count": GROW }))?;
    let names: Vec<String> = (0..writers).map(|writer| format!("writer {writer}")).collect();
    // What opens the threads is not counted.
    session.ask(&json!({ "op": "append", "threads": names, "seconds": SECONDS, "start": 0, "max_turns": 1 }))?;
    let began = since_epoch();
    let answer =
        session.ask(&json!({ "op": "append", "threads": names, "seconds": SECONDS, "start": 2, "max_turns": null }))?;
    let ended = since_epoch();
    session.close()?;
    let turns: u64 = answer["per_writer"].as_array().context("no turns")?.iter().filter_map(Value::as_u64).sum();
    ensure!(turns > 0, "no turn was appended");
    let (mut all, mut of_log) = (0_u32, 0_u32);
    for line in std::fs::read_to_string(&trace)?.lines().filter(|line| !line.contains(" resumed>")) {
        let at = line.split_ascii_whitespace().nth(1).and_then(|at| at.parse::<f64>().ok()).unwrap_or_default();
        if (began..=ended).contains(&at) && line.contains("sync(") {
            all += 1;
            of_log += u32::from(line.contains("-wal>"));
        }
    }
    ensure!(of_log > 0, "no sync was seen: turns were not durable");
    let group = (turns as f64 / f64::from(of_log)).round().max(1.0) as usize;
    Ok(Some(Syncs { per_turn: f64::from(all) / turns as f64, group }))
}

fn since_epoch() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs_f64()
}
