use anyhow::Result;
use serde::Serialize;
use threadkeep_server::{AuditFinding, AuditLog, AuditRecord, AuditVerification};

use super::{App, Status};
use crate::failure::Failure;
use crate::store::Purpose;
use crate::table::{Align, Table, counted};

/// The number of hexadecimal digits of a hash.
const HASH_DIGITS: usize = 64;

/// Show the audit log of administrative actions and approvals
///
/// `threadkeep serve`, `keys`, `erase` and `approvals` write the log into the store. The records of the tenant given by
/// --tenant are listed, oldest first. Each record contains the hash of the previous record of any tenant; the head is the hash
/// of the newest. Store the head elsewhere: `threadkeep audit verify --head` detects records that were changed or removed
/// after it was printed.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  threadkeep audit
  threadkeep audit --limit 5 --json
  threadkeep audit verify --head HASH")]
pub(crate) struct Arguments {
    /// The maximum number of records; the newest are shown
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Check that no record was changed or removed
    ///
    /// Reads the records of all tenants. Records written by versions without the hash chain are counted but not checked.
    /// Exits with 3 if there are findings.
    Verify {
        /// A head printed earlier, which the log must still contain
        #[arg(long, value_name = "HASH", value_parser = head)]
        head: Option<String>,
    },
}

#[derive(Serialize)]
struct AuditJson {
    records: Vec<AuditRecord>,
    head: Option<String>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let memory = app.open(Purpose::Read).await?.memory;
    let log = AuditLog::new(&memory);
    match arguments.action {
        Some(Action::Verify { head }) => verify(app, &log, head.as_deref()).await,
        None => list(app, &log, arguments.limit).await,
    }
}

async fn list(app: &App, log: &AuditLog, limit: usize) -> Result<Status> {
    let records = log.list(&app.global.tenant_id()?, limit).await?;
    let head = log.head().await?;
    if app.output.is_json() {
        app.output.json(&AuditJson { records, head })?;
        return Ok(Status::Done);
    }
    if records.is_empty() {
        app.output.line("no records")?;
        return Ok(Status::Done);
    }
    let mut table = Table::new(["at", "by", "for", "act", "target", "outcome"].map(|name| (name, Align::Left)));
    for record in records {
        let user = record.user.unwrap_or_else(|| "the tenant".to_owned());
        let target = record.target.unwrap_or_default();
        table.add_row([record.at.to_string(), record.by, user, record.act, target, record.outcome]);
    }
    app.output.line(table.text())?;
    if let Some(head) = head {
        app.output.line(format_args!("head: {head}"))?;
    }
    Ok(Status::Done)
}

async fn verify(app: &App, log: &AuditLog, head: Option<&str>) -> Result<Status> {
    let verification = log.verify(head).await?;
    let status = if verification.findings.is_empty() { Status::Done } else { Status::Incomplete };
    if app.output.is_json() {
        app.output.json(&verification)?;
        return Ok(status);
    }
    let AuditVerification { records, unchained, head, findings, .. } = &verification;
    for AuditFinding { record, detail, .. } in findings {
        let location = record.map_or_else(|| "the log".to_owned(), |record| format!("record {record}"));
        app.output.line(format_args!("damage: {location}: {detail}"))?;
    }
    let verdict =
        if findings.is_empty() { "no problems found".to_owned() } else { counted(findings.len() as u64, "finding") };
    app.output.line(format_args!("{} in the chain: {verdict}", counted(*records, "record")))?;
    if *unchained > 0 {
        app.output.line(format_args!("{} from before the hash chain, not verified", counted(*unchained, "record")))?;
    }
    if let Some(head) = head {
        app.output.line(format_args!("head: {head}"))?;
    }
    if !findings.is_empty() {
        app.output.note("hint: compare with the log of a backup: --store FILE.db");
    }
    Ok(status)
}

/// Parses a head in the form in which it is printed.
fn head(text: &str) -> Result<String, Failure> {
    if text.len() == HASH_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(text.to_ascii_lowercase());
    }
    Err(Failure::usage(format!("expected {HASH_DIGITS} hexadecimal digits, as printed by `threadkeep audit`")))
}
