//! Search over messages: an FTS5 table that follows the log by its own watermark, off the commit path.
//!
//! Each message is indexed under its position, with its terms and two terms for its scope (owner and tenant) that no
//! text can contain. A question is answered term by term: the newest positions that hold it within the scope, counted up
//! to a bound; those counts are the scope's own statistics, and the candidates are ranked by how rare their terms are.

pub(crate) mod compare;
mod search;
#[cfg(test)]
mod tests;

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::{CatchUp, StoreError, codec, text};

use crate::connection::Shared;
use crate::error::Result;
use crate::residue::{self, Residue};
use crate::{collections, row, writer};
pub(crate) use search::{PER_TERM, TERMS, rarity, search};

/// Messages indexed under one lock.
const STEP: usize = 2_000;

/// Where a message belongs, in the file's numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) thread_no: i64,
    pub(crate) owner_no: i64,
    pub(crate) tenant_no: i64,
}

// Private-use characters: never part of an analysed term.
const OWNER_MARK: char = '\u{e000}';
const TENANT_MARK: char = '\u{e001}';

/// What is indexed of a message. Nothing for one that does not decode: `verify` tells of it.
fn indexed_text(place: &Place, body: &str) -> String {
    let mut line = format!("{OWNER_MARK}{} {TENANT_MARK}{}", place.owner_no, place.tenant_no);
    if let Ok(content) = codec::decode_content(body) {
        for term in text::indexed_terms(&content.plain_text()) {
            line.push(' ');
            line.push_str(&term);
        }
    }
    line
}

/// The stamp up to which all threads are indexed.
fn watermark(connection: &Connection) -> Result<i64> {
    let sql = "SELECT value FROM marks WHERE name = 'index_stamp'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn indexed_seq(connection: &Connection, thread_no: i64) -> Result<u64> {
    let sql = "SELECT seq FROM indexed WHERE thread_no = ?1";
    let seq = connection.prepare_cached(sql)?.query_row([thread_no], |row| row.get::<_, i64>(0)).optional()?;
    Ok(seq.unwrap_or(0).unsigned_abs())
}

fn insert(connection: &Connection, key: i64, line: &str) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO message_terms (rowid, terms) VALUES (?1, ?2)")?
        .execute(params![key, line])?;
    Ok(())
}

fn remove(connection: &Connection, key: i64, line: &str) -> Result<()> {
    let sql = "INSERT INTO message_terms (message_terms, rowid, terms) VALUES ('delete', ?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![key, line])?;
    residue::note(connection, Residue::Index)
}

/// Statements that merge segments of an index: a number of pages, or, begun with its negative, all segments into one.
const MERGES: [&str; 2] = [
    "INSERT INTO message_terms (message_terms, rank) VALUES ('merge', ?1)",
    "INSERT INTO entry_terms (entry_terms, rank) VALUES ('merge', ?1)",
];
/// Pages merged under one lock when words must go.
const PURGE_PAGES: i64 = 500;
/// Pages merged under one lock while nobody waits: whoever comes then waits some milliseconds at most.
const TIDY_PAGES: i64 = 100;

/// Rewrites the indexes without the words of what was removed: FTS5 only marks them, and merging all of its segments into
/// one leaves marks and words out. In steps; others write in between.
pub(crate) fn purge(shared: &Shared) -> Result<(), StoreError> {
    for merge in MERGES {
        let mut pages = -PURGE_PAGES;
        while merge_pages(shared, merge, pages)? {
            pages = PURGE_PAGES;
        }
    }
    Ok(())
}

/// Merges some of what writers left in many segments. Says whether there may be more to merge.
pub(crate) fn tidy(shared: &Shared) -> Result<bool, StoreError> {
    for merge in MERGES {
        if merge_pages(shared, merge, TIDY_PAGES)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn merge_pages(shared: &Shared, merge: &'static str, pages: i64) -> Result<bool, StoreError> {
    writer::write_blocking(shared, |connection| {
        let before = connection.total_changes();
        connection.prepare_cached(merge)?.execute([pages])?;
        // The command itself counts as one change: with nothing else changed there is nothing left to merge.
        Ok(connection.total_changes() - before > 1)
    })
}

/// Brings the index along when a message changes (or, without a new body, goes).
pub(crate) fn replace(
    connection: &Connection,
    place: &Place,
    seq: u64,
    old_body: &str,
    new_body: Option<&str>,
) -> Result<()> {
    if seq > indexed_seq(connection, place.thread_no)? {
        return Ok(());
    }
    let key = row::key(place.thread_no, seq);
    remove(connection, key, &indexed_text(place, old_body))?;
    new_body.map_or(Ok(()), |body| insert(connection, key, &indexed_text(place, body)))
}

/// Removes a message's row and index entry for good.
pub(crate) fn remove_message(connection: &Connection, place: &Place, seq: u64) -> Result<()> {
    let key = row::key(place.thread_no, seq);
    let sql = "SELECT body FROM messages WHERE position = ?1";
    let body: Option<Option<String>> = connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?;
    if let Some(Some(body)) = body {
        replace(connection, place, seq, &body, None)?;
    }
    connection.prepare_cached("DELETE FROM messages WHERE position = ?1")?.execute([key])?;
    Ok(())
}

/// Forgets the whole index; it is built again as it is caught up.
pub(crate) fn reset(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "INSERT INTO message_terms (message_terms) VALUES ('delete-all');
         DELETE FROM indexed;
         DELETE FROM marks WHERE name = 'index_stamp';",
    )?;
    Ok(())
}

/// Starts the index anew when it was made by another analysis of words.
pub(crate) fn check_analysis(connection: &Connection) -> Result<()> {
    let sql = "SELECT value FROM marks WHERE name = 'analysis'";
    let made_by: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    let version = i64::from(text::ANALYSIS_VERSION);
    if made_by == Some(version) {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    if made_by.is_some() {
        reset(&transaction)?;
        collections::rebuild_index(&transaction)?;
    }
    let sql = "INSERT OR REPLACE INTO marks (name, value) VALUES ('analysis', ?1)";
    transaction.execute(sql, [version])?;
    transaction.commit()?;
    Ok(())
}

/// What was read and analysed, on its way into the index.
struct Reading {
    /// The stamp up to which all threads were indexed.
    watermark: i64,
    portions: Vec<Portion>,
    /// Whether nothing is left to read.
    is_all: bool,
}

/// A thread's messages.
struct Portion {
    place: Place,
    stamp: i64,
    change: u64,
    /// The last position that was in the index already.
    indexed_seq: u64,
    /// The last position read.
    upto: u64,
    is_whole: bool,
    lines: Vec<(i64, String)>,
}

/// Indexes at most about `limit` messages.
pub(crate) fn catch_up(shared: &Shared, limit: usize) -> Result<CatchUp, StoreError> {
    let mut total = 0;
    loop {
        let step = STEP.min(limit.saturating_sub(usize::try_from(total).unwrap_or(usize::MAX)));
        if step == 0 {
            return Ok(CatchUp { indexed: total, done: false });
        }
        // Words are taken from text before the lock is held; what changed meanwhile is left for the next step.
        let reading = shared.read(|connection| read_portions(connection, step))?;
        let is_read = reading.is_all;
        if reading.portions.is_empty() {
            return Ok(CatchUp { indexed: total, done: is_read });
        }
        let written = writer::write_blocking(shared, |connection| write_portions(connection, reading))?;
        total += written.messages;
        if is_read && written.is_all {
            return Ok(CatchUp { indexed: total, done: true });
        }
    }
}

fn read_portions(connection: &Connection, limit: usize) -> Result<Reading> {
    let transaction = connection.unchecked_transaction()?;
    let watermark = watermark(connection)?;
    let sql = "SELECT no, owner_no, tenant_no, stamp, seq, change, first_seq FROM threads \
               WHERE stamp > ?1 AND restoring = 0 ORDER BY stamp";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([watermark])?;
    let (mut portions, mut left, mut is_all) = (Vec::new(), limit, true);
    while let Some(row) = rows.next()? {
        if left == 0 {
            is_all = false;
            break;
        }
        let place = Place { thread_no: row.get(0)?, owner_no: row.get(1)?, tenant_no: row.get(2)? };
        let (seq, first_seq) = (row::unsigned(row, 4)?, row::unsigned(row, 6)?);
        let indexed_seq = indexed_seq(connection, place.thread_no)?;
        let from = (indexed_seq + 1).max(first_seq);
        let (lines, upto) = read_lines(connection, &place, from, seq, left)?;
        left = left.saturating_sub(lines.len());
        let is_whole = upto >= seq;
        is_all &= is_whole;
        let (stamp, change) = (row.get(3)?, row::position(row.get(5)?));
        portions.push(Portion { place, stamp, change, indexed_seq, upto, is_whole, lines });
    }
    drop(rows);
    drop(statement);
    transaction.commit()?;
    Ok(Reading { watermark, portions, is_all })
}

fn read_lines(
    connection: &Connection,
    place: &Place,
    from: u64,
    seq: u64,
    limit: usize,
) -> Result<(Vec<(i64, String)>, u64)> {
    if from > seq {
        return Ok((Vec::new(), seq));
    }
    let sql = "SELECT position, body FROM messages WHERE position BETWEEN ?1 AND ?2 AND body IS NOT NULL \
               ORDER BY position LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut rows = statement.query(params![row::key(place.thread_no, from), row::key(place.thread_no, seq), limit])?;
    let mut lines = Vec::new();
    while let Some(row) = rows.next()? {
        let line = row::text(row, 1).map_or_else(|_| String::new(), |body| indexed_text(place, body));
        lines.push((row.get(0)?, line));
    }
    let is_cut = lines.len() as i64 == limit;
    let upto = match lines.last() {
        Some((key, _)) if is_cut => row::position(*key),
        _ => seq,
    };
    Ok((lines, upto))
}

/// What of a reading went into the index.
struct WrittenPortions {
    messages: u64,
    /// Whether none had been overtaken by a change or by somebody else's indexing.
    is_all: bool,
}

fn write_portions(connection: &Connection, reading: Reading) -> Result<WrittenPortions> {
    let mut lines = Vec::new();
    let indexed_upto = watermark(connection)?;
    let mut reached = indexed_upto;
    // Where the watermark went back, the index was begun again: threads before this reading are missing from it.
    let is_same_index = indexed_upto >= reading.watermark;
    let (mut is_unbroken, mut is_all) = (is_same_index, is_same_index);
    for portion in reading.portions {
        if !is_still_true(connection, &portion)? {
            (is_unbroken, is_all) = (false, false);
            continue;
        }
        let sql = "INSERT OR REPLACE INTO indexed (thread_no, seq) VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![portion.place.thread_no, portion.upto as i64])?;
        is_unbroken &= portion.is_whole;
        if is_unbroken {
            reached = reached.max(portion.stamp);
        }
        lines.extend(portion.lines);
    }
    // Ascending, or FTS5 would start a new segment at every step back.
    lines.sort_unstable_by_key(|(key, _)| *key);
    for (key, line) in &lines {
        insert(connection, *key, line)?;
    }
    if reached > indexed_upto {
        let sql = "INSERT OR REPLACE INTO marks (name, value) VALUES ('index_stamp', ?1)";
        connection.prepare_cached(sql)?.execute([reached])?;
    }
    Ok(WrittenPortions { messages: lines.len() as u64, is_all })
}

/// Whether what was read is what stands: the thread is there, nobody else indexed it, and nothing in it was replaced or
/// erased (appending does no harm).
fn is_still_true(connection: &Connection, portion: &Portion) -> Result<bool> {
    let thread_no = portion.place.thread_no;
    let sql = "SELECT EXISTS (SELECT 1 FROM threads WHERE no = ?1) AND NOT EXISTS \
               (SELECT 1 FROM commits WHERE position > ?2 AND position <= ?3 AND effects IS NOT NULL)";
    let range = params![thread_no, row::key(thread_no, portion.change), row::last_key(thread_no)];
    let stands: bool = connection.prepare_cached(sql)?.query_row(range, |row| row.get(0))?;
    Ok(stands && indexed_seq(connection, thread_no)? == portion.indexed_seq)
}
