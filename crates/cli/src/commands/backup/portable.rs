//! A whole store as JSON Lines, which every store can be made of and go into.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use threadkeep::core::{Finding, Severity};
use threadkeep::memory::migrate::{self, BackupLines, Damaged};
use threadkeep::{Memory, MemoryError};

use super::BackedUp;
use crate::commands::App;
use crate::commands::export::Writer;
use crate::progress;

/// Ends of the names of files of lines.
const ENDS: [&str; 3] = ["jsonl", "ndjson", "gz"];

/// Whether a file's name asks for lines.
pub(super) fn is_asked_for(file: &Path) -> bool {
    ENDS.iter().any(|end| file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case(end)))
}

/// Writes the file, which has its name when it is whole, and never takes that of another.
pub(super) async fn write(app: &App, memory: &Memory, file: &Path) -> Result<BackedUp> {
    let unwritten = || format!("{} cannot be written", file.display());
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let unfinished = tempfile::Builder::new().prefix(".threadkeep-").tempfile_in(folder).with_context(unwritten)?;
    app.interrupt.remove_if_interrupted(unfinished.path());
    let mut writer = Writer::new(unfinished, file.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz")));
    let lines = BackupLines::begin(memory.backend(), memory.platform()).await?;
    let bar = progress::count(lines.totals().messages, "messages written");
    let written = lines.write(|line, done| {
        bar.set_position(done.messages);
        writer.line(line).with_context(unwritten).map_err(Stopped)
    });
    let written = written.await.map_err(|Stopped(error)| error);
    bar.finish_and_clear();
    let migrate::BackedUp { written, as_of, log_growth_bytes, damage } = written?;
    let findings = damage.told.into_iter();
    let findings =
        findings.map(|Damaged { thread, detail, .. }| Finding { severity: Severity::Damage, thread, detail }).collect();
    let unfinished = writer.finish().with_context(unwritten)?;
    unfinished.persist_noclobber(file).map_err(|error| anyhow!(error.error)).with_context(unwritten)?;
    let bytes = std::fs::metadata(file).map_or(0, |found| found.len());
    Ok(BackedUp { file: file.to_owned(), bytes, written: Some(written), as_of, log_growth_bytes, findings })
}

/// Why writing stopped: the store, or the disk.
struct Stopped(anyhow::Error);

impl From<MemoryError> for Stopped {
    fn from(error: MemoryError) -> Self {
        Self(error.into())
    }
}
