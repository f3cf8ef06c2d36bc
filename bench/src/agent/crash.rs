//! Crashes a run at every crash point, and resumes it in another process.
//!
//! The run has a model, two parallel read-only tools, an activity that runs once and a call that needs approval.
//! There is a crash point before and after every commit and every effect. The benchmark checks that stored effects are
//! not repeated, that effects with side effects are executed at most once, and that the conversation equals that of an
//! uninterrupted run or states that the outcome of an effect is unknown.

pub(crate) mod child;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// Effects that may be repeated if they were not stored.
const REPEATABLE: [&str; 4] = ["model after 0", "model after 3", "tool look_one", "tool look_two"];
/// Effects that are executed at most once.
const ONCE: [&str; 2] = ["activity book", "tool delete"];

/// Arguments of `threadkeep-bench agent crash`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Folder for the stores and logs
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
    /// URL of a store in PostgreSQL, Redis or a Redis Cluster, used instead of files; every run uses a separate tenant
    #[arg(long, value_name = "URL")]
    store: Option<String>,
}

/// The outcome of a finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RunOutcome {
    pub(crate) transcript: Vec<String>,
    pub(crate) approvals: Vec<String>,
    /// Number of run records and journal entries that were not deleted.
    pub(crate) leftover_records: usize,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    /// Crash points, one run each.
    points: u64,
    /// Runs with the same outcome as the uninterrupted run.
    same: u64,
    /// Runs that report an unknown outcome.
    unknown: u64,
    /// Effects that were repeated because they had not been stored.
    repeated: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("threadkeep-crash-").tempdir_in(&args.folder)?;
    let new_run = |name: &str| CrashRun::new(folder.path(), name, args.store.as_deref());
    let uninterrupted = new_run("uninterrupted")?;
    let reference = uninterrupted.finish(0)?;
    let points = uninterrupted.log()?.len() as u64;
    let mut report = Report::default();
    for point in 1..=points {
        let run = new_run(&point.to_string())?;
        run.crash(point)?;
        let before = run.log()?;
        let outcome = run.finish(2)?;
        let after = run.log()?;
        let point_name = before.last().cloned().unwrap_or_default();
        check(&before, &after, &outcome, &reference, &mut report)
            .with_context(|| format!("at point {point} of {points}, {point_name}: {before:#?} then {outcome:#?}"))?;
        report.points += 1;
    }
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report:#?}");
    }
    Ok(())
}

fn check(
    before: &[String],
    after: &[String],
    outcome: &RunOutcome,
    reference: &RunOutcome,
    report: &mut Report,
) -> Result<()> {
    let started = count_started(after);
    let times = |effect: &str| started.get(effect).copied().unwrap_or(0);
    let mut is_all_stored = true;
    for effect in REPEATABLE.iter().chain(&ONCE) {
        let stored = is_stored(before, effect);
        is_all_stored &= stored || times(effect) == 1 && !before.contains(&format!("begin {effect}"));
        ensure!(!stored || times(effect) == 1, "{effect} was repeated although it was stored");
    }
    for effect in REPEATABLE {
        ensure!((1..=2).contains(&times(effect)), "{effect} was executed {} times", times(effect));
        report.repeated += u64::from(times(effect) > 1);
    }
    for effect in ONCE {
        ensure!(times(effect) <= 1, "{effect} was executed {} times", times(effect));
    }
    ensure!(outcome.leftover_records == 0, "{} records of the run were not deleted", outcome.leftover_records);
    if outcome == reference {
        ensure!(ONCE.iter().all(|effect| times(effect) == 1), "the run reports an effect that was not executed");
        report.same += 1;
        return Ok(());
    }
    let differs: Vec<_> =
        outcome.transcript.iter().zip(&reference.transcript).filter(|(one, other)| one != other).collect();
    ensure!(outcome.transcript.len() == reference.transcript.len(), "the conversation has a different length");
    ensure!(!is_all_stored, "the conversation differs although all outcomes are known: {differs:#?}");
    ensure!(differs.iter().all(|(line, _)| line.contains("unknown")), "the conversation differs: {differs:#?}");
    report.unknown += 1;
    Ok(())
}

/// Whether a commit followed the end of an effect.
fn is_stored(log: &[String], effect: &str) -> bool {
    let ended = log.iter().position(|line| *line == format!("end {effect}"));
    ended.is_some_and(|ended| log[ended..].iter().any(|line| line == "end commit"))
}

fn count_started(log: &[String]) -> BTreeMap<&str, u64> {
    let mut started = BTreeMap::new();
    for effect in log.iter().filter_map(|line| line.strip_prefix("begin ")) {
        *started.entry(effect).or_insert(0) += 1;
    }
    started
}

/// The store and the log of one run.
struct CrashRun {
    store: String,
    tenant: String,
    log: PathBuf,
}

impl CrashRun {
    fn new(folder: &Path, name: &str, store: Option<&str>) -> Result<Self> {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        let store = store.map_or_else(|| folder.join("store.db").display().to_string(), str::to_owned);
        // The tenant is unique, because earlier invocations may have used the same database.
        let tenant = format!("{name}-{}", uuid::Uuid::new_v4());
        Ok(Self { store, tenant, log: folder.join("log") })
    }

    fn log(&self) -> Result<Vec<String>> {
        Ok(std::fs::read_to_string(&self.log)?.lines().map(str::to_owned).collect())
    }

    fn start(&self, die_at: u64, minutes: u64) -> Result<Output> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["agent", "crash-child", "--store", &self.store, "--tenant", &self.tenant]);
        command.arg("--log").arg(&self.log).arg("--die-at").arg(die_at.to_string());
        Ok(command.arg("--minutes").arg(minutes.to_string()).output()?)
    }

    fn crash(&self, point: u64) -> Result<()> {
        let output = self.start(point, 0)?;
        ensure!(output.status.code().is_none(), "the process did not crash: {}", describe(&output));
        Ok(())
    }

    /// Starts or resumes the run in a process whose clock is `minutes` ahead, and runs it to its end.
    fn finish(&self, minutes: u64) -> Result<RunOutcome> {
        let output = self.start(0, minutes)?;
        ensure!(output.status.success(), "the process failed: {}", describe(&output));
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

fn describe(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{} {} {}", output.status, text(&output.stdout), text(&output.stderr))
}

/// Opens a SQLite file.
pub(crate) fn backend(path: &Path) -> Result<threadkeep_core::Backend> {
    use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};
    Ok(SqliteStore::open(path, SqliteOptions::default())?.backend())
}

/// Opens a store by the path of its file or by its URL in PostgreSQL or Redis.
pub(crate) async fn open(store: &str) -> Result<threadkeep_core::Backend> {
    if store.starts_with("postgres://") || store.starts_with("postgresql://") {
        return Ok(threadkeep_store_postgres::PostgresStore::open(store).await?.backend());
    }
    if store.starts_with("redis://") || store.starts_with("redis-cluster://") {
        return Ok(threadkeep_store_redis::RedisStore::open(store).await?.backend());
    }
    backend(Path::new(store))
}
