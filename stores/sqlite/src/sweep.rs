//! Removes what is over, and every byte that was only taken out of sight.

use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};
use threadkeep_core::{Result, StoreError, SweepReport, Timestamp};

use crate::changes::window_start;
use crate::connection::{Shared, lock};
use crate::error;
use crate::index::{self, Place};
use crate::residue::{self, Residue};
use crate::{row, scrub, threads, writer};

/// Rows removed under one lock.
const STEP: usize = 200;
/// Rows looked at in one read.
const LOOK: i64 = 10_000;

pub(crate) fn sweep(shared: &Shared, now: Timestamp) -> Result<SweepReport> {
    let mut report = SweepReport { expired_threads: remove_expired_threads(shared, now)?, ..SweepReport::default() };
    let micros = now.as_micros();
    report.expired_records = writer::write_blocking(shared, |connection| {
        let removed = connection.execute("DELETE FROM documents WHERE expires_at <= ?1", [micros])? as u64;
        if removed > 0 {
            residue::note(connection, Residue::Pages)?;
        }
        Ok(removed)
    })?;
    report.commit_records = remove_old_commits(shared, window_start(now))?;
    report.deleted_ids = forget_deleted(shared, window_start(now))?;
    loop {
        let step = remove_leftovers(shared, STEP)?;
        report.leftover_messages += step.messages;
        if !step.more {
            break;
        }
    }
    residue::remove(shared, Residue::Index, index::purge)?;
    residue::remove(shared, Residue::Pages, scrub::scrub)?;
    empty_write_ahead_log(shared)?;
    Ok(report)
}

fn remove_expired_threads(shared: &Shared, now: Timestamp) -> Result<u64> {
    let mut removed = 0;
    loop {
        let count = writer::write_blocking(shared, |connection| {
            let sql = "SELECT no FROM threads WHERE expires_at <= ?1 LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let expired = statement
                .query_map(params![now.as_micros(), STEP as i64], |row| row.get(0))?
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

/// Walks the change log and shortens each thread's from its old end.
fn remove_old_commits(shared: &Shared, before: i64) -> Result<u64> {
    let (mut removed, mut cursor) = (0, 0);
    loop {
        let rows = shared.read(|connection| {
            let sql = "SELECT position, at FROM commits WHERE position > ?1 ORDER BY position LIMIT ?2";
            let mut statement = connection.prepare_cached(sql)?;
            let rows = statement.query_map(params![cursor, LOOK], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<Vec<(i64, i64)>, _>>()?)
        })?;
        let Some((last, _)) = rows.last() else { return Ok(removed) };
        cursor = *last;
        let old: Vec<i64> = rows.iter().filter(|(_, at)| *at <= before).map(|(key, _)| *key).collect();
        for step in old.chunks(STEP) {
            removed += writer::write_blocking(shared, |connection| remove_commits(connection, step))?;
        }
    }
}

fn remove_commits(connection: &Connection, keys: &[i64]) -> error::Result<u64> {
    for key in keys {
        connection.prepare_cached("DELETE FROM commits WHERE position = ?1")?.execute([key])?;
        let sql = "UPDATE threads SET log_from = max(log_from, ?2) WHERE no = ?1";
        connection.prepare_cached(sql)?.execute(params![row::thread_no(*key), row::position(*key) as i64])?;
    }
    Ok(keys.len() as u64)
}

fn forget_deleted(shared: &Shared, before: i64) -> Result<u64> {
    writer::write_blocking(shared, |connection| {
        let sql = "SELECT max(stamp) FROM deleted_threads WHERE deleted_at <= ?1";
        let stamp: Option<i64> = connection.query_row(sql, [before], |row| row.get(0))?;
        let Some(stamp) = stamp else { return Ok(0) };
        // Cursors from before the forgotten deletions can no longer be told of them.
        let sql = "INSERT INTO marks (name, value) VALUES ('forgotten_stamp', ?1) \
                   ON CONFLICT DO UPDATE SET value = max(value, excluded.value)";
        connection.execute(sql, [stamp])?;
        Ok(connection.execute("DELETE FROM deleted_threads WHERE deleted_at <= ?1", [before])? as u64)
    })
}

/// What one step of removing leftovers did.
pub(crate) struct LeftoverStep {
    pub(crate) messages: u64,
    pub(crate) more: bool,
}

/// Removes at most `limit` rows of what trims and deletions left behind.
pub(crate) fn remove_leftovers(shared: &Shared, limit: usize) -> Result<LeftoverStep> {
    let nothing = LeftoverStep { messages: 0, more: false };
    let sql = "SELECT thread_no FROM leftovers LIMIT 1";
    if !shared.read(|connection| Ok(connection.prepare_cached(sql)?.exists([])?))? {
        return Ok(nothing);
    }
    writer::write_blocking(shared, |connection| {
        let sql = "SELECT thread_no, owner_no, tenant_no, below FROM leftovers LIMIT 1";
        let leftover = connection
            .prepare_cached(sql)?
            .query_row([], |row| {
                let place = Place { thread_no: row.get(0)?, owner_no: row.get(1)?, tenant_no: row.get(2)? };
                Ok((place, row.get::<_, Option<i64>>(3)?))
            })
            .optional()?;
        match leftover {
            Some((place, below)) => remove_leftover(connection, &place, below, limit),
            None => Ok(nothing),
        }
    })
}

fn remove_leftover(
    connection: &Connection,
    place: &Place,
    below: Option<i64>,
    limit: usize,
) -> error::Result<LeftoverStep> {
    let end = below.map_or(row::last_key(place.thread_no), |below| row::key(place.thread_no, below.unsigned_abs()) - 1);
    let sql = "SELECT position FROM messages WHERE position BETWEEN ?1 AND ?2 LIMIT ?3";
    let mut statement = connection.prepare_cached(sql)?;
    let keys = statement
        .query_map(params![row::key(place.thread_no, 0), end, limit as i64], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    keys.iter().try_for_each(|key| index::remove_message(connection, place, row::position(*key)))?;
    let messages = keys.len() as u64;
    if keys.len() == limit {
        return Ok(LeftoverStep { messages, more: true });
    }
    if below.is_none() {
        let sql = "DELETE FROM commits WHERE position IN \
                   (SELECT position FROM commits WHERE position BETWEEN ?1 AND ?2 LIMIT ?3)";
        let bound = (limit * 10) as i64;
        let range = params![row::key(place.thread_no, 0), row::last_key(place.thread_no), bound];
        if connection.prepare_cached(sql)?.execute(range)? as i64 == bound {
            return Ok(LeftoverStep { messages, more: true });
        }
        connection.prepare_cached("DELETE FROM indexed WHERE thread_no = ?1")?.execute([place.thread_no])?;
    }
    connection.prepare_cached("DELETE FROM leftovers WHERE thread_no = ?1")?.execute([place.thread_no])?;
    Ok(LeftoverStep { messages, more: true })
}

/// Moves everything into the database file and leaves the log empty: old page images still hold erased text. Where a reader
/// of an older state keeps it from that, the keeper of any process that has the file open does it later.
pub(crate) fn empty_write_ahead_log(shared: &Shared) -> Result<()> {
    if checkpoint(&lock(&shared.writer))? {
        return residue::forget_log(shared, residue::noted_log(shared)?);
    }
    residue::note_log(shared)?;
    Err(StoreError::unavailable(threadkeep_core::Reason::Busy))
}

/// Empties the log that a sweep had to leave, without waiting for anybody. Says whether nothing is left to do.
pub(crate) fn finish_write_ahead_log(shared: &Shared) -> Result<bool> {
    let noted = residue::noted_log(shared)?;
    if noted == 0 {
        return Ok(true);
    }
    {
        // Whoever writes now is not held up; this is tried again.
        let Ok(connection) = shared.writer.try_lock() else { return Ok(false) };
        connection.busy_timeout(Duration::ZERO).map_err(error::SqliteError::from)?;
        let is_empty = checkpoint(&connection);
        connection.busy_timeout(shared.options.busy_timeout).map_err(error::SqliteError::from)?;
        if !is_empty? {
            return Ok(false);
        }
    }
    residue::forget_log(shared, noted)?;
    Ok(true)
}

/// Copies the log into the database file and truncates it. `false` where a reader or writer is in the way.
fn checkpoint(connection: &Connection) -> Result<bool> {
    let is_busy = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0));
    Ok(!is_busy.map_err(error::SqliteError::from)?)
}
