//! Writes portable backups: a whole store as JSON Lines, from which any store can be restored.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use threadkeep::core::{Finding, Severity};
use threadkeep::memory::migrate::{self, BackupLines, DamagedItem};
use threadkeep::{Memory, MemoryError};

use super::BackupReport;
use crate::commands::App;
use crate::commands::export::Writer;
use crate::progress;

/// The file name extensions of portable backups.
const EXTENSIONS: [&str; 3] = ["jsonl", "ndjson", "gz"];

/// Whether the name of a file is that of a portable backup.
pub(super) fn is_portable(file: &Path) -> bool {
    EXTENSIONS.iter().any(|known| file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(known)))
}

/// Writes a backup. The file gets its final name when it is complete, and never replaces another file.
pub(super) async fn write(app: &App, memory: &Memory, file: &Path) -> Result<BackupReport> {
    let cannot_write = || format!("cannot write {}", file.display());
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = tempfile::Builder::new().prefix(".threadkeep-").tempfile_in(folder).with_context(cannot_write)?;
    app.interrupt.remove_if_interrupted(unfinished.path());
    let mut writer = Writer::new(unfinished, file.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz")));
    let lines = BackupLines::begin(memory.backend(), memory.platform()).await?;
    let bar = progress::count(lines.totals().messages, "messages written");
    let written = lines.write(|line, done| {
        bar.set_position(done.messages);
        writer.line(line).with_context(cannot_write).map_err(Stopped)
    });
    let written = written.await.map_err(|Stopped(error)| error);
    bar.finish_and_clear();
    let migrate::BackupSummary { written, as_of, log_growth_bytes, damage } = written?;
    let findings = damage.listed.into_iter();
    let findings = findings
        .map(|DamagedItem { thread, detail, .. }| Finding { severity: Severity::Damage, thread, detail })
        .collect();
    let unfinished = writer.finish().with_context(cannot_write)?;
    unfinished.persist_noclobber(file).map_err(|error| anyhow!(error.error)).with_context(cannot_write)?;
    let bytes = std::fs::metadata(file).map_or(0, |found| found.len());
    Ok(BackupReport { file: file.to_owned(), bytes, written: Some(written), as_of, log_growth_bytes, findings })
}

/// An error from the store or the disk that stopped the backup.
struct Stopped(anyhow::Error);

impl From<MemoryError> for Stopped {
    fn from(error: MemoryError) -> Self {
        Self(error.into())
    }
}
