//! Overwrites copies of rows that SQLite leaves in the unallocated space of pages.
//!
//! `secure_delete` overwrites a deleted row in place. But when SQLite moves rows to a neighbouring page to make room, the
//! old page retains a copy in the gap between its cell pointers and its cells, and erasing the row later does not remove
//! that copy. A sweep after an erasure therefore reads every page, in steps, and zeroes gaps that are not zero. This
//! requires the virtual table `sqlite_dbpage` (`SQLITE_ENABLE_DBPAGE_VTAB`); without it the whole file is rewritten.

use rusqlite::{Connection, params};
use threadkeep_core::StoreError;

use crate::connection::{Shared, lock};
use crate::error::{Result, SqliteError};
use crate::writer;

/// The number of pages that are read per step.
const PAGES_PER_STEP: i64 = 1_000;
/// Files with at least this many pages are rewritten as a whole. In them, overflow pages, which start with a page number, cannot be
/// distinguished from B-tree pages: the first byte of the number may equal a B-tree page type.
const REWRITE_FROM_PAGES: i64 = 1 << 25;

/// Overwrites the gaps in all pages with zeros.
pub(crate) fn scrub(shared: &Shared) -> Result<(), StoreError> {
    let pages = shared.read(|connection| {
        let sql = "SELECT 1 FROM pragma_module_list WHERE name = 'sqlite_dbpage'";
        let is_available = connection.prepare(sql)?.exists([])?;
        let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
        Ok((is_available && pages < REWRITE_FROM_PAGES).then_some(pages))
    })?;
    let Some(pages) = pages else {
        return lock(&shared.writer).execute_batch("VACUUM").map_err(|error| SqliteError::from(error).into());
    };
    let mut first = 1;
    while first <= pages {
        let pages_with_residue =
            shared.read(|connection| find_pages_with_residue(connection, first, first + PAGES_PER_STEP - 1))?;
        if !pages_with_residue.is_empty() {
            writer::write_blocking(shared, |connection| clear_gaps(connection, &pages_with_residue))?;
        }
        first += PAGES_PER_STEP;
    }
    Ok(())
}

fn find_pages_with_residue(connection: &Connection, first: i64, last: i64) -> Result<Vec<i64>> {
    let sql = "SELECT pgno, data FROM sqlite_dbpage WHERE pgno BETWEEN ?1 AND ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([first, last])?;
    let mut pages_with_residue = Vec::new();
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        let Ok(data) = row.get_ref(1)?.as_blob() else { continue };
        if find_gap(number, data).is_some_and(|gap| data[gap].iter().any(|byte| *byte != 0)) {
            pages_with_residue.push(number);
        }
    }
    Ok(pages_with_residue)
}

fn clear_gaps(connection: &Connection, numbers: &[i64]) -> Result<()> {
    for number in numbers {
        // The page is read again under the lock, because it may have changed.
        let sql = "SELECT data FROM sqlite_dbpage WHERE pgno = ?1";
        let mut data: Vec<u8> = connection.prepare_cached(sql)?.query_row([number], |row| row.get(0))?;
        let Some(gap) = find_gap(*number, &data) else { continue };
        data[gap].fill(0);
        let sql = "UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1";
        connection.prepare_cached(sql)?.execute(params![number, data])?;
    }
    Ok(())
}

/// Returns the unallocated range of a B-tree page, between its cell pointers and its cells. `None` for any other page.
///
/// Layout: <https://www.sqlite.org/fileformat2.html#b_tree_pages>.
fn find_gap(number: i64, data: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = if number == 1 { 100 } else { 0 };
    let header = data.get(start..start + 12)?;
    let header_size = match header[0] {
        0x02 | 0x05 => 12,
        0x0a | 0x0d => 8,
        _ => return None,
    };
    let u16_at = |at: usize| usize::from(u16::from_be_bytes([header[at], header[at + 1]]));
    let (first_free, cell_count, content) = (u16_at(1), u16_at(3), u16_at(5));
    let pointers_end = start + header_size + 2 * cell_count;
    let content = if content == 0 { 65_536 } else { content };
    let is_plausible = pointers_end <= content
        && content <= data.len()
        && (first_free == 0 || first_free >= content)
        && header[7] <= 60
        && data[start + header_size..pointers_end]
            .chunks_exact(2)
            .all(|pointer| usize::from(u16::from_be_bytes([pointer[0], pointer[1]])) >= content);
    is_plausible.then_some(pointers_end..content)
}
