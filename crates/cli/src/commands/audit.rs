use anyhow::Result;
use serde::Serialize;
use threadkeep_server::{AuditLog, AuditRecord};

use super::{App, Status};
use crate::store::Purpose;
use crate::table::{Side, Table};

/// Show who did what an administrator or an approver may do
///
/// `threadkeep serve` and `threadkeep keys` write it into the store, where it can only grow. It is that of the tenant that
/// --tenant names, oldest first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep audit
  threadkeep audit --limit 5 --json")]
pub(crate) struct Arguments {
    /// So many of the newest records
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    limit: usize,
}

#[derive(Serialize)]
struct AuditJson {
    records: Vec<AuditRecord>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let memory = app.open(Purpose::Read).await?.memory;
    let records = AuditLog::new(&memory).list(&app.global.tenant_id()?, arguments.limit).await?;
    if app.output.is_json() {
        app.output.json(&AuditJson { records })?;
        return Ok(Status::Done);
    }
    if records.is_empty() {
        app.output.line("nothing was done")?;
        return Ok(Status::Done);
    }
    let mut table = Table::new(["at", "by", "for", "act", "target", "outcome"].map(|name| (name, Side::Left)));
    for record in records {
        let user = record.user.unwrap_or_else(|| "the tenant".to_owned());
        let target = record.target.unwrap_or_default();
        table.add_row([record.at.to_string(), record.by, user, record.act, target, record.outcome]);
    }
    app.output.line(table.text())?;
    Ok(Status::Done)
}
