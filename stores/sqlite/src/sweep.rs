//! Removes expired and deleted data, including every byte that a deletion left behind in the file.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::{Result, StoreError, SweepReport, Timestamp};

use crate::changes::window_start;
use crate::connection::{Shared, lock};
use crate::error;
use crate::index::{self, ThreadNumbers};
use crate::residue::{self, Residue};
use crate::{row, scrub, threads, writer};

/// The maximum number of rows removed in one transaction.
const ROWS_PER_STEP: usize = 200;
/// The number of rows scanned in one read.
const SCAN_ROWS: i64 = 10_000;

pub(crate) fn sweep(shared: &Shared, now: Timestamp) -> Result<SweepReport> {
    let mut report = SweepReport { expired_threads: remove_expired_threads(shared, now)?, ..SweepReport::default() };
    let micros = now.as_micros();
    report.expired_records = writer::write_blocking(shared, |connection| {
        let removed = connection.execute("DELETE FROM documents WHERE expires_at <= ?1", [micros])? as u64;
        if removed > 0 {
            residue::record(connection, Residue::Pages)?;
        }
        Ok(removed)
    })?;
    report.commit_records = remove_old_commits(shared, window_start(now))?;
    report.deleted_ids = remove_old_deletions(shared, window_start(now))?;
    loop {
        let step = remove_leftovers(shared, ROWS_PER_STEP)?;
        report.leftover_messages += step.messages;
        if !step.may_have_more {
            break;
        }
    }
    residue::remove(shared, Residue::Index, index::purge)?;
    residue::remove(shared, Residue::Pages, scrub::scrub)?;
    truncate_wal(shared)?;
    Ok(report)
}

fn remove_expired_threads(shared: &Shared, now: Timestamp) -> Result<u64> {
    let mut removed = 0;
    loop {
        let count = writer::write_blocking(shared, |connection| {
            let sql = "SELECT no FROM threads WHERE expires_at <= ?1 LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let expired = statement
                .query_map(params![now.as_micros(), ROWS_PER_STEP as i64], |row| row.get(0))?
                .collect::<Result<Vec<i64>, _>>()?;
            expired.iter().try_for_each(|thread_no| threads::remove(connection, *thread_no))?;
            Ok(expired.len() as u64)
        })?;
        removed += count;
        if count == 0 {
            return Ok(removed);
        }
    }
}

/// Removes the entries of the change log that are not newer than `before`.
fn remove_old_commits(shared: &Shared, before: i64) -> Result<u64> {
    let (mut removed, mut cursor) = (0, 0);
    loop {
        let rows = shared.read(|connection| {
            let sql = "SELECT position, at FROM commits WHERE position > ?1 ORDER BY position LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![cursor, SCAN_ROWS], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<Vec<(i64, i64)>, _>>()?)
        })?;
        let Some((last_key, _)) = rows.last() else { return Ok(removed) };
        cursor = *last_key;
        let old: Vec<i64> = rows.iter().filter(|(_, at)| *at <= before).map(|(key, _)| *key).collect();
        for step in old.chunks(ROWS_PER_STEP) {
            removed += writer::write_blocking(shared, |connection| remove_commits(connection, step))?;
        }
    }
}

fn remove_commits(connection: &Connection, keys: &[i64]) -> error::Result<u64> {
    for key in keys {
        connection.prepare_cached("DELETE FROM commits WHERE position = ?1")?.execute([key])?;
        // `log_from` is the last change whose log entry was removed.
        let sql = "UPDATE threads SET log_from = max(log_from, ?2) WHERE no = ?1";
        connection
            .prepare_cached(sql)?
            .execute(params![row::thread_no_of_key(*key), row::position_of_key(*key) as i64])?;
    }
    Ok(keys.len() as u64)
}

fn remove_old_deletions(shared: &Shared, before: i64) -> Result<u64> {
    writer::write_blocking(shared, |connection| {
        let sql = "SELECT max(stamp) FROM deleted_threads WHERE deleted_at <= ?1";
        let stamp: Option<i64> = connection.query_row(sql, [before], |row| row.get(0))?;
        let Some(stamp) = stamp else { return Ok(0) };
        // `forgotten_stamp` is the stamp of the last deletion that was removed. Clients cannot continue from a cursor before it.
        let sql = "INSERT INTO marks (name, value) VALUES ('forgotten_stamp', ?1) \
                   ON CONFLICT DO UPDATE SET value = max(value, excluded.value)";
        connection.execute(sql, [stamp])?;
        Ok(connection.execute("DELETE FROM deleted_threads WHERE deleted_at <= ?1", [before])? as u64)
    })
}

/// The outcome of one step of removing leftovers.
pub(crate) struct LeftoverStep {
    pub(crate) messages: u64,
    pub(crate) may_have_more: bool,
}

/// Removes at most `limit` messages that trims and deletions have left to the sweep.
pub(crate) fn remove_leftovers(shared: &Shared, limit: usize) -> Result<LeftoverStep> {
    let done = LeftoverStep { messages: 0, may_have_more: false };
    let sql = "SELECT thread_no FROM leftovers LIMIT 1";
    if !shared.read(|connection| Ok(connection.prepare_cached(sql)?.exists([])?))? {
        return Ok(done);
    }
    writer::write_blocking(shared, |connection| {
        let sql = "SELECT thread_no, owner_no, tenant_no, below FROM leftovers LIMIT 1";
        let leftover = connection
            .prepare_cached(sql)?
            .query_row([], |row| {
                let numbers = ThreadNumbers { thread_no: row.get(0)?, owner_no: row.get(1)?, tenant_no: row.get(2)? };
                Ok((numbers, row.get::<_, Option<i64>>(3)?))
            })
            .optional()?;
        match leftover {
            Some((numbers, below)) => remove_leftover(connection, &numbers, below, limit),
            None => Ok(done),
        }
    })
}

fn remove_leftover(
    connection: &Connection,
    numbers: &ThreadNumbers,
    below: Option<i64>,
    limit: usize,
) -> error::Result<LeftoverStep> {
    let thread_no = numbers.thread_no;
    let end = below.map_or(row::last_key(thread_no), |below| row::key(thread_no, below.unsigned_abs()) - 1);
    let sql = "SELECT position FROM messages WHERE position BETWEEN ?1 AND ?2 LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let keys = statement
        .query_map(params![row::key(thread_no, 0), end, limit as i64], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    keys.iter().try_for_each(|key| index::remove_message(connection, numbers, row::position_of_key(*key)))?;
    let messages = keys.len() as u64;
    if keys.len() == limit {
        return Ok(LeftoverStep { messages, may_have_more: true });
    }
    if below.is_none() {
        let sql = "DELETE FROM commits WHERE position IN \
                   (SELECT position FROM commits WHERE position BETWEEN ?1 AND ?2 LIMIT ?3)";
        let commit_limit = (limit * 10) as i64;
        let range = params![row::key(thread_no, 0), row::last_key(thread_no), commit_limit];
        if connection.prepare_cached(sql)?.execute(range)? as i64 == commit_limit {
            return Ok(LeftoverStep { messages, may_have_more: true });
        }
        connection.prepare_cached("DELETE FROM indexed WHERE thread_no = ?1")?.execute([thread_no])?;
    }
    connection.prepare_cached("DELETE FROM leftovers WHERE thread_no = ?1")?.execute([thread_no])?;
    Ok(LeftoverStep { messages, may_have_more: true })
}

/// Checkpoints and truncates the write-ahead log, because old page images in it still contain erased text. Fails with `Busy` if a
/// reader of an older snapshot prevents this; the background thread of any process that has the file open then truncates it later.
pub(crate) fn truncate_wal(shared: &Shared) -> Result<()> {
    if checkpoint(&lock(&shared.writer))? {
        return residue::clear_wal_failures(shared, residue::count_wal_failures(shared)?);
    }
    residue::record_wal_failure(shared)?;
    Err(StoreError::unavailable(threadkeep_core::Reason::Busy))
}

/// Truncates the write-ahead log if a sweep could not, without waiting for locks. Returns whether nothing is left to do.
pub(crate) fn finish_wal_truncation(shared: &Shared) -> Result<bool> {
    let failures = residue::count_wal_failures(shared)?;
    if failures == 0 {
        return Ok(true);
    }
    {
        // Does not wait for a write in progress; the caller retries later.
        let Ok(connection) = shared.writer.try_lock() else { return Ok(false) };
        connection.busy_timeout(Duration::ZERO).map_err(error::SqliteError::from)?;
        let is_truncated = checkpoint(&connection);
        connection.busy_timeout(shared.options.busy_timeout).map_err(error::SqliteError::from)?;
        if !is_truncated? {
            return Ok(false);
        }
    }
    residue::clear_wal_failures(shared, failures)?;
    Ok(true)
}

/// Copies the write-ahead log into the database file and truncates it. Returns `false` if a reader or writer prevents it.
fn checkpoint(connection: &Connection) -> Result<bool> {
    let is_busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    Ok(!is_busy.map_err(error::SqliteError::from)?)
}
