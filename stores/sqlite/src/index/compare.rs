//! Whether the index holds the terms of the text, and nothing else.
//!
//! The index gives pairs of a term and a position, in the order of terms; the log gives them in the order of positions. Neither
//! order fits the other, so both sides are added up: each pair is hashed, and the hashes of a thread's pairs make one sum. Memory
//! is bounded: threads share a fixed number of sums, the first 65,536 threads have one each.

use std::hash::{Hash as _, Hasher as _};

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::{ThreadId, text};

use super::{Place, indexed_text};
use crate::error::Result;
use crate::row;

const SUMS: usize = 1 << 16;
/// Bytes of a term that FTS5 keeps.
const TERM_BYTES: usize = 32_768;
/// Threads that are named.
const NAMED: usize = 100;

/// What the comparison found.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Differences {
    /// Threads in which it differs (`None`: one that is deleted and waits for the sweep), the first of them.
    pub(crate) threads: Vec<Option<ThreadId>>,
    /// Whether it also holds words of no thread.
    pub(crate) has_strays: bool,
}

/// Compares the index with the text of all indexed messages. The connection must be able to make a temporary table, and be in
/// no transaction.
pub(crate) fn compare(connection: &Connection) -> Result<Differences> {
    connection.execute_batch(
        "CREATE VIRTUAL TABLE IF NOT EXISTS temp.message_pairs USING fts5vocab (main, message_terms, instance)",
    )?;
    let transaction = connection.unchecked_transaction()?;
    if !is_of_this_analysis(connection)? {
        return Ok(Differences::default());
    }
    let mut sums = vec![0_u64; SUMS];
    add_text(connection, &mut sums)?;
    subtract_index(connection, &mut sums)?;
    let found = find_threads(connection, &sums)?;
    transaction.commit()?;
    Ok(found)
}

/// An index of another analysis is built again when the file is opened for writing.
fn is_of_this_analysis(connection: &Connection) -> Result<bool> {
    let sql = "SELECT value FROM marks WHERE name = 'analysis'";
    let made_by: Option<i64> = connection.query_row(sql, [], |row| row.get(0)).optional()?;
    Ok(made_by == Some(i64::from(text::ANALYSIS_VERSION)))
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
        let place = Place { thread_no: thread.get(0)?, owner_no, tenant_no };
        let upto = row::unsigned(thread, 1)?;
        let mut rows = messages.query(params![row::key(place.thread_no, 0), row::key(place.thread_no, upto)])?;
        let sum = &mut sums[slot(place.thread_no)];
        while let Some(message) = rows.next()? {
            let position: i64 = message.get(0)?;
            let line = row::text(message, 1).map_or_else(|_| String::new(), |body| indexed_text(&place, body));
            for token in tokens(&line) {
                *sum = sum.wrapping_add(pair(token.as_bytes(), position));
            }
        }
    }
    Ok(())
}

fn subtract_index(connection: &Connection, sums: &mut [u64]) -> Result<()> {
    let mut pairs = connection.prepare("SELECT term, doc FROM temp.message_pairs")?;
    let mut pairs = pairs.query([])?;
    while let Some(row) = pairs.next()? {
        let position: i64 = row.get(1)?;
        let term = row.get_ref(0)?.as_bytes().unwrap_or_default();
        let sum = &mut sums[slot(row::thread_no(position))];
        *sum = sum.wrapping_sub(pair(term, position));
    }
    Ok(())
}

fn find_threads(connection: &Connection, sums: &[u64]) -> Result<Differences> {
    let mut strays: Vec<usize> = (0..SUMS).filter(|slot| sums[*slot] != 0).collect();
    let mut found = Differences::default();
    if strays.is_empty() {
        return Ok(found);
    }
    let differing = strays.clone();
    let sql = "SELECT i.thread_no, t.id FROM indexed i LEFT JOIN threads t ON t.no = i.thread_no ORDER BY i.thread_no";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let slot = slot(row.get(0)?);
        if differing.binary_search(&slot).is_err() {
            continue;
        }
        strays.retain(|stray| *stray != slot);
        if found.threads.len() < NAMED {
            found.threads.push(row::uuid(row, 1).ok().map(ThreadId));
        }
    }
    found.has_strays = !strays.is_empty();
    Ok(found)
}

fn slot(thread_no: i64) -> usize {
    (thread_no.unsigned_abs() % SUMS as u64) as usize
}

/// What the tokenizer `ascii` makes of a line, each token once.
fn tokens(line: &str) -> Vec<String> {
    let is_separator = |character: char| character.is_ascii() && !character.is_ascii_alphanumeric();
    let mut tokens: Vec<String> =
        line.split(is_separator).filter(|token| !token.is_empty()).map(str::to_ascii_lowercase).collect();
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}

fn pair(term: &[u8], position: i64) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    term[..term.len().min(TERM_BYTES)].hash(&mut hasher);
    position.hash(&mut hasher);
    hasher.finish()
}
