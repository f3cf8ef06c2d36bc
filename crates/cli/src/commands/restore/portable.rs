//! Restores portable backups (JSON Lines) to any store.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result};
use flate2::read::MultiGzDecoder;
use threadkeep::exchange::BackupLine;
use threadkeep::memory::ErasureEntries as _;
use threadkeep::memory::migrate::BackupReader;
use threadkeep::{Memory, Timestamp};
use threadkeep_store_sqlite::{Durability, SqliteOptions, SqliteStore};

use crate::clock::clock;
use crate::commands::{App, Status, migrate};
use crate::erasures;
use crate::private;
use crate::progress;
use crate::store::Purpose;

const HEADER: &[u8] = br#"{"threadkeep_backup""#;
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The maximum length of a line: a chunk with the largest records that a thread is likely to have.
const LINE_BYTES: u64 = 512 * 1024 * 1024;

/// Whether a file starts like a portable backup.
pub(super) fn is_portable_backup(file: &Path) -> Result<bool> {
    let mut start = Vec::new();
    let read = open(file).and_then(|lines| lines.take(HEADER.len() as u64).read_to_end(&mut start));
    // A file that cannot be decompressed is not a portable backup. The error is reported when the file is imported next.
    Ok(read.is_ok() && start == HEADER)
}

/// Reads the whole backup into a temporary store, copies that store to the target and compares both. A damaged or truncated
/// backup does not change the target.
pub(super) async fn restore(app: &App, file: &Path) -> Result<Status> {
    let cannot_restore = || format!("cannot restore {}", file.display());
    let mut known = erasures::load(app, &app.location()?)?;
    let folder = private::temporary_folder("threadkeep-", None).with_context(cannot_restore)?;
    app.interrupt.remove_if_interrupted(folder.path());
    // The temporary store does not have to survive a crash.
    let options = SqliteOptions { durability: Durability::Process, background: false, ..SqliteOptions::default() };
    let read = SqliteStore::open(folder.path().join("backup.db"), options).with_context(cannot_restore)?.backend();
    let restored = Memory::with_clock(read.clone(), clock(app.global.now));
    let mut reader = BackupReader::into(read.clone(), restored.platform());
    let mut lines = open(file).with_context(cannot_restore)?;
    let bar = progress::count(0, "messages read");
    let mut made_at = None;
    while let Some(line) = next_line(&mut lines).with_context(cannot_restore)? {
        made_at = made_at.or_else(|| backup_time(&line));
        bar.set_position(reader.line(&line).await.with_context(cannot_restore)?.messages);
    }
    bar.finish_and_clear();
    reader.finish().with_context(cannot_restore)?;
    let erasures = erasures::apply(app, known.as_mut(), &restored, made_at).await?;
    let target = app.open(Purpose::CreateOrWrite).await?.memory;
    let mut report = migrate::copy_everything(app, &read, &target).await?;
    if let Some(known) = &known {
        target.raise_record_versions(known.highest_version()).await?;
    }
    let status = match erasures.status() {
        Status::Done => report.status(),
        incomplete => incomplete,
    };
    report.erasures = Some(erasures);
    report.print(app)?;
    Ok(status)
}

/// Returns the time at which a backup was made, if `line` is its header.
fn backup_time(line: &str) -> Option<Timestamp> {
    let head = line.starts_with(std::str::from_utf8(HEADER).unwrap_or_default());
    match head.then(|| serde_json::from_str(line))?.ok()? {
        BackupLine::ThreadkeepBackup { made_at, .. } => Some(made_at),
        _ => None,
    }
}

fn open(file: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut plain = BufReader::new(File::open(file)?);
    let is_packed = plain.fill_buf()?.starts_with(GZIP);
    Ok(if is_packed { Box::new(BufReader::new(MultiGzDecoder::new(plain))) } else { Box::new(plain) })
}

fn next_line(lines: &mut dyn BufRead) -> io::Result<Option<String>> {
    let mut line = String::new();
    let read = lines.take(LINE_BYTES).read_line(&mut line)?;
    if read == 0 {
        return Ok(None);
    }
    match line.pop() {
        Some('\n') => Ok(Some(line)),
        _ if read as u64 == LINE_BYTES => Err(io::Error::other("line too long")),
        last => {
            line.extend(last);
            Ok(Some(line))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_line_reads_a_last_line_without_newline() {
        let mut lines: &[u8] = b"one\n\ntwo\r\nthree";
        let mut read = Vec::new();
        while let Some(line) = next_line(&mut lines).unwrap() {
            read.push(line);
        }
        assert_eq!(read, ["one", "", "two\r", "three"]);
    }
}
