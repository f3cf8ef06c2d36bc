//! The engine's SQL statements without the engine: the same columns and encoded content, single-threaded.

use std::path::Path;

use anyhow::Result;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, params};
use threadkeep_core::{Content, MessageId, Role, Timestamp, codec};

use super::Floor;
use crate::random::Random;

pub(crate) const SCHEMA: &str = include_str!("../../../stores/sqlite/src/schema/001_first.sql");

const THREAD: &str = "SELECT no, owner_no, tenant_no, seq, change, first_seq, log_from, message_count FROM threads \
    WHERE tenant_no = ?1 AND id = ?2 AND restoring = 0 AND (expires_at IS NULL OR expires_at > ?3)";
const REPLAYED: &str = "SELECT position, at, fingerprint, first_seq, count FROM commits \
    WHERE position >> 32 = ?1 AND key = ?2 ORDER BY position DESC LIMIT 1";
const IS_TAKEN: &str = "SELECT position FROM messages WHERE position >> 32 = ?1 AND id = ?2";
const INSERT: &str = "INSERT INTO messages (position, id, role, revision, created_at, external_id, body) \
    VALUES (?1, ?2, ?3, 0, ?4, ?5, ?6)";
const LOG: &str = "INSERT INTO commits (position, at, key, fingerprint, first_seq, count, effects) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
const STAMP: &str = "SELECT 1 + max(coalesce((SELECT max(stamp) FROM threads), 0), \
    coalesce((SELECT value FROM marks WHERE name = 'stamp'), 0))";
const ADVANCE: &str = "UPDATE threads SET seq = ?2, change = ?3, first_seq = ?4, message_count = ?5, stamp = ?6, \
    updated_at = max(updated_at, ?7) WHERE no = ?1";
const PAGE: &str = "SELECT position, id, external_id, revision, created_at, body FROM messages \
    WHERE position BETWEEN ?1 AND ?2 AND body IS NOT NULL ORDER BY position DESC LIMIT ?3";
const LEFTOVER: &str = "INSERT OR REPLACE INTO leftovers (thread_no, owner_no, tenant_no, below) \
    SELECT no, owner_no, tenant_no, NULL FROM threads WHERE no = ?1";
const DELETED: &str = "INSERT OR REPLACE INTO deleted_threads (tenant_no, id, owner_no, stamp, deleted_at) \
    SELECT tenant_no, id, owner_no, ?2, ?3 FROM threads WHERE no = ?1";
const DELETE: &str = "DELETE FROM threads WHERE no = ?1";

pub(crate) const STATEMENTS: [&str; 11] =
    [THREAD, REPLAYED, IS_TAKEN, INSERT, LOG, STAMP, ADVANCE, PAGE, LEFTOVER, DELETED, DELETE];

const TENANT_NUMBER: i64 = 1;
const OWNER_NUMBER: i64 = 2;

#[derive(Debug)]
pub(crate) struct Same {
    connection: Connection,
    random: Random,
    threads: i64,
}

/// The thread's row, which every call on a thread reads first.
struct ThreadRow {
    row_number: i64,
    seq: i64,
    change: i64,
    first_seq: i64,
    message_count: i64,
}

impl Same {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let connection = super::open(path, SCHEMA)?;
        connection.pragma_update(None, "secure_delete", true)?;
        // The engine's connections have the same settings: this checkpoint interval, and no recompilation of statements
        // when values are bound.
        connection.pragma_update(None, "wal_autocheckpoint", 4_000)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.execute_batch("INSERT INTO owners VALUES (1, 'bench', ''), (2, 'bench', 'user')")?;
        Ok(Self { connection, random: Random::new(1), threads: 0 })
    }

    fn id(&mut self) -> [u8; 16] {
        let (first, second) = (self.random.next().to_be_bytes(), self.random.next().to_be_bytes());
        let mut random = [0; 10];
        random[..8].copy_from_slice(&first);
        random[8..].copy_from_slice(&second[..2]);
        MessageId::v7(now(), random).0.into_bytes()
    }

    fn thread_id(number: i64) -> [u8; 16] {
        (number as u128).to_be_bytes()
    }

    fn thread(&self, number: i64) -> Result<ThreadRow> {
        let key = params![TENANT_NUMBER, Self::thread_id(number), now().as_micros()];
        Ok(self.connection.prepare_cached(THREAD)?.query_row(key, |row| {
            Ok(ThreadRow {
                row_number: row.get(0)?,
                seq: row.get(3)?,
                change: row.get(4)?,
                first_seq: row.get(5)?,
                message_count: row.get(7)?,
            })
        })?)
    }

    fn commit(&mut self, number: i64, pool: &[String], start: u64, count: u64) -> Result<()> {
        let at = now();
        let key = self.id();
        let mut messages = Vec::with_capacity(count as usize);
        for index in start..start + count {
            let role = if index.is_multiple_of(2) { Role::User } else { Role::Assistant };
            let content = Content::text(role, pool[(index % pool.len() as u64) as usize].as_str());
            messages.push((self.id(), role, codec::encode_content(&content)?));
        }
        let thread = self.thread(number)?;
        let connection = &self.connection;
        anyhow::ensure!(
            !connection.prepare_cached(REPLAYED)?.exists(params![thread.row_number, key])?,
            "duplicate key"
        );
        for (id, ..) in &messages {
            anyhow::ensure!(
                !connection.prepare_cached(IS_TAKEN)?.exists(params![thread.row_number, id])?,
                "duplicate id"
            );
        }
        let mut insert = connection.prepare_cached(INSERT)?;
        for ((id, role, body), seq) in messages.iter().zip(thread.seq + 1..) {
            let role = if *role == Role::User { 1 } else { 2 };
            let position = thread.row_number << 32 | seq;
            insert.execute(params![position, id, role, at.as_micros(), None::<&str>, body])?;
        }
        let change = thread.change + 1;
        let position = thread.row_number << 32 | change;
        let log = params![position, at.as_micros(), key, 0, thread.seq + 1, count as i64, None::<&str>];
        connection.prepare_cached(LOG)?.execute(log)?;
        let stamp: i64 = connection.prepare_cached(STAMP)?.query_row([], |row| row.get(0))?;
        connection.prepare_cached(ADVANCE)?.execute(params![
            thread.row_number,
            thread.seq + count as i64,
            change,
            thread.first_seq,
            thread.message_count + count as i64,
            stamp,
            at.as_micros(),
        ])?;
        Ok(())
    }

    /// Reads and decodes rows. Returns the texts, newest first, and the position of the oldest one.
    fn read(&self, first: i64, last: i64, limit: usize) -> Result<(Vec<String>, i64)> {
        let mut statement = self.connection.prepare_cached(PAGE)?;
        let mut rows = statement.query(params![first, last, limit as i64])?;
        let (mut texts, mut position) = (Vec::with_capacity(limit), 0);
        while let Some(row) = rows.next()? {
            position = row.get(0)?;
            row.get_ref(1)?.as_blob()?;
            row.get::<_, Option<String>>(2)?;
            row.get::<_, i64>(3)?;
            row.get::<_, i64>(4)?;
            let content = codec::decode_content(row.get_ref(5)?.as_str()?)?;
            texts.push(content.plain_text().into_owned());
        }
        Ok((texts, position & 0xffff_ffff))
    }

    fn in_transaction<T>(&mut self, begin: &str, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.connection.prepare_cached(begin)?.execute([])?;
        let value = work(self)?;
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(value)
    }
}

impl Floor for Same {
    fn open_thread(&mut self) -> Result<i64> {
        self.threads += 1;
        let number = self.threads;
        let sql = "INSERT INTO threads (tenant_no, owner_no, id, seq, change, first_seq, log_from, message_count, stamp, \
                   restoring, created_at, updated_at, expires_at, key, body) \
                   VALUES (?1, ?2, ?3, 0, 0, 1, 0, 0, ?4, 0, ?5, ?5, NULL, ?6, '1{\"title\":\"as many others\"}')";
        let (id, key, at) = (Self::thread_id(number), format!("thread {number}"), now().as_micros());
        self.connection.prepare_cached(sql)?.execute(params![TENANT_NUMBER, OWNER_NUMBER, id, number, at, key])?;
        Ok(number)
    }

    fn append(&mut self, thread: i64, pool: &[String], start: u64, count: u64) -> Result<()> {
        self.in_transaction("BEGIN IMMEDIATE", |this| this.commit(thread, pool, start, count))
    }

    fn append_turns(&mut self, threads: &[i64], pool: &[String], start: u64) -> Result<()> {
        self.in_transaction("BEGIN IMMEDIATE", |this| {
            threads.iter().try_for_each(|thread| this.commit(*thread, pool, start, 2))
        })
    }

    fn load(&mut self, thread: i64, count: usize) -> Result<Vec<String>> {
        self.in_transaction("BEGIN", |this| {
            let thread = this.thread(thread)?;
            let base = thread.row_number << 32;
            let (mut texts, _) = this.read(base | thread.first_seq, base | thread.seq, count + 1)?;
            texts.truncate(count);
            texts.reverse();
            Ok(texts)
        })
    }

    fn page(&mut self, thread: i64, before: i64, size: usize) -> Result<(usize, i64)> {
        self.in_transaction("BEGIN", |this| {
            let thread = this.thread(thread)?;
            let base = thread.row_number << 32;
            let (texts, first) = this.read(base | thread.first_seq, base | (before - 1).min(thread.seq), size)?;
            Ok((texts.len(), first))
        })
    }

    fn delete(&mut self, thread: i64) -> Result<()> {
        self.in_transaction("BEGIN IMMEDIATE", |this| {
            let thread = this.thread(thread)?;
            let stamp: i64 = this.connection.prepare_cached(STAMP)?.query_row([], |row| row.get(0))?;
            let deleted = params![thread.row_number, stamp, now().as_micros()];
            this.connection.prepare_cached(DELETED)?.execute(deleted)?;
            this.connection.prepare_cached(LEFTOVER)?.execute([thread.row_number])?;
            this.connection.prepare_cached(DELETE)?.execute([thread.row_number])?;
            Ok(())
        })
    }
}

fn now() -> Timestamp {
    threadkeep_core::Clock::now(&threadkeep_memory::SystemClock)
}
