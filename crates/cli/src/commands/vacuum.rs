use anyhow::Result;
use indicatif::HumanBytes;
use serde::Serialize;
use threadkeep::StoreError;
use threadkeep::core::SweepReport;

use super::{App, Status};
use crate::progress;
use crate::store::Purpose;

/// Remove what is over and give its space back
///
/// Removes expired threads and every trace of what was erased, for all tenants, then makes the file as small as it can be.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  threadkeep vacuum")]
pub(crate) struct Arguments {}

#[derive(Serialize)]
struct Vacuumed {
    before_bytes: Option<u64>,
    after_bytes: Option<u64>,
    swept: SweepReport,
}

pub(crate) async fn run(app: &App, _: Arguments) -> Result<Status> {
    let store = app.open(Purpose::Change).await?;
    let before_bytes = store.bytes();
    let maintenance = &store.memory.backend().maintenance;
    let spinner = progress::spinner("sweeping and compacting…");
    let work = async {
        let swept = maintenance.sweep(store.memory.now()).await?;
        match maintenance.compact().await {
            // There is no space to give back: sweeping was all.
            Err(StoreError::Unsupported(_)) | Ok(()) => Ok(swept),
            Err(error) => Err(error),
        }
    };
    let swept = work.await;
    spinner.finish_and_clear();
    let vacuumed = Vacuumed { before_bytes, after_bytes: store.bytes(), swept: swept? };
    if app.output.is_json() {
        app.output.json(&vacuumed)?;
    } else {
        app.output.line(told(&vacuumed))?;
    }
    Ok(Status::Done)
}

fn told(vacuumed: &Vacuumed) -> String {
    let expired = vacuumed.swept.expired_threads;
    let expired = if expired > 0 { format!("; {expired} expired threads removed") } else { String::new() };
    match (vacuumed.before_bytes, vacuumed.after_bytes) {
        (Some(before), Some(after)) => format!("{} before, {} after{expired}", HumanBytes(before), HumanBytes(after)),
        _ => format!("swept{expired}"),
    }
}
