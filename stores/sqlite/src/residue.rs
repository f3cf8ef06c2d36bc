//! Keeps track of residue, deleted bytes that may remain in the file, in the table `marks`, so that the next sweep removes them.

use std::sync::atomic::Ordering;

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::StoreError;

use crate::connection::Shared;
use crate::error::Result;
use crate::writer;

/// Where deleted bytes may remain.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Residue {
    /// In the unallocated space of pages.
    Pages,
    /// In the search index.
    Index,
}

impl Residue {
    /// Returns the names of two marks: the first is set while residue exists, the second while a sweep removes it.
    const fn mark_names(self) -> (&'static str, &'static str) {
        match self {
            Self::Pages => ("residue_pages", "residue_pages_sweeping"),
            Self::Index => ("residue_index", "residue_index_sweeping"),
        }
    }
}

/// Records residue. Must be called in the transaction that deletes the bytes.
pub(crate) fn record(connection: &Connection, residue: Residue) -> Result<()> {
    let sql = "INSERT INTO marks (name, value) VALUES (?1, 1) ON CONFLICT DO NOTHING";
    connection.prepare_cached(sql)?.execute([residue.mark_names().0])?;
    Ok(())
}

/// Runs `work` if there is residue. The second mark remains until `work` is done, so that an interrupted sweep is repeated. Residue
/// that is recorded in the meantime is removed by the next sweep.
pub(crate) fn remove(
    shared: &Shared,
    residue: Residue,
    work: impl FnOnce(&Shared) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let (recorded, sweeping) = residue.mark_names();
    let is_due = writer::write_blocking(shared, |connection| {
        let sql = "INSERT OR REPLACE INTO marks (name, value) SELECT ?2, value FROM marks WHERE name = ?1";
        connection.execute(sql, params![recorded, sweeping])?;
        connection.execute("DELETE FROM marks WHERE name = ?1", [recorded])?;
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

/// The mark that is set while the write-ahead log may contain erased text. Its value is the number of failed truncations.
const WAL: &str = "residue_log";

/// Records that the write-ahead log could not be truncated.
pub(crate) fn record_wal_failure(shared: &Shared) -> Result<(), StoreError> {
    writer::write_blocking(shared, |connection| {
        let sql = "INSERT INTO marks (name, value) VALUES (?1, 1) ON CONFLICT DO UPDATE SET value = value + 1";
        Ok(connection.execute(sql, [WAL])?)
    })?;
    shared.is_wal_truncation_due.store(true, Ordering::Relaxed);
    Ok(())
}

/// Returns the number of recorded failures to truncate the write-ahead log.
pub(crate) fn count_wal_failures(shared: &Shared) -> Result<i64, StoreError> {
    let failures = shared.read(|connection| {
        let sql = "SELECT value FROM marks WHERE name = ?1";
        Ok(connection.prepare_cached(sql)?.query_row([WAL], |row| row.get(0)).optional()?)
    })?;
    Ok(failures.unwrap_or(0))
}

/// Clears the failures that were recorded before the write-ahead log was truncated, unless their number has changed since it was read.
pub(crate) fn clear_wal_failures(shared: &Shared, failures: i64) -> Result<(), StoreError> {
    if failures > 0 {
        writer::write_blocking(shared, |connection| {
            let sql = "DELETE FROM marks WHERE name = ?1 AND value = ?2";
            Ok(connection.execute(sql, params![WAL, failures])?)
        })?;
    }
    Ok(())
}
