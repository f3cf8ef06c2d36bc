//! Commits to a thread: one call of `threadkeep.commit`, which makes all checks before the first write.

mod call;

use std::sync::Arc;

use threadkeep_core::{
    Batch, CommitOutcome, Conflict, Expected, Kind, RecordName, Result, Scope, StoreError, ThreadId, Timestamp, limits,
};
use tokio_postgres::Row;

use crate::commit_batcher;
use crate::error::{self, PostgresError};
use crate::pool::{Parameter, Shared};
use crate::row::{self, get, unsigned};
use crate::threads;

pub(crate) use call::CommitCall;
use call::SQL;

/// The maximum number of attempts. An attempt fails if a concurrent commit changes the data from which a patch or a replacement
/// is computed.
const MAX_ATTEMPTS: usize = 100;

pub(crate) async fn commit(
    shared: &Arc<Shared>,
    scope: &Scope,
    thread: ThreadId,
    batch: Batch,
    now: Timestamp,
) -> Result<CommitOutcome> {
    let mut call = Arc::new(CommitCall::new(scope, thread, batch, now)?);
    for _ in 0..MAX_ATTEMPTS {
        let row = commit_batcher::call(shared, &call).await?;
        let outcome: String = get(&row, 0)?;
        match outcome.as_str() {
            "done" | "replayed" => {
                let outcome = CommitOutcome {
                    change: unsigned(&row, 1)?,
                    tag: row::tag(&row, 8)?,
                    first_seq: unsigned(&row, 2)?,
                    count: unsigned(&row, 3)?,
                    replayed: outcome == "replayed",
                };
                if !outcome.replayed && !call.batch.is_empty() {
                    threads::wake(shared, scope, &row::owner(get(&row, 6)?)?, thread, Some(outcome.change));
                }
                return Ok(outcome);
            }
            "words" => Arc::make_mut(&mut call).patch_body(get(&row, 7)?)?,
            "replaced" => Arc::make_mut(&mut call).set_replacement_checksums(get(&row, 7)?)?,
            _ => return Err(rejection(&outcome, &row, &call.batch)?),
        }
    }
    Err(StoreError::unavailable(threadkeep_core::Reason::Busy))
}

/// Whether the commit was not executed because another transaction had locked the thread.
pub(crate) fn is_locked(row: &Row) -> bool {
    get::<&str>(row, 0).is_ok_and(|outcome| outcome == "locked")
}

/// Converts the outcome of a rejected commit into an error.
fn rejection(outcome: &str, row: &Row, batch: &Batch) -> Result<StoreError, PostgresError> {
    let index = || -> Result<usize, PostgresError> { Ok(get::<i32>(row, 4)?.unsigned_abs() as usize - 1) };
    Ok(match outcome {
        "thread" => StoreError::NotFound(Kind::Thread),
        "denied" => StoreError::Denied("changing a shared thread other than by adding messages"),
        "key" => Conflict::IdempotencyKey.into(),
        "seq" | "change" => {
            let actual = row::tagged(row, get(row, 5)?, 8)?;
            match batch.expected {
                Some(Expected::Seq(expected)) => Conflict::Seq { expected, actual: actual.number }.into(),
                Some(Expected::Change(expected)) => Conflict::Change { expected, actual }.into(),
                None => StoreError::corrupt("query result", "a conflict without an expected position"),
            }
        }
        "document" => {
            let RecordName { namespace, key } = batch.require[index()?].name.clone();
            let actual: Option<i64> = get(row, 5)?;
            let actual = actual.map(|actual| row::tagged(row, actual, 8)).transpose()?;
            Conflict::Record { namespace, key, actual }.into()
        }
        "message_id" => Conflict::MessageId { id: batch.append[index()?].id, seq: unsigned(row, 5)? }.into(),
        "external_id" => Conflict::ExternalId { seq: unsigned(row, 5)? }.into(),
        "message" => StoreError::NotFound(Kind::Message),
        "trim" => StoreError::invalid("trim_below", "beyond the end of the thread"),
        "positions" => StoreError::LimitExceeded {
            limit: "positions of a thread",
            max: limits::LAST_POSITION,
            actual: unsigned(row, 5)?,
        },
        _ => StoreError::corrupt("query result", "unknown outcome"),
    })
}

/// Executes one call in a separate transaction. If another transaction has locked the thread, waits for the lock only
/// if `waits` is true.
pub(crate) async fn execute_alone(shared: &Shared, call: &CommitCall, waits: bool) -> Result<Row> {
    let rows = shared.write(SQL, &call.parameters(&waits, &call.is_deferred())).await?;
    rows.into_iter().next().ok_or_else(|| StoreError::corrupt("query result", "no row"))
}

/// Executes several calls in one transaction, atomically.
pub(crate) async fn execute_batch(shared: &Shared, calls: &[Arc<CommitCall>]) -> error::Result<Vec<Row>> {
    // One commit that is not deferred makes the whole transaction wait for the disk.
    let is_deferred = calls.iter().all(|call| call.is_deferred());
    let values: Vec<_> = calls.iter().map(|call| call.parameters(&false, &is_deferred)).collect();
    let values: Vec<&[Parameter<'_>]> = values.iter().map(Vec::as_slice).collect();
    shared.write_batch(SQL, &values).await
}
