//! Search without the engine: a plain FTS5 table of the texts of all users, with default settings.

use std::path::Path;
use std::time::Instant;

use anyhow::Result;
use rusqlite::Connection;

use crate::engine::Repeat;

pub(crate) const SCHEMA: &str = "CREATE VIRTUAL TABLE IF NOT EXISTS texts USING fts5 (body);";

const INSERT: &str = "INSERT INTO texts (rowid, body) VALUES (?1, ?2)";
/// The minimal result of a search: row numbers.
const NUMBERS: &str = "SELECT rowid FROM texts WHERE texts MATCH ?1 LIMIT 10";
/// A useful result: texts, best first.
const BEST: &str = "SELECT body FROM texts WHERE texts MATCH ?1 ORDER BY rank LIMIT 10";

pub(crate) const STATEMENTS: [&str; 3] = [INSERT, NUMBERS, BEST];

#[derive(Debug)]
pub(crate) struct Fts {
    connection: Connection,
}

impl Fts {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self { connection: super::open(path, SCHEMA)? })
    }

    pub(crate) fn fill(&mut self, texts: impl Iterator<Item = (i64, String)>) -> Result<()> {
        let transaction = self.connection.transaction()?;
        for (number, text) in texts {
            transaction.prepare_cached(INSERT)?.execute(rusqlite::params![number, text])?;
        }
        transaction.commit()?;
        Ok(())
    }

    pub(crate) fn numbers(&self, words: &str, repeat: Repeat) -> Result<(usize, Vec<f64>)> {
        self.search(NUMBERS, words, repeat, |row| row.get_ref(0)?.as_i64().map(drop).map_err(Into::into))
    }

    pub(crate) fn best(&self, words: &str, repeat: Repeat) -> Result<(usize, Vec<f64>)> {
        self.search(BEST, words, repeat, |row| row.get::<_, String>(0).map(drop))
    }

    fn search(
        &self,
        sql: &str,
        words: &str,
        repeat: Repeat,
        read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
    ) -> Result<(usize, Vec<f64>)> {
        let words: Vec<String> = words.split(' ').map(|word| format!("\"{word}\"")).collect();
        let pattern = words.join(" OR ");
        let (mut hits, mut latencies) = (0, Vec::new());
        let began = Instant::now();
        while repeat.should_continue(latencies.len(), began) {
            let call_began = Instant::now();
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([&pattern])?;
            hits = 0;
            while let Some(row) = rows.next()? {
                read(row)?;
                hits += 1;
            }
            latencies.push(call_began.elapsed().as_secs_f64());
        }
        Ok((hits, latencies))
    }
}
