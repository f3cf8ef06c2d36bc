//! Search in messages with an FTS5 table. The table follows the change log off the commit path; a watermark records the last indexed
//! stamp.
//!
//! Each message is indexed under its position, with its terms and two scope terms (owner and tenant) that no text can contain. A query
//! is evaluated term by term: for each term, the newest positions in the scope that contain it are read, up to a limit. Their number is
//! the term's frequency in the scope, and candidates are ranked by the rarity of their terms.

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
pub(crate) use search::{MAX_POSITIONS, MAX_TERMS, rarity, search};

/// The maximum number of messages indexed in one write transaction.
const MESSAGES_PER_STEP: usize = 2_000;

/// The numbers of a thread, its owner and its tenant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadNumbers {
    pub(crate) thread_no: i64,
    pub(crate) owner_no: i64,
    pub(crate) tenant_no: i64,
}

// These mark the numbers of the owner and the tenant among the terms of a message. Private-use characters are never part of a term.
const OWNER_MARK: char = '\u{e000}';
const TENANT_MARK: char = '\u{e001}';

/// Returns the terms of a message, separated by spaces. A message that cannot be decoded has only scope terms; `verify` reports it.
fn indexed_text(numbers: &ThreadNumbers, body: &str) -> String {
    let mut terms = format!("{OWNER_MARK}{} {TENANT_MARK}{}", numbers.owner_no, numbers.tenant_no);
    if let Ok(content) = codec::decode_content(body) {
        for term in text::indexed_terms(&content.plain_text()) {
            terms.push(' ');
            terms.push_str(&term);
        }
    }
    terms
}

/// Returns the watermark: all changes through this stamp are indexed.
fn watermark(connection: &Connection) -> Result<i64> {
    let sql = "SELECT value FROM marks WHERE name = 'index_stamp'";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0)).optional()?.unwrap_or(0))
}

fn indexed_seq(connection: &Connection, thread_no: i64) -> Result<u64> {
    let sql = "SELECT seq FROM indexed WHERE thread_no = ?1";
    let seq = connection.prepare_cached(sql)?.query_row([thread_no], |row| row.get::<_, i64>(0)).optional()?;
    Ok(seq.unwrap_or(0).unsigned_abs())
}

fn insert(connection: &Connection, key: i64, terms: &str) -> Result<()> {
    connection
        .prepare_cached("INSERT INTO message_terms (rowid, terms) VALUES (?1, ?2)")?
        .execute(params![key, terms])?;
    Ok(())
}

fn remove(connection: &Connection, key: i64, terms: &str) -> Result<()> {
    let sql = "INSERT INTO message_terms (message_terms, rowid, terms) VALUES ('delete', ?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![key, terms])?;
    residue::record(connection, Residue::Index)
}

/// Statements that merge segments of an index. The parameter is the number of pages to merge; a negative number starts a
/// merge of all segments into one.
const MERGES: [&str; 2] = [
    "INSERT INTO message_terms (message_terms, rank) VALUES ('merge', ?1)",
    "INSERT INTO entry_terms (entry_terms, rank) VALUES ('merge', ?1)",
];
/// The number of pages merged per write transaction by [`purge`].
const PURGE_PAGES: i64 = 500;
/// The number of pages merged per write transaction while the store is idle. A commit that arrives then waits at most a few
/// milliseconds.
const IDLE_PAGES: i64 = 100;

/// Rewrites the indexes without the terms of removed messages and entries. FTS5 only marks such terms as deleted; merging all segments
/// into one removes them. Runs in steps, between which other writes can run.
pub(crate) fn purge(shared: &Shared) -> Result<(), StoreError> {
    for merge in MERGES {
        let mut pages = -PURGE_PAGES;
        while merge_pages(shared, merge, pages)? {
            pages = PURGE_PAGES;
        }
    }
    Ok(())
}

/// Merges some segments of the indexes. Returns whether there may be more to merge.
pub(crate) fn merge_segments(shared: &Shared) -> Result<bool, StoreError> {
    for merge in MERGES {
        if merge_pages(shared, merge, IDLE_PAGES)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn merge_pages(shared: &Shared, merge: &'static str, pages: i64) -> Result<bool, StoreError> {
    writer::write_blocking(shared, |connection| {
        let before = connection.total_changes();
        connection.prepare_cached(merge)?.execute([pages])?;
        // The command itself counts as one change. If there are no other changes, nothing was merged.
        Ok(connection.total_changes() - before > 1)
    })
}

/// Updates the index after a message was replaced. Without a new body, the message was erased.
pub(crate) fn replace(
    connection: &Connection,
    numbers: &ThreadNumbers,
    seq: u64,
    old_body: &str,
    new_body: Option<&str>,
) -> Result<()> {
    if seq > indexed_seq(connection, numbers.thread_no)? {
        return Ok(());
    }
    let key = row::key(numbers.thread_no, seq);
    remove(connection, key, &indexed_text(numbers, old_body))?;
    new_body.map_or(Ok(()), |body| insert(connection, key, &indexed_text(numbers, body)))
}

/// Removes a message's row and index entry.
pub(crate) fn remove_message(connection: &Connection, numbers: &ThreadNumbers, seq: u64) -> Result<()> {
    let key = row::key(numbers.thread_no, seq);
    let sql = "SELECT body FROM messages WHERE position = ?1";
    let body: Option<Option<String>> = connection.prepare_cached(sql)?.query_row([key], |row| row.get(0)).optional()?;
    if let Some(Some(body)) = body {
        replace(connection, numbers, seq, &body, None)?;
    }
    connection.prepare_cached("DELETE FROM messages WHERE position = ?1")?.execute([key])?;
    Ok(())
}

/// Clears the index of messages. Catching up rebuilds it.
pub(crate) fn reset(connection: &Connection) -> Result<()> {
    connection.execute_batch(
        "INSERT INTO message_terms (message_terms) VALUES ('delete-all');
         DELETE FROM indexed;
         DELETE FROM marks WHERE name = 'index_stamp';",
    )?;
    Ok(())
}

/// Resets the indexes if they were built by another version of the text analysis.
pub(crate) fn check_analysis(connection: &Connection) -> Result<()> {
    let sql = "SELECT value FROM marks WHERE name = 'analysis'";
    let built_by: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    let version = i64::from(text::ANALYSIS_VERSION);
    if built_by == Some(version) {
        return Ok(());
    }
    let transaction = connection.unchecked_transaction()?;
    if built_by.is_some() {
        reset(&transaction)?;
        collections::rebuild_index(&transaction)?;
    }
    let sql = "INSERT OR REPLACE INTO marks (name, value) VALUES ('analysis', ?1)";
    transaction.execute(sql, [version])?;
    transaction.commit()?;
    Ok(())
}

/// The messages to index, with the terms of their text.
struct IndexBatch {
    /// The watermark of the index when the messages were read.
    watermark: i64,
    portions: Vec<ThreadPortion>,
    /// Whether all unindexed messages are in the batch.
    is_complete: bool,
}

/// The part of an [`IndexBatch`] that belongs to one thread.
struct ThreadPortion {
    numbers: ThreadNumbers,
    stamp: i64,
    change: u64,
    /// The last position that was indexed when the messages were read.
    indexed_seq: u64,
    /// The last position in this portion.
    through: u64,
    /// Whether the portion reaches the end of the thread.
    is_complete: bool,
    /// The key and the terms of each message.
    messages: Vec<(i64, String)>,
}

/// Indexes approximately `limit` messages.
pub(crate) fn catch_up(shared: &Shared, limit: usize) -> Result<CatchUp, StoreError> {
    let mut total = 0;
    loop {
        let step = MESSAGES_PER_STEP.min(limit.saturating_sub(usize::try_from(total).unwrap_or(usize::MAX)));
        if step == 0 {
            return Ok(CatchUp { indexed: total, done: false });
        }
        // Text is analysed before the write lock is taken. Threads that change in the meantime are indexed by the next step.
        let batch = shared.read(|connection| read_batch(connection, step))?;
        let is_last = batch.is_complete;
        if batch.portions.is_empty() {
            return Ok(CatchUp { indexed: total, done: is_last });
        }
        let written = writer::write_blocking(shared, |connection| write_batch(connection, batch))?;
        total += written.messages;
        if is_last && written.is_complete {
            return Ok(CatchUp { indexed: total, done: true });
        }
    }
}

fn read_batch(connection: &Connection, limit: usize) -> Result<IndexBatch> {
    let transaction = connection.unchecked_transaction()?;
    let watermark = watermark(connection)?;
    let sql = "SELECT no, owner_no, tenant_no, stamp, seq, change, first_seq FROM threads \
               WHERE stamp > ?1 AND restoring = 0 ORDER BY stamp";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([watermark])?;
    let (mut portions, mut left, mut is_complete) = (Vec::new(), limit, true);
    while let Some(row) = rows.next()? {
        if left == 0 {
            is_complete = false;
            break;
        }
        let numbers = ThreadNumbers { thread_no: row.get(0)?, owner_no: row.get(1)?, tenant_no: row.get(2)? };
        let (seq, first_seq) = (row::unsigned(row, 4)?, row::unsigned(row, 6)?);
        let indexed_seq = indexed_seq(connection, numbers.thread_no)?;
        let from = (indexed_seq + 1).max(first_seq);
        let (messages, through) = read_messages(connection, &numbers, from, seq, left)?;
        left = left.saturating_sub(messages.len());
        let is_thread_complete = through >= seq;
        is_complete &= is_thread_complete;
        let (stamp, change) = (row.get(3)?, row::change_number(row.get(5)?));
        portions.push(ThreadPortion {
            numbers,
            stamp,
            change,
            indexed_seq,
            through,
            is_complete: is_thread_complete,
            messages,
        });
    }
    drop(rows);
    drop(statement);
    transaction.commit()?;
    Ok(IndexBatch { watermark, portions, is_complete })
}

/// Reads and analyses messages of a thread. Returns the key and the terms of each message, and the last position that was read.
fn read_messages(
    connection: &Connection,
    numbers: &ThreadNumbers,
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
    let mut rows =
        statement.query(params![row::key(numbers.thread_no, from), row::key(numbers.thread_no, seq), limit])?;
    let mut messages = Vec::new();
    while let Some(row) = rows.next()? {
        let terms = row::text(row, 1).map_or_else(|_| String::new(), |body| indexed_text(numbers, body));
        messages.push((row.get(0)?, terms));
    }
    let is_limited = messages.len() as i64 == limit;
    let through = match messages.last() {
        Some((key, _)) if is_limited => row::position_of_key(*key),
        _ => seq,
    };
    Ok((messages, through))
}

/// The outcome of writing an [`IndexBatch`].
struct WrittenBatch {
    messages: u64,
    /// Whether all portions were written. A portion is skipped if its thread was changed or indexed by others in the meantime.
    is_complete: bool,
}

fn write_batch(connection: &Connection, batch: IndexBatch) -> Result<WrittenBatch> {
    let mut messages = Vec::new();
    let old_watermark = watermark(connection)?;
    let mut new_watermark = old_watermark;
    // A lower watermark means that the index was cleared, so it lacks the threads before this batch.
    let is_same_index = old_watermark >= batch.watermark;
    let (mut is_contiguous, mut is_complete) = (is_same_index, is_same_index);
    for portion in batch.portions {
        if !is_current(connection, &portion)? {
            (is_contiguous, is_complete) = (false, false);
            continue;
        }
        let sql = "INSERT OR REPLACE INTO indexed (thread_no, seq) VALUES (?1, ?2)";
        connection.prepare_cached(sql)?.execute(params![portion.numbers.thread_no, portion.through as i64])?;
        is_contiguous &= portion.is_complete;
        if is_contiguous {
            new_watermark = new_watermark.max(portion.stamp);
        }
        messages.extend(portion.messages);
    }
    // Messages are inserted in ascending order of keys, because FTS5 starts a new segment whenever the row id decreases.
    messages.sort_unstable_by_key(|(key, _)| *key);
    for (key, terms) in &messages {
        insert(connection, *key, terms)?;
    }
    if new_watermark > old_watermark {
        let sql = "INSERT OR REPLACE INTO marks (name, value) VALUES ('index_stamp', ?1)";
        connection.prepare_cached(sql)?.execute([new_watermark])?;
    }
    Ok(WrittenBatch { messages: messages.len() as u64, is_complete })
}

/// Whether a portion is still up to date: the thread exists, has not been indexed in the meantime, and none of its messages have been
/// replaced or erased. Messages may have been appended.
fn is_current(connection: &Connection, portion: &ThreadPortion) -> Result<bool> {
    let thread_no = portion.numbers.thread_no;
    let sql = "SELECT EXISTS (SELECT 1 FROM threads WHERE no = ?1) AND NOT EXISTS \
               (SELECT 1 FROM commits WHERE position > ?2 AND position <= ?3 AND effects IS NOT NULL)";
    let range = params![thread_no, row::key(thread_no, portion.change), row::last_key(thread_no)];
    let is_unchanged: bool = connection.prepare_cached(sql)?.query_row(range, |row| row.get(0))?;
    Ok(is_unchanged && indexed_seq(connection, thread_no)? == portion.indexed_seq)
}
