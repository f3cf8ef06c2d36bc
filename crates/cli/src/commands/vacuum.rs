use anyhow::Result;
use indicatif::HumanBytes;
use serde::Serialize;
use threadkeep::StoreError;
use threadkeep::core::SweepReport;

use super::{App, Status};
use crate::progress;
use crate::store::Purpose;

/// Remove expired data and free disk space
///
/// Removes expired threads and all remains of erased data, for all tenants, then compacts the file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  threadkeep vacuum")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct VacuumReport {
    before_bytes: Option<u64>,
    after_bytes: Option<u64>,
    swept: SweepReport,
}

pub(crate) async fn run(app: &App, _: Arguments) -> Result<Status> {
    let store = app.open(Purpose::Write).await?;
    let before_bytes = store.bytes();
    let maintenance = &store.memory.backend().maintenance;
    let spinner = progress::spinner("sweeping and compacting…");
    let work = async {
        let swept = maintenance.sweep(store.memory.now()).await?;
        match maintenance.compact().await {
            // Some stores cannot be compacted. For these, sweeping is sufficient.
            Err(StoreError::Unsupported(_)) | Ok(()) => Ok(swept),
            Err(error) => Err(error),
        }
    };
    let swept = work.await;
    spinner.finish_and_clear();
    let report = VacuumReport { before_bytes, after_bytes: store.bytes(), swept: swept? };
    if app.output.is_json() {
        app.output.json(&report)?;
    } else {
        app.output.line(summary(&report))?;
    }
    Ok(Status::Done)
}

fn summary(report: &VacuumReport) -> String {
    let expired = report.swept.expired_threads;
    let expired = if expired > 0 { format!("; {expired} expired threads removed") } else { String::new() };
    match (report.before_bytes, report.after_bytes) {
        (Some(before), Some(after)) => format!("{} before, {} after{expired}", HumanBytes(before), HumanBytes(after)),
        _ => format!("swept{expired}"),
    }
}
