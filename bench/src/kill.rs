//! `kill`: a process that writes is killed again and again, amid its writers, and nothing acknowledged may be missing.
//!
//! The writers are a process of their own ([`child`]), which says on its output what it tries and what is
//! acknowledged. Between two kills every turn whose fate is unknown is repeated with its idempotency key, and the whole
//! file is held against what was said.

pub(crate) mod child;
pub(crate) mod ledger;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::engine::Engine;
use crate::random::{Random, fresh_seed};
use ledger::Ledger;

/// How long a child lives after it has begun to write, in milliseconds.
const LIFE_MS: (u64, u64) = (30, 200);

/// Arguments of `threadkeep-bench kill`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often
    #[arg(long, default_value_t = 200)]
    times: u64,
    /// How many writers there are
    #[arg(long, default_value_t = 8)]
    writers: usize,
    /// Chooses the moments; another one each time unless given
    #[arg(long)]
    seed: Option<u64>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Where the store is made
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
}

/// What was seen.
#[derive(Debug, Default, Serialize)]
struct Report {
    seed: u64,
    kills: u64,
    acknowledged: u64,
    /// Turns whose fate was unknown when the process died.
    unknown: u64,
    /// Of these, turns that had been stored.
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
    let mut ledger = Ledger::new(args.writers);
    let progress = indicatif::ProgressBar::new(args.times);
    for _ in 0..args.times {
        let life = Duration::from_millis(LIFE_MS.0 + random.below(LIFE_MS.1 - LIFE_MS.0));
        kill_once(&store, &mut ledger, life).with_context(|| format!("with seed {seed}"))?;
        report.kills += 1;
        check(&store, &mut ledger, &mut report).await.with_context(|| format!("with seed {seed}"))?;
        progress.inc(1);
    }
    progress.finish_and_clear();
    report.acknowledged = ledger.acknowledged();
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report:#?}");
    }
    let wrong = report.lost + report.doubled + report.out_of_order + report.findings;
    ensure!(wrong == 0, "the store did not hold what it had acknowledged (seed {seed})");
    Ok(())
}

/// Lets writers write for a while, kills them, and notes what they had said until then.
fn kill_once(store: &Path, ledger: &mut Ledger, life: Duration) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("kill-child").arg("--store").arg(store);
    command.arg("--next").arg(ledger.next_turns()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut output = BufReader::new(child.stdout.take().context("the writers have no output")?);
    let mut line = String::new();
    output.read_line(&mut line)?;
    ensure!(line == "ready\n", "the writers did not begin: {line:?}");
    // Read meanwhile, or the pipe fills up and the writers stand still.
    let reader = std::thread::spawn(move || output.lines().map_while(Result::ok).collect::<Vec<_>>());
    // Not to wait for anything: this is the moment at which the process dies.
    std::thread::sleep(life);
    child.kill()?;
    child.wait()?;
    let lines = reader.join().map_err(|_| anyhow::anyhow!("the writers' output could not be read"))?;
    lines.iter().try_for_each(|line| ledger.note(line))
}

/// Repeats what is unknown, then holds the whole file against the ledger.
async fn check(store: &Path, ledger: &mut Ledger, report: &mut Report) -> Result<()> {
    let engine = Engine::sqlite(store)?;
    for turn in ledger.unknown() {
        let appended = child::append(&engine, turn).await?;
        report.unknown += 1;
        report.stored_unacknowledged += u64::from(appended.replayed);
        ledger.acknowledge(turn);
    }
    let maintenance = &engine.memory.backend().maintenance;
    let verified = maintenance.verify().await?;
    report.findings += verified.findings.len() as u64;
    report.messages = verified.messages;
    let kept = ledger.compare(&engine).await?;
    report.lost += kept.lost;
    report.doubled += kept.doubled;
    report.out_of_order += kept.out_of_order;
    Ok(())
}
