//! A minimal implementation: one table with one row per message and one index, one transaction per turn.

use std::path::Path;

use anyhow::Result;
use rusqlite::{Connection, params};

use super::Floor;

pub(crate) const SCHEMA: &str = "\
CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, thread INTEGER, seq INTEGER, role TEXT, body TEXT);
CREATE INDEX IF NOT EXISTS messages_by_thread ON messages (thread, seq);";

const LAST: &str = "SELECT coalesce(max(seq), 0) FROM messages WHERE thread = ?1";
const INSERT: &str = "INSERT INTO messages (thread, seq, role, body) VALUES (?1, ?2, ?3, ?4)";
const NEWEST: &str = "SELECT role, body FROM messages WHERE thread = ?1 ORDER BY seq DESC LIMIT ?2";
const PAGE: &str = "SELECT seq, role, body FROM messages WHERE thread = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3";
const DELETE: &str = "DELETE FROM messages WHERE thread = ?1";

pub(crate) const STATEMENTS: [&str; 5] = [LAST, INSERT, NEWEST, PAGE, DELETE];

#[derive(Debug)]
pub(crate) struct Raw {
    connection: Connection,
    threads: i64,
}

impl Raw {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self { connection: super::open(path, SCHEMA)?, threads: 0 })
    }

    fn insert(&self, thread: i64, pool: &[String], start: u64, count: u64) -> Result<()> {
        let last: i64 = self.connection.prepare_cached(LAST)?.query_row([thread], |row| row.get(0))?;
        let mut insert = self.connection.prepare_cached(INSERT)?;
        for (index, seq) in (start..start + count).zip(last + 1..) {
            let role = if index.is_multiple_of(2) { "user" } else { "assistant" };
            insert.execute(params![thread, seq, role, pool[(index % pool.len() as u64) as usize]])?;
        }
        Ok(())
    }
}

impl Floor for Raw {
    fn open_thread(&mut self) -> Result<i64> {
        self.threads += 1;
        Ok(self.threads)
    }

    fn append(&mut self, thread: i64, pool: &[String], start: u64, count: u64) -> Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        self.insert(thread, pool, start, count)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn append_turns(&mut self, threads: &[i64], pool: &[String], start: u64) -> Result<()> {
        self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        for thread in threads {
            self.insert(*thread, pool, start, 2)?;
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    fn load(&mut self, thread: i64, count: usize) -> Result<Vec<String>> {
        let mut statement = self.connection.prepare_cached(NEWEST)?;
        let mut rows = statement.query(params![thread, count as i64])?;
        let mut texts = Vec::with_capacity(count);
        while let Some(row) = rows.next()? {
            row.get_ref(0)?.as_str()?;
            texts.push(row.get(1)?);
        }
        texts.reverse();
        Ok(texts)
    }

    fn page(&mut self, thread: i64, before: i64, size: usize) -> Result<(usize, i64)> {
        let mut statement = self.connection.prepare_cached(PAGE)?;
        let mut rows = statement.query(params![thread, before, size as i64])?;
        let (mut texts, mut first) = (Vec::with_capacity(size), 0);
        while let Some(row) = rows.next()? {
            first = row.get(0)?;
            row.get_ref(1)?.as_str()?;
            texts.push(row.get::<_, String>(2)?);
        }
        Ok((texts.len(), first))
    }

    fn delete(&mut self, thread: i64) -> Result<()> {
        self.connection.prepare_cached(DELETE)?.execute([thread])?;
        Ok(())
    }
}
