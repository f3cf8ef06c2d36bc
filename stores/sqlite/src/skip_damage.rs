//! Reads the readable rows of a table whose pages may be damaged.

use std::ops::{ControlFlow, RangeInclusive};

use rusqlite::{Connection, Row};

use crate::error::Result;

/// The maximum number of ranges to read. After that, the rest of a damaged range counts as unreadable.
const MAX_ATTEMPTS: usize = 50_000;

/// Calls `visit` with each row between two keys, in key order, and returns the ranges of keys that could not be read.
///
/// `sql` selects rows whose first column is an integer key BETWEEN ?1 AND ?2, ordered by this key. If all pages are intact, it
/// runs once. Otherwise, the range after the last row read is bisected to find the readable rows behind the damage.
pub(crate) fn read(
    connection: &Connection,
    sql: &str,
    keys: RangeInclusive<i64>,
    visit: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
) -> Result<Vec<RangeInclusive<i64>>> {
    read_with_key_column(connection, (sql, 0), keys, visit)
}

/// Like [`read`], but the key is in another column. `query` is the statement and the index of that column.
pub(crate) fn read_with_key_column(
    connection: &Connection,
    query: (&str, usize),
    keys: RangeInclusive<i64>,
    mut visit: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
) -> Result<Vec<RangeInclusive<i64>>> {
    let mut unread: Vec<RangeInclusive<i64>> = Vec::new();
    let mut ranges = vec![keys];
    let mut attempts = 0;
    while let Some(range) = ranges.pop() {
        attempts += 1;
        let (next_key, end) = read_range(connection, query, &range, &mut visit)?;
        let high = *range.end();
        match end {
            End::Complete => {}
            End::Stopped => break,
            End::Damaged if next_key > high => {}
            End::Damaged if next_key == high || attempts > MAX_ATTEMPTS => match unread.last_mut() {
                Some(last) if last.end().checked_add(1) == Some(next_key) => *last = *last.start()..=high,
                _ => unread.push(next_key..=high),
            },
            End::Damaged => {
                let middle = next_key + (high - next_key) / 2;
                ranges.extend([middle + 1..=high, next_key..=middle]);
            }
        }
    }
    Ok(unread)
}

/// Why a read of a range ended.
enum End {
    Complete,
    /// `visit` stopped the read.
    Stopped,
    Damaged,
}

/// Visits the rows of a range up to the first damage. Returns the first key that was not visited.
fn read_range(
    connection: &Connection,
    (sql, key_column): (&str, usize),
    range: &RangeInclusive<i64>,
    visit: &mut impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
) -> Result<(i64, End)> {
    let mut next_key = *range.start();
    let mut walk = || -> Result<End> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([range.start(), range.end()])?;
        while let Some(row) = rows.next()? {
            let key: i64 = row.get(key_column)?;
            // A damaged page may point into another part of the file.
            if key < next_key || key > *range.end() {
                return Ok(End::Damaged);
            }
            if visit(row)?.is_break() {
                return Ok(End::Stopped);
            }
            next_key = key.saturating_add(1);
        }
        Ok(End::Complete)
    };
    let end = match walk() {
        Err(error) if error.is_damage() => End::Damaged,
        end => end?,
    };
    Ok((next_key, end))
}
