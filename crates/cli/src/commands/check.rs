use anyhow::Result;
use serde::Serialize;
use threadkeep::core::{Finding, Severity, VerifyReport};

use super::{App, Status};
use crate::exposure::{self, Exposed};
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;

/// Read everything and say what does not hold together
///
/// The whole store is read, whoever owns what. Exits with 1 if anything was found. Files that others on this machine can read
/// are named as well; they alone do not change the exit code.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep check
  threadkeep check --repair     build anew what is derived: counts and indexes")]
pub(crate) struct Arguments {
    /// Rebuild what is derived (counts, indexes) from the messages
    #[arg(long)]
    repair: bool,
}

#[derive(Serialize)]
struct Checked {
    #[serde(flatten)]
    report: VerifyReport,
    repaired: bool,
    /// Files that others on this machine can read.
    exposed: Vec<Exposed>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let purpose = if arguments.repair { Purpose::Change } else { Purpose::Read };
    let memory = app.open(purpose).await?.memory;
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
    let report = report?;
    let (is_clean, exposed) = (report.findings.is_empty(), exposure::of_data(app));
    if app.output.is_json() {
        app.output.json(&Checked { report, repaired: arguments.repair, exposed })?;
    } else {
        print(app, &report, arguments.repair)?;
        exposed.iter().for_each(|exposed| app.output.note(format_args!("note: {exposed}")));
    }
    Ok(if is_clean { Status::Done } else { Status::Findings })
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
    lines.finish()?;
    let is_damaged = report.findings.iter().any(|finding| finding.severity == Severity::Damage);
    if is_damaged {
        app.output.note("hint: messages themselves are damaged: `threadkeep restore FILE` puts a backup back");
    } else if !report.findings.is_empty() && !repaired {
        app.output.note("hint: nothing is lost: `threadkeep check --repair` builds it anew");
    }
    Ok(())
}

fn told(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Damage => "damage",
        Severity::Derived => "derived",
    };
    let thread = finding.thread.map_or_else(String::new, |thread| format!(" in thread {thread}"));
    format!("{severity}{thread}: {}", finding.detail)
}
