//! Notes that bytes were taken out of sight and still stand in the file, until a sweep has removed them.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::StoreError;

use crate::connection::Shared;
use crate::error::Result;
use crate::writer;

/// Where bytes may still stand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Residue {
    /// In the gaps of pages.
    Pages,
    /// In the search index.
    Index,
}

impl Residue {
    /// The mark that says so, and the one that says a sweep is at it.
    const fn marks(self) -> (&'static str, &'static str) {
        match self {
            Self::Pages => ("residue_pages", "residue_pages_sweeping"),
            Self::Index => ("residue_index", "residue_index_sweeping"),
        }
    }
}

/// Notes, in the transaction that takes the bytes out of sight.
pub(crate) fn note(connection: &Connection, residue: Residue) -> Result<()> {
    let sql = "INSERT INTO marks (name, value) VALUES (?1, 1) ON CONFLICT DO NOTHING";
    connection.prepare_cached(sql)?.execute([residue.marks().0])?;
    Ok(())
}

/// Runs `work` if there is something to remove. The second mark stays until it is done, so that a sweep that is cut is
/// made again, and what is noted meanwhile waits for the next one.
pub(crate) fn remove(
    shared: &Shared,
    residue: Residue,
    work: impl FnOnce(&Shared) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (noted, sweeping) = residue.marks();
    let is_due = writer::write_blocking(shared, |connection| {
        let sql = "INSERT OR REPLACE INTO marks (name, value) SELECT ?2, value FROM marks WHERE name = ?1";
        connection.execute(sql, params![noted, sweeping])?;
        connection.execute("DELETE FROM marks WHERE name = ?1", [noted])?;
        Ok(connection.prepare("SELECT 1 FROM marks WHERE name = ?1")?.exists([sweeping])?)
    })?;
    if !is_due {
        return Ok(());
    }
    work(shared)?;
    writer::write_blocking(shared, |connection| {
        Ok(connection.execute("DELETE FROM marks WHERE name = ?1", [sweeping])?)
    })?;
    Ok(())
}

/// The mark that says that the write-ahead log still holds erased text; its value counts how often that was noted.
const LOG: &str = "residue_log";

/// Notes that the log could not be emptied.
pub(crate) fn note_log(shared: &Shared) -> Result<(), StoreError> {
    writer::write_blocking(shared, |connection| {
        let sql = "INSERT INTO marks (name, value) VALUES (?1, 1) ON CONFLICT DO UPDATE SET value = value + 1";
        Ok(connection.execute(sql, [LOG])?)
    })?;
    shared.is_log_due.store(true, Ordering::Relaxed);
    Ok(())
}

/// How often it was noted that the log could not be emptied; 0 where nothing is noted.
pub(crate) fn noted_log(shared: &Shared) -> Result<i64, StoreError> {
    let noted = shared.read(|connection| {
        let sql = "SELECT value FROM marks WHERE name = ?1";
        Ok(connection.prepare_cached(sql)?.query_row([LOG], |row| row.get(0)).optional()?)
    })?;
    Ok(noted.unwrap_or(0))
}

/// Forgets what was noted before the log was emptied; what others noted since stays.
pub(crate) fn forget_log(shared: &Shared, noted: i64) -> Result<(), StoreError> {
    if noted > 0 {
        writer::write_blocking(shared, |connection| {
            let sql = "DELETE FROM marks WHERE name = ?1 AND value = ?2";
            Ok(connection.execute(sql, params![LOG, noted])?)
        })?;
    }
    Ok(())
}
