mod salvage;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use threadkeep::StoreError;
use threadkeep::core::{Finding, Severity, VerifyReport};

use super::{App, Status};
use crate::exposure::{self, Exposed};
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;

/// Read everything and say what does not hold together
///
/// The whole store is read, whoever owns what: pages, messages and their checksums, and the search index beside the text.
/// Exits with 1 if anything was found. With --salvage all that can be read of a damaged SQLite file is written into a new
/// store, and what is lost is named; the damaged file stays as it is, and the exit code is 3 if anything is lost.
/// Files that others on this machine can read are named as well; they alone do not change the exit code.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep check
  threadkeep check --repair     build anew what is derived: counts and indexes
  threadkeep check --store damaged.db --salvage new.db")]
pub(crate) struct Arguments {
    /// Rebuild what is derived (counts, indexes) from the messages
    #[arg(long)]
    repair: bool,
    /// Write what can be read of a damaged SQLite file into a new store, or with .jsonl.gz into a backup of lines
    #[arg(long, value_name = "FILE", conflicts_with = "repair")]
    salvage: Option<PathBuf>,
}

#[derive(Serialize)]
struct Checked {
    #[serde(flatten)]
    report: VerifyReport,
    /// How many threads the damage touches, of those that are named.
    damaged_threads: u64,
    repaired: bool,
    /// Files that others on this machine can read.
    exposed: Vec<Exposed>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    if let Some(to) = arguments.salvage {
        return salvage::run(app, to).await;
    }
    let purpose = if arguments.repair { Purpose::Change } else { Purpose::Read };
    let memory = match app.open(purpose).await {
        Ok(store) => store.memory,
        Err(error) if !arguments.repair => return examine(app, error),
        Err(error) => return Err(error),
    };
    let maintenance = &memory.backend().maintenance;
    if arguments.repair {
        let spinner = progress::spinner("rebuilding what is derived…");
        let repaired = maintenance.repair(memory.now()).await;
        spinner.finish_and_clear();
        repaired?;
    }
    let spinner = progress::spinner("reading everything…");
    let report = maintenance.verify().await;
    spinner.finish_and_clear();
    tell(app, report?, arguments.repair)
}

/// Says how far the damage goes of a file that cannot be opened as a store.
fn examine(app: &App, error: anyhow::Error) -> Result<Status> {
    let is_damaged = error.chain().any(|cause| matches!(cause.downcast_ref(), Some(StoreError::Corrupt { .. })));
    let location = app.location()?;
    let Some(file) = location.file().filter(|_| is_damaged) else { return Err(error) };
    match threadkeep_store_sqlite::examine(file) {
        Ok(report) => tell(app, report, false),
        Err(_) => Err(error.context("nothing of the file can be read")),
    }
}

fn tell(app: &App, report: VerifyReport, repaired: bool) -> Result<Status> {
    let is_clean = report.findings.is_empty();
    let exposed = exposure::of_data(app);
    if app.output.is_json() {
        app.output.json(&Checked { damaged_threads: damaged_threads(&report), report, repaired, exposed })?;
    } else {
        print(app, &report, repaired)?;
        exposed.iter().for_each(|exposed| app.output.note(format_args!("note: {exposed}")));
    }
    Ok(if is_clean { Status::Done } else { Status::Findings })
}

fn damaged_threads(report: &VerifyReport) -> u64 {
    let damage = report.findings.iter().filter(|finding| finding.severity == Severity::Damage);
    damage.filter_map(|finding| finding.thread).collect::<BTreeSet<_>>().len() as u64
}

fn print(app: &App, report: &VerifyReport, repaired: bool) -> Result<()> {
    let seen = [
        counted(report.tenants, "tenant"),
        counted(report.threads, "thread"),
        counted(report.messages, "message"),
        counted(report.documents, "document"),
    ];
    let mut lines = app.output.lines();
    for finding in &report.findings {
        lines.line(told(finding))?;
    }
    let verdict = match report.findings.len() as u64 {
        0 => "all is well".to_owned(),
        count => counted(count, "finding"),
    };
    lines.line(format_args!("{}: {verdict}", seen.join(", ")))?;
    let damaged = damaged_threads(report);
    if damaged > 0 {
        let (verb, of) = (if damaged == 1 { "is" } else { "are" }, crate::table::number(report.threads));
        lines.line(format_args!("{} of {of} {verb} damaged", counted(damaged, "thread")))?;
    }
    lines.finish()?;
    if report.unchecked > 0 {
        let unchecked = counted(report.unchecked, "message");
        app.output.note(format_args!("note: {unchecked} without a checksum, from before there were any"));
    }
    let is_damaged = report.findings.iter().any(|finding| finding.severity == Severity::Damage);
    if is_damaged {
        app.output.note(
            "hint: messages themselves are damaged: `threadkeep restore FILE` puts a backup back, \
             `threadkeep check --salvage NEW` brings out what can be read",
        );
    } else if !report.findings.is_empty() && !repaired {
        app.output.note("hint: nothing is lost: `threadkeep check --repair` builds it anew");
    }
    Ok(())
}

pub(super) fn told(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Damage => "damage",
        Severity::Derived => "derived",
    };
    let thread = finding.thread.map_or_else(String::new, |thread| format!(" in thread {thread}"));
    format!("{severity}{thread}: {}", finding.detail)
}
