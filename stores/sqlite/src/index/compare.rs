//! Checks that the index contains exactly the terms of the messages.
//!
//! The index lists pairs of a term and a position in the order of terms; the messages are in the order of positions. To compare the
//! two without sorting, each pair is hashed, and the hashes are summed per thread on both sides. The number of sums is fixed to limit
//! the memory: the first 65,536 threads have one sum each, further threads share them.

use std::hash::{Hash as _, Hasher as _};

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::{ThreadId, text};

use super::{ThreadNumbers, indexed_text};
use crate::error::Result;
use crate::row;

/// The number of sums that are kept in memory.
const SUM_COUNT: usize = 1 << 16;
/// The length to which FTS5 truncates terms.
const TERM_BYTES: usize = 32_768;
/// The maximum number of threads listed in [`Differences`].
const MAX_REPORTED_THREADS: usize = 100;

/// The differences between the index and the messages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// The first threads that differ; `None` stands for a deleted thread that no sweep has removed yet.
    pub(crate) threads: Vec<Option<ThreadId>>,
    /// Whether the index contains terms of threads that do not exist.
    pub(crate) has_orphans: bool,
}

/// Compares the index with the text of all indexed messages. The connection must allow temporary tables and not be in a
/// transaction.
pub(crate) fn compare(connection: &Connection) -> Result<Differences> {
    connection.execute_batch(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.message_pairs USING fts5vocab (main, message_terms, instance)",
    )?;
    let transaction = connection.unchecked_transaction()?;
    if !is_current_analysis(connection)? {
        return Ok(Differences::default());
    }
    let mut sums = vec![0_u64; SUM_COUNT];
    add_text(connection, &mut sums)?;
    subtract_index(connection, &mut sums)?;
    let found = find_threads(connection, &sums)?;
    transaction.commit()?;
    Ok(found)
}

/// Whether the index was built by this version of the text analysis. If not, it is rebuilt when the file is opened for writing.
fn is_current_analysis(connection: &Connection) -> Result<bool> {
    let sql = "SELECT value FROM marks WHERE name = 'analysis'";
    let built_by: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(built_by == Some(i64::from(text::ANALYSIS_VERSION)))
}

fn add_text(connection: &Connection, sums: &mut [u64]) -> Result<()> {
    let sql = "SELECT i.thread_no, i.seq, coalesce(t.owner_no, l.owner_no), coalesce(t.tenant_no, l.tenant_no) \
               FROM indexed i LEFT JOIN threads t ON t.no = i.thread_no LEFT JOIN leftovers l ON l.thread_no = i.thread_no \
               ORDER BY i.thread_no";
    let mut threads = connection.prepare(sql)?;
    let mut threads = threads.query([])?;
    let mut messages = connection
        .prepare("SELECT position, body FROM messages WHERE position BETWEEN ?1 AND ?2 AND body IS NOT NULL")?;
    while let Some(thread) = threads.next()? {
        let (Some(owner_no), Some(tenant_no)) = (thread.get(2)?, thread.get(3)?) else { continue };
        let numbers = ThreadNumbers { thread_no: thread.get(0)?, owner_no, tenant_no };
        let indexed_seq = row::unsigned(thread, 1)?;
        let mut rows =
            messages.query(params![row::key(numbers.thread_no, 0), row::key(numbers.thread_no, indexed_seq)])?;
        let sum = &mut sums[slot(numbers.thread_no)];
        while let Some(message) = rows.next()? {
            let key: i64 = message.get(0)?;
            let terms = row::text(message, 1).map_or_else(|_| String::new(), |body| indexed_text(&numbers, body));
            for token in tokens(&terms) {
                *sum = sum.wrapping_add(hash_pair(token.as_bytes(), key));
            }
        }
    }
    Ok(())
}

fn subtract_index(connection: &Connection, sums: &mut [u64]) -> Result<()> {
    let mut pairs = connection.prepare("SELECT term, doc FROM temp.message_pairs")?;
    let mut pairs = pairs.query([])?;
    while let Some(row) = pairs.next()? {
        let key: i64 = row.get(1)?;
        let term = row.get_ref(0)?.as_bytes().unwrap_or_default();
        let sum = &mut sums[slot(row::thread_no_of_key(key))];
        *sum = sum.wrapping_sub(hash_pair(term, key));
    }
    Ok(())
}

fn find_threads(connection: &Connection, sums: &[u64]) -> Result<Differences> {
    let differing: Vec<usize> = (0..SUM_COUNT).filter(|slot| sums[*slot] != 0).collect();
    let mut found = Differences::default();
    if differing.is_empty() {
        return Ok(found);
    }
    let mut orphans = differing.clone();
    let sql = "SELECT i.thread_no, t.id FROM indexed i LEFT JOIN threads t ON t.no = i.thread_no ORDER BY i.thread_no";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let slot = slot(row.get(0)?);
        if differing.binary_search(&slot).is_err() {
            continue;
        }
        orphans.retain(|orphan| *orphan != slot);
        if found.threads.len() < MAX_REPORTED_THREADS {
            found.threads.push(row::uuid(row, 1).ok().map(ThreadId));
        }
    }
    found.has_orphans = !orphans.is_empty();
    Ok(found)
}

fn slot(thread_no: i64) -> usize {
    (thread_no.unsigned_abs() % SUM_COUNT as u64) as usize
}

/// Splits the terms of a message as the FTS5 tokenizer `ascii` does, and removes duplicates.
fn tokens(terms: &str) -> Vec<String> {
    let is_separator = |character: char| character.is_ascii() && !character.is_ascii_alphanumeric();
    let mut tokens: Vec<String> =
        terms.split(is_separator).filter(|token| !token.is_empty()).map(str::to_ascii_lowercase).collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

fn hash_pair(term: &[u8], key: i64) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    term[..term.len().min(TERM_BYTES)].hash(&mut hasher);
    key.hash(&mut hasher);
    hasher.finish()
}
