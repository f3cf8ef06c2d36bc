mod salvage;

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use threadkeep::StoreError;
use threadkeep::core::{Finding, Severity, VerifyReport};

use super::{App, Status};
use crate::exposure::{self, ExposedFile};
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;

/// Check the store for damage and inconsistencies
///
/// Reads the whole store, for all tenants and users: pages, messages and their checksums, and the search index, which is
/// compared with the text. Exits with 1 if there are findings. With --salvage, everything readable in a damaged SQLite file is
/// written to a new store, and what is lost is listed; the damaged file does not change, and the exit code is 3 if anything is
/// lost. Files that other users of this machine can read are listed too; they do not change the exit code.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep check
  threadkeep check --repair     rebuild derived data: counts and indexes
  threadkeep check --store damaged.db --salvage new.db")]
pub(crate) struct Arguments {
    /// Rebuild derived data (counts, indexes) from the messages
    #[arg(long)]
    repair: bool,
    /// Write what is readable in a damaged SQLite file to a new store, or to a portable backup (.jsonl.gz)
    #[arg(long, value_name = "FILE", conflicts_with = "repair")]
    salvage: Option<PathBuf>,
}

#[derive(Serialize)]
struct CheckJson {
    #[serde(flatten)]
    report: VerifyReport,
    /// The number of threads with damage.
    damaged_threads: u64,
    repaired: bool,
    /// Files that other users of this machine can read.
    exposed: Vec<ExposedFile>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    if let Some(to) = arguments.salvage {
        return salvage::run(app, to).await;
    }
    let purpose = if arguments.repair { Purpose::Write } else { Purpose::Read };
    let memory = match app.open(purpose).await {
        Ok(store) => store.memory,
        Err(error) if !arguments.repair => return examine(app, error),
        Err(error) => return Err(error),
    };
    let maintenance = &memory.backend().maintenance;
    if arguments.repair {
        let spinner = progress::spinner("rebuilding derived data…");
        let repaired = maintenance.repair(memory.now()).await;
        spinner.finish_and_clear();
        repaired?;
    }
    let spinner = progress::spinner("reading the store…");
    let report = maintenance.verify().await;
    spinner.finish_and_clear();
    print_report(app, report?, arguments.repair)
}

/// Reports the damage to a file that cannot be opened as a store. Returns `error` if its cause is not damage.
fn examine(app: &App, error: anyhow::Error) -> Result<Status> {
    let is_damaged = error.chain().any(|cause| matches!(cause.downcast_ref(), Some(StoreError::Corrupt { .. })));
    let location = app.location()?;
    let Some(file) = location.file().filter(|_| is_damaged) else { return Err(error) };
    match threadkeep_store_sqlite::examine(file) {
        Ok(report) => print_report(app, report, false),
        Err(_) => Err(error.context("no part of the file is readable")),
    }
}

fn print_report(app: &App, report: VerifyReport, repaired: bool) -> Result<Status> {
    let is_clean = report.findings.is_empty();
    let exposed = exposure::data_files(app);
    if app.output.is_json() {
        app.output.json(&CheckJson { damaged_threads: damaged_threads(&report), report, repaired, exposed })?;
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
    let checked = [
        counted(report.tenants, "tenant"),
        counted(report.threads, "thread"),
        counted(report.messages, "message"),
        counted(report.records, "record"),
    ];
    let mut lines = app.output.lines();
    for finding in &report.findings {
        lines.line(describe(finding))?;
    }
    let verdict = match report.findings.len() as u64 {
        0 => "no problems found".to_owned(),
        count => counted(count, "finding"),
    };
    lines.line(format_args!("{}: {verdict}", checked.join(", ")))?;
    let damaged = damaged_threads(report);
    if damaged > 0 {
        let (verb, total) = (if damaged == 1 { "is" } else { "are" }, crate::table::number(report.threads));
        lines.line(format_args!("{} of {total} {verb} damaged", counted(damaged, "thread")))?;
    }
    lines.finish()?;
    if report.unchecked > 0 {
        let unchecked = counted(report.unchecked, "message");
        app.output.note(format_args!("note: {unchecked} without a checksum, written by earlier versions"));
    }
    let is_damaged = report.findings.iter().any(|finding| finding.severity == Severity::Damage);
    if is_damaged {
        app.output.note(
            "hint: messages are damaged: `threadkeep restore FILE` restores a backup, \
             `threadkeep check --salvage NEW` recovers what is readable",
        );
    } else if !report.findings.is_empty() && !repaired {
        app.output.note("hint: no messages are lost: `threadkeep check --repair` rebuilds derived data");
    }
    Ok(())
}

/// Describes a finding in one line.
pub(super) fn describe(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Damage => "damage",
        Severity::Derived => "derived",
    };
    let thread = finding.thread.map_or_else(String::new, |thread| format!(" in thread {thread}"));
    format!("{severity}{thread}: {}", finding.detail)
}
