//! Reading around pages that cannot be read.

use std::ops::{ControlFlow, RangeInclusive};

use rusqlite::{Connection, Row};

use crate::error::Result;

/// Attempts to find the ends of what cannot be read; after them the rest of a damaged range counts as unreadable.
const ATTEMPTS: usize = 50_000;

/// Shows the rows of a table between two keys, in their order, and gives the ranges of keys that could not be read.
///
/// `sql` selects rows whose first column is an integer key BETWEEN ?1 AND ?2, in its order. Where all pages are sound it runs
/// once. Otherwise the range behind the last row that came is halved until what can be read is told from what cannot.
pub(crate) fn read(
    connection: &Connection,
    sql: &str,
    keys: RangeInclusive<i64>,
    show: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
) -> Result<Vec<RangeInclusive<i64>>> {
    read_by(connection, (sql, 0), keys, show)
}

/// As [`read`], with the key in another column.
pub(crate) fn read_by(
    connection: &Connection,
    query: (&str, usize),
    keys: RangeInclusive<i64>,
    mut show: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
) -> Result<Vec<RangeInclusive<i64>>> {
    let mut unread: Vec<RangeInclusive<i64>> = Vec::new();
    let mut ranges = vec![keys];
    let mut attempts = 0;
    while let Some(range) = ranges.pop() {
        attempts += 1;
        let (reached, end) = read_range(connection, query, &range, &mut show)?;
        let high = *range.end();
        match end {
            End::Whole => {}
            End::Stopped => break,
            End::Damaged if reached > high => {}
            End::Damaged if reached == high || attempts > ATTEMPTS => match unread.last_mut() {
                Some(last) if last.end().checked_add(1) == Some(reached) => *last = *last.start()..=high,
                _ => unread.push(reached..=high),
            },
            End::Damaged => {
                let middle = reached + (high - reached) / 2;
                ranges.extend([middle + 1..=high, reached..=middle]);
            }
        }
    }
    Ok(unread)
}

enum End {
    Whole,
    /// The caller has enough.
    Stopped,
    Damaged,
}

/// Shows what comes of a range until something cannot be read; gives the first key that was not shown.
fn read_range(
    connection: &Connection,
    (sql, key_column): (&str, usize),
    range: &RangeInclusive<i64>,
    show: &mut impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
) -> Result<(i64, End)> {
    let mut reached = *range.start();
    let mut walk = || -> Result<End> {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query([range.start(), range.end()])?;
        while let Some(row) = rows.next()? {
            let key: i64 = row.get(key_column)?;
            // A damaged page may lead into another part of the file.
            if key < reached || key > *range.end() {
                return Ok(End::Damaged);
            }
            if show(row)?.is_break() {
                return Ok(End::Stopped);
            }
            reached = key.saturating_add(1);
        }
        Ok(End::Whole)
    };
    let end = match walk() {
        Err(error) if error.is_damage() => End::Damaged,
        end => end?,
    };
    Ok((reached, end))
}
