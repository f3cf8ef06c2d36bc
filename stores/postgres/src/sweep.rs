//! Removes expired and deleted data in bounded steps, each in its own transaction.

use threadkeep_core::{Result, SweepReport, Timestamp};
use tokio_postgres::types::Type;

use crate::error::{self, PostgresError};
use crate::pool::{Caller, Parameter, Shared};
use crate::row::get;
use crate::threads::IDEMPOTENCY_WINDOW_MICROS;

/// The maximum number of rows removed in one transaction.
const STEP: i64 = 1_000;

pub(crate) async fn sweep(shared: &Shared, now: Timestamp) -> Result<SweepReport> {
    let now = now.as_micros();
    let before = now.saturating_sub(IDEMPOTENCY_WINDOW_MICROS);
    let mut report = SweepReport {
        expired_threads: repeat(shared, EXPIRED_THREADS, now).await?,
        expired_records: repeat(shared, EXPIRED_RECORDS, now).await?
            + repeat(shared, EXPIRED_THREAD_RECORDS, now).await?,
        commit_records: remove_old_commits(shared, before).await?,
        deleted_ids: repeat(shared, DELETED_IDS, before).await?,
        leftover_messages: 0,
    };
    loop {
        let step = remove_leftovers(shared, STEP as usize).await?;
        report.leftover_messages += step.messages;
        if !step.more {
            return Ok(report);
        }
    }
}

// The parameters of each statement are a time and the maximum number of rows. Its result is the number of removed rows.
const EXPIRED_THREADS: &str = "WITH over AS (SELECT no FROM threadkeep.threads WHERE expires_at <= $1 LIMIT $2 \
     FOR UPDATE SKIP LOCKED), removed AS (SELECT threadkeep.remove_thread(no) FROM over) SELECT count(*) FROM removed";
const EXPIRED_RECORDS: &str = "WITH removed AS (DELETE FROM threadkeep.documents WHERE ctid = ANY (ARRAY(SELECT ctid \
     FROM threadkeep.documents WHERE expires_at <= $1 LIMIT $2)) RETURNING 1) SELECT count(*) FROM removed";
const EXPIRED_THREAD_RECORDS: &str = "WITH removed AS (DELETE FROM threadkeep.thread_documents WHERE ctid = ANY (ARRAY( \
     SELECT ctid FROM threadkeep.thread_documents WHERE expires_at <= $1 LIMIT $2)) RETURNING 1) \
     SELECT count(*) FROM removed";
// A cursor that is older than a removed deletion can no longer be used: the next read with it returns a reset.
const DELETED_IDS: &str = "WITH removed AS (DELETE FROM threadkeep.deleted_threads WHERE ctid = ANY (ARRAY(SELECT ctid \
     FROM threadkeep.deleted_threads WHERE deleted_at <= $1 LIMIT $2)) RETURNING stamp), \
     forgotten AS (UPDATE threadkeep.marks SET value = greatest(value, (SELECT max(stamp) FROM removed)) \
     WHERE name = 'forgotten_stamp' AND EXISTS (SELECT 1 FROM removed)) SELECT count(*) FROM removed";

/// Runs a statement until it removes fewer than [`STEP`] rows. Returns the total number of removed rows.
async fn repeat(shared: &Shared, sql: &str, before: i64) -> Result<u64> {
    let mut removed = 0;
    loop {
        let values: [Parameter<'_>; 2] = [(&before, Type::INT8), (&STEP, Type::INT8)];
        let count = count(shared, sql, &values).await.map_err(PostgresError::into_write_error)?;
        removed += count.unsigned_abs();
        if count < STEP {
            return Ok(removed);
        }
    }
}

async fn count(shared: &Shared, sql: &str, values: &[Parameter<'_>]) -> error::Result<i64> {
    let counting = shared.transact(Caller::maintenance(), async |transaction| {
        let rows = transaction.query_typed(sql, values).await?;
        rows.first().map_or(Ok(0), |row| get(row, 0))
    });
    counting.await
}

/// Removes the oldest entries of each thread's change log. An old entry after a newer one stays, so that a log has no gaps.
async fn remove_old_commits(shared: &Shared, before: i64) -> Result<u64> {
    let find = "SELECT DISTINCT thread_no FROM threadkeep.commits WHERE at <= $1 AND thread_no > $2 \
                ORDER BY thread_no LIMIT $3";
    let remove = "WITH kept AS (SELECT min(change) AS first FROM threadkeep.commits WHERE thread_no = $2 AND at > $1), \
                  removed AS (DELETE FROM threadkeep.commits WHERE thread_no = $2 AND at <= $1 \
                  AND change < coalesce((SELECT first FROM kept), 9223372036854775807) RETURNING change), \
                  shortened AS (UPDATE threadkeep.threads SET log_from = (SELECT max(change) FROM removed) \
                  WHERE no = $2 AND EXISTS (SELECT 1 FROM removed)) SELECT count(*) FROM removed";
    let (mut removed, mut last) = (0, 0_i64);
    loop {
        let values: [Parameter<'_>; 3] = [(&before, Type::INT8), (&last, Type::INT8), (&STEP, Type::INT8)];
        let answers = shared.read(&Caller::maintenance(), &[(find, &values)]).await?;
        if answers[0].is_empty() {
            return Ok(removed);
        }
        for row in &answers[0] {
            last = get(row, 0)?;
            let values: [Parameter<'_>; 2] = [(&before, Type::INT8), (&last, Type::INT8)];
            removed += count(shared, remove, &values).await.map_err(PostgresError::into_write_error)?.unsigned_abs();
        }
    }
}

/// The outcome of one step of removing leftovers.
pub(crate) struct LeftoverStep {
    pub(crate) messages: u64,
    pub(crate) more: bool,
}

/// Removes at most `limit` messages that trims and deletions have left to the sweep.
pub(crate) async fn remove_leftovers(shared: &Shared, limit: usize) -> Result<LeftoverStep> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let removing = shared.transact(Caller::maintenance(), async |transaction| {
        let sql = "SELECT thread_no, below FROM threadkeep.leftovers LIMIT 1 FOR UPDATE SKIP LOCKED";
        let rows = transaction.query_typed(sql, &[]).await?;
        let Some(row) = rows.first() else { return Ok(LeftoverStep { messages: 0, more: false }) };
        let (thread_no, below): (i64, Option<i64>) = (get(row, 0)?, get(row, 1)?);
        let end = below.unwrap_or(i64::MAX);
        let values: [Parameter<'_>; 3] = [(&thread_no, Type::INT8), (&end, Type::INT8), (&limit, Type::INT8)];
        let mut is_done = true;
        let mut messages = 0;
        for table in ["messages", "message_terms"] {
            let sql = format!(
                "WITH removed AS (DELETE FROM threadkeep.{table} WHERE thread_no = $1 AND seq = ANY (ARRAY(SELECT seq \
                 FROM threadkeep.{table} WHERE thread_no = $1 AND seq < $2 ORDER BY seq LIMIT $3)) RETURNING 1) \
                 SELECT count(*) FROM removed"
            );
            let removed: i64 = get(&transaction.query_typed(&sql, &values).await?[0], 0)?;
            is_done &= removed < limit;
            messages = messages.max(removed.unsigned_abs());
        }
        if is_done && below.is_none() {
            let sql = "WITH removed AS (DELETE FROM threadkeep.commits WHERE thread_no = $1 AND change = ANY (ARRAY( \
                       SELECT change FROM threadkeep.commits WHERE thread_no = $1 AND $2 > 0 ORDER BY change LIMIT $3)) \
                       RETURNING 1) SELECT count(*) FROM removed";
            is_done &= get::<i64>(&transaction.query_typed(sql, &values).await?[0], 0)? < limit;
            transaction.query_typed("DELETE FROM threadkeep.indexed WHERE thread_no = $1", &values[..1]).await?;
        }
        if is_done {
            transaction.query_typed("DELETE FROM threadkeep.leftovers WHERE thread_no = $1", &values[..1]).await?;
        }
        Ok(LeftoverStep { messages, more: true })
    });
    removing.await.map_err(PostgresError::into_write_error)
}
