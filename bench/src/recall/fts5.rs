//! Recall by SQLite alone: an FTS5 table with its own stemmer and rank, queried for any word of the question.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::time::Instant;

use anyhow::Result;
use rusqlite::{Connection, params};
use threadkeep_core::{MessageQuery, ThreadId};

use super::{EvalQuestion, Library, Scores};

const SCHEMA: &str = "CREATE VIRTUAL TABLE texts USING fts5 (body, id UNINDEXED, tokenize = 'porter unicode61')";
const BEST: &str = "SELECT id FROM texts WHERE texts MATCH ?1 ORDER BY rank LIMIT ?2";
/// Maximum number of results: the last cutoff.
const LIMIT: u32 = 50;

/// Runs all questions, with a separate table for each thread.
pub(super) async fn search_all(library: &Library, questions: &[EvalQuestion]) -> Result<Scores> {
    let mut tables: BTreeMap<ThreadId, Connection> = BTreeMap::new();
    let mut scores = Scores::default();
    for question in questions {
        let connection = match tables.entry(question.thread) {
            Entry::Occupied(table) => table.into_mut(),
            Entry::Vacant(entry) => entry.insert(fill(library, question.thread).await?),
        };
        let words = question.question.split(|character: char| !character.is_alphanumeric());
        let words: Vec<String> = words.filter(|word| !word.is_empty()).map(|word| format!("\"{word}\"")).collect();
        let began = Instant::now();
        let mut statement = connection.prepare_cached(BEST)?;
        let ids = statement.query_map(params![words.join(" OR "), LIMIT], |row| row.get(0))?;
        let ids = ids.collect::<rusqlite::Result<Vec<String>>>()?;
        scores.seconds.push(began.elapsed().as_secs_f64());
        scores.add(question, &ids);
    }
    Ok(scores)
}

async fn fill(library: &Library, thread: ThreadId) -> Result<Connection> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(SCHEMA)?;
    let mut after = 0;
    loop {
        let query = MessageQuery::following(after, 1_000);
        let page = library.memory.messages(&library.scope, thread, &query).await?;
        for message in &page.messages {
            let insert = "INSERT INTO texts (body, id) VALUES (?1, ?2)";
            connection.prepare_cached(insert)?.execute(params![message.plain_text(), message.external_id])?;
            after = message.seq;
        }
        if !page.more {
            return Ok(connection);
        }
    }
}
