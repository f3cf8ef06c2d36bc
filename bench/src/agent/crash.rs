//! A run dies at every point on its way, and another process goes on with it.
//!
//! The run has a model, two parallel tools that look, an activity that is done once and a call that needs an approval.
//! Points lie before and after every commit and every effect. What is checked: nothing that was in the store is done
//! again, what changes the world is done once at most, and the conversation is the one of a run that nobody disturbed,
//! unless nobody can know what came of something; then it says so.

pub(crate) mod child;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// What may be done twice where nobody wrote down that it was done.
const REPEATABLE: [&str; 4] = ["model after 0", "model after 3", "tool look_one", "tool look_two"];
/// What is done once at most.
const ONCE: [&str; 2] = ["activity book", "tool delete"];

/// Arguments of `threadkeep-bench agent crash`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Where the stores are made, and what each process did is written down
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    folder: PathBuf,
    /// A PostgreSQL database to run over instead of files; every run is a tenant of its own
    #[arg(long, value_name = "URL")]
    postgres: Option<String>,
}

/// What a run that was gone on with to its end says of itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) transcript: Vec<String>,
    pub(crate) approvals: Vec<String>,
    /// Run documents and journal entries that are left.
    pub(crate) left: usize,
}

#[derive(Debug, Default, Serialize)]
struct Report {
    /// Points at which the process died, one run each.
    points: u64,
    /// Runs that ended as if nothing had been.
    same: u64,
    /// Runs that say that the outcome of something is unknown.
    unknown: u64,
    /// What was done again because it had not been written down.
    repeated: u64,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("threadkeep-crash-").tempdir_in(&args.folder)?;
    let place = |name: &str| Place::new(folder.path(), name, args.postgres.as_deref());
    let undisturbed = place("undisturbed")?;
    let reference = undisturbed.end(0)?;
    let points = undisturbed.log()?.len() as u64;
    let mut report = Report::default();
    for point in 1..=points {
        let place = place(&point.to_string())?;
        place.die(point)?;
        let before = place.log()?;
        let ended = place.end(2)?;
        let after = place.log()?;
        let point_name = before.last().cloned().unwrap_or_default();
        check(&before, &after, &ended, &reference, &mut report)
            .with_context(|| format!("at point {point} of {points}, {point_name}: {before:#?} then {ended:#?}"))?;
        report.points += 1;
    }
    if args.json {
        println!("{}", serde_json::to_string(&report)?);
    } else {
        println!("{report:#?}");
    }
    Ok(())
}

fn check(before: &[String], after: &[String], ended: &Ended, reference: &Ended, report: &mut Report) -> Result<()> {
    let begun = count_begun(after);
    let times = |what: &str| begun.get(what).copied().unwrap_or(0);
    let mut is_all_written = true;
    for what in REPEATABLE.iter().chain(&ONCE) {
        let written = is_written(before, what);
        is_all_written &= written || times(what) == 1 && !before.contains(&format!("begin {what}"));
        ensure!(!written || times(what) == 1, "{what} was written down and done again");
    }
    for what in REPEATABLE {
        ensure!((1..=2).contains(&times(what)), "{what} was done {} times", times(what));
        report.repeated += u64::from(times(what) > 1);
    }
    for what in ONCE {
        ensure!(times(what) <= 1, "{what} was done {} times", times(what));
    }
    ensure!(ended.left == 0, "{} documents of the run are left", ended.left);
    if ended == reference {
        ensure!(ONCE.iter().all(|what| times(what) == 1), "the run says that something was done which was not");
        report.same += 1;
        return Ok(());
    }
    let differs: Vec<_> =
        ended.transcript.iter().zip(&reference.transcript).filter(|(one, other)| one != other).collect();
    ensure!(ended.transcript.len() == reference.transcript.len(), "the conversation has another length");
    ensure!(!is_all_written, "everything was known, and the conversation differs: {differs:#?}");
    ensure!(differs.iter().all(|(line, _)| line.contains("unknown")), "the conversation differs: {differs:#?}");
    report.unknown += 1;
    Ok(())
}

/// Whether something had ended and a commit after that too.
fn is_written(log: &[String], what: &str) -> bool {
    let ended = log.iter().position(|line| *line == format!("end {what}"));
    ended.is_some_and(|ended| log[ended..].iter().any(|line| line == "end commit"))
}

fn count_begun(log: &[String]) -> BTreeMap<&str, u64> {
    let mut begun = BTreeMap::new();
    for what in log.iter().filter_map(|line| line.strip_prefix("begin ")) {
        *begun.entry(what).or_insert(0) += 1;
    }
    begun
}

/// The store and the log of one run.
struct Place {
    store: String,
    tenant: String,
    log: PathBuf,
}

impl Place {
    fn new(folder: &Path, name: &str, postgres: Option<&str>) -> Result<Self> {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        let store = postgres.map_or_else(|| folder.join("store.db").display().to_string(), str::to_owned);
        // Names a tenant that no earlier walk over the same database had.
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

    fn die(&self, point: u64) -> Result<()> {
        let output = self.start(point, 0)?;
        ensure!(output.status.code().is_none(), "the process did not die: {}", shown(&output));
        Ok(())
    }

    /// Goes on with whatever is there, so many minutes later.
    fn end(&self, minutes: u64) -> Result<Ended> {
        let output = self.start(0, minutes)?;
        ensure!(output.status.success(), "the process failed: {}", shown(&output));
        Ok(serde_json::from_slice(&output.stdout)?)
    }
}

fn shown(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{} {} {}", output.status, text(&output.stdout), text(&output.stderr))
}

/// The file of a store, for a process that is given one.
pub(crate) fn backend(path: &Path) -> Result<threadkeep_core::Backend> {
    use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};
    Ok(SqliteStore::open(path, SqliteOptions::default())?.backend())
}

/// The store that a process is given by its file or by a database's URL.
pub(crate) async fn open(store: &str) -> Result<threadkeep_core::Backend> {
    if store.starts_with("postgres://") || store.starts_with("postgresql://") {
        return Ok(threadkeep_store_postgres::PostgresStore::open(store).await?.backend());
    }
    backend(Path::new(store))
}
