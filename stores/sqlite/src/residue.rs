//! Notes that bytes were taken out of sight and still stand in the file, until a sweep has removed them.

use rusqlite::{Connection, params};
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
