//! The search index of messages. It follows the change log off the commit path; a watermark records how far it has caught up.
//!
//! This module analyses the text of messages, as every store does, and stores the terms verbatim in a `tsvector`.
//! Messages are read and analysed without a lock; `threadkeep.index_messages` then writes the terms only if the thread
//! has not changed in the meantime.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use threadkeep_core::{CatchUp, StoreError, codec, text};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::collections;
use crate::error::{PostgresError, Result};
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{get, signed};

/// The maximum number of messages indexed in one transaction.
const STEP: usize = 1_000;
/// The maximum number of threads indexed in one transaction.
const MAX_THREADS: i64 = 200;
/// The advisory lock that serialises indexing. Advisory locks are per database.
const LOCK: i64 = 0x7468_6b70_0001;
/// The number of transactions after which the watermark is advanced even if there was nothing to index.
const WATERMARK_LAG: i64 = 10_000;

/// Messages of a thread that the index still lacks.
struct ThreadPortion {
    thread_no: i64,
    change: i64,
    /// The last position that is already indexed.
    indexed: i64,
    from: i64,
    through: i64,
    /// Whether the portion ends at the end of the thread.
    is_complete: bool,
}

/// Indexes approximately `limit` messages.
pub(crate) async fn catch_up(shared: &Shared, limit: usize) -> Result<CatchUp, StoreError> {
    let mut indexed = 0;
    loop {
        let step = STEP.min(limit.saturating_sub(usize::try_from(indexed).unwrap_or(usize::MAX)));
        if step == 0 {
            return Ok(CatchUp { indexed, done: false });
        }
        let outcome = index_batch(shared, step).await.map_err(PostgresError::into_write_error)?;
        indexed += outcome.messages;
        if outcome.is_complete {
            return Ok(CatchUp { indexed, done: true });
        }
        if outcome.messages == 0 && !outcome.has_progressed {
            return Ok(CatchUp { indexed, done: false });
        }
    }
}

struct BatchOutcome {
    messages: u64,
    /// Whether the next batch will differ from this one, because a thread was indexed or has changed in the meantime.
    has_progressed: bool,
    /// Whether everything is indexed.
    is_complete: bool,
}

async fn index_batch(shared: &Shared, limit: usize) -> Result<BatchOutcome> {
    let caller = Caller::maintenance();
    let batch = read_batch(shared, &caller, limit).await?;
    if batch.portions.is_empty() && batch.visible_below - batch.watermark < WATERMARK_LAG {
        return Ok(BatchOutcome { messages: 0, has_progressed: false, is_complete: true });
    }
    let terms_by_thread = read_terms(shared, &caller, &batch.portions).await?;
    shared.transact(caller, async |transaction| write(transaction, &batch, &terms_by_thread).await).await
}

/// The next portions to index, in the order of the threads' last changes.
struct IndexBatch {
    portions: Vec<ThreadPortion>,
    /// Whether no unindexed messages remain after this batch.
    is_complete: bool,
    watermark: i64,
    /// The stamp below which all changes were visible when the batch was read.
    visible_below: i64,
}

async fn read_batch(shared: &Shared, caller: &Caller, limit: usize) -> Result<IndexBatch> {
    let marks = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint \
                 + (SELECT value FROM threadkeep.marks WHERE name = 'stamp_offset'), value \
                 FROM threadkeep.marks WHERE name = 'index_stamp'";
    let sql = "SELECT t.no, t.seq, t.change, t.first_seq, coalesce(i.seq, 0) FROM threadkeep.stamps s \
               JOIN threadkeep.threads t ON t.no = s.thread_no LEFT JOIN threadkeep.indexed i ON i.thread_no = t.no \
               WHERE s.stamp >= (SELECT value FROM threadkeep.marks WHERE name = 'index_stamp') \
               AND t.seq > coalesce(i.seq, 0) AND NOT t.restoring ORDER BY s.stamp LIMIT $1";
    let values: [Parameter<'_>; 1] = [(&MAX_THREADS, Type::INT8)];
    let answers = shared.read(caller, &[(marks, &[]), (sql, &values)]).await?;
    let marks = answers[0].first().ok_or_else(|| StoreError::corrupt("marks", "missing"))?;
    let mut batch = IndexBatch {
        portions: Vec::new(),
        is_complete: (answers[1].len() as i64) < MAX_THREADS,
        visible_below: get(marks, 0)?,
        watermark: get(marks, 1)?,
    };
    let mut remaining = signed(limit as u64);
    for row in &answers[1] {
        if remaining == 0 {
            batch.is_complete = false;
            break;
        }
        let portion = portion(row, remaining)?;
        remaining -= (portion.through - portion.from + 1).clamp(0, remaining);
        batch.is_complete &= portion.is_complete;
        batch.portions.push(portion);
    }
    Ok(batch)
}

fn portion(row: &Row, remaining: i64) -> Result<ThreadPortion> {
    let (seq, first_seq, indexed): (i64, i64, i64) = (get(row, 1)?, get(row, 3)?, get(row, 4)?);
    let from = (indexed + 1).max(first_seq);
    let through = seq.min(from.saturating_add(remaining - 1));
    Ok(ThreadPortion {
        thread_no: get(row, 0)?,
        change: get(row, 2)?,
        indexed,
        from,
        through,
        is_complete: through == seq,
    })
}

/// The positions and the terms of messages, by thread number.
type TermsByThread = HashMap<i64, (Vec<i64>, Vec<String>)>;

async fn read_terms(shared: &Shared, caller: &Caller, portions: &[ThreadPortion]) -> Result<TermsByThread> {
    let column = |value: fn(&ThreadPortion) -> i64| -> Vec<i64> { portions.iter().map(value).collect() };
    let (numbers, from) = (column(|portion| portion.thread_no), column(|portion| portion.from));
    let through = column(|portion| portion.through);
    let sql = "SELECT m.thread_no, m.seq, m.body FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) \
               AS p (no, first, last) JOIN threadkeep.messages m ON m.thread_no = p.no \
               AND m.seq BETWEEN p.first AND p.last WHERE m.body IS NOT NULL";
    let values: [Parameter<'_>; 3] =
        [(&numbers, Type::INT8_ARRAY), (&from, Type::INT8_ARRAY), (&through, Type::INT8_ARRAY)];
    let answers = shared.read(caller, &[(sql, &values)]).await?;
    let mut terms_by_thread = TermsByThread::new();
    for row in &answers[0] {
        let (seqs, terms) = terms_by_thread.entry(get(row, 0)?).or_default();
        seqs.push(get(row, 1)?);
        terms.push(terms_of(get(row, 2)?));
    }
    Ok(terms_by_thread)
}

/// Returns the terms of a message, separated by spaces. Returns no terms for a message that cannot be decoded; `verify`
/// reports it.
fn terms_of(body: &str) -> String {
    let content = codec::decode_content(body);
    content.map(|content| text::indexed_terms(&content.plain_text()).join(" ")).unwrap_or_default()
}

async fn write(
    transaction: &Transaction<'_>,
    batch: &IndexBatch,
    terms_by_thread: &TermsByThread,
) -> Result<BatchOutcome> {
    let lock: [Parameter<'_>; 1] = [(&LOCK, Type::INT8)];
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &lock).await?;
    let mut outcome = BatchOutcome { messages: 0, has_progressed: false, is_complete: batch.is_complete };
    let no_terms = (Vec::new(), Vec::new());
    for portion in &batch.portions {
        let (seqs, terms) = terms_by_thread.get(&portion.thread_no).unwrap_or(&no_terms);
        let values: [Parameter<'_>; 6] = [
            (&portion.thread_no, Type::INT8),
            (&portion.change, Type::INT8),
            (&portion.indexed, Type::INT8),
            (&portion.through, Type::INT8),
            (seqs, Type::INT8_ARRAY),
            (terms, Type::TEXT_ARRAY),
        ];
        let sql = "SELECT threadkeep.index_messages($1, $2, $3, $4, $5, $6)";
        let rows = transaction.query_typed(sql, &values).await?;
        if rows.first().is_some_and(|row| get(row, 0).unwrap_or(false)) {
            outcome.messages += seqs.len() as u64;
        } else {
            outcome.is_complete = false;
        }
        // A rejected portion is outdated, so the next batch will differ too.
        outcome.has_progressed = true;
    }
    if outcome.is_complete {
        let visible_below: [Parameter<'_>; 1] = [(&batch.visible_below, Type::INT8)];
        let sql = "UPDATE threadkeep.marks SET value = $1 WHERE name = 'index_stamp' AND value < $1";
        transaction.query_typed(sql, &visible_below).await?;
    }
    Ok(outcome)
}

/// Clears the index of messages. Catching up rebuilds it.
pub(crate) async fn reset(transaction: &Transaction<'_>) -> Result<()> {
    let lock: [Parameter<'_>; 1] = [(&LOCK, Type::INT8)];
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &lock).await?;
    transaction
        .batch_execute(
            "DELETE FROM threadkeep.message_terms; DELETE FROM threadkeep.indexed;
             UPDATE threadkeep.marks SET value = 0 WHERE name = 'index_stamp'",
        )
        .await?;
    Ok(())
}

/// Resets the indexes if they were built by another version of the text analysis.
pub(crate) async fn check_analysis(shared: &Shared) -> Result<()> {
    let version = i64::from(text::ANALYSIS_VERSION);
    let caller = Caller::maintenance();
    let find = "SELECT value FROM threadkeep.marks WHERE name = 'analysis'";
    let answers = shared.read(&caller, &[(find, &[])]).await?;
    let built_by: Option<i64> = answers[0].first().map(|row| get(row, 0)).transpose()?;
    if built_by == Some(version) {
        return Ok(());
    }
    if built_by.is_some() {
        // The rebuild precedes the record of the new version, so that an interrupted rebuild is repeated.
        collections::rebuild(shared).await?;
    }
    shared
        .transact(caller, async |transaction| {
            if built_by.is_some() {
                reset(transaction).await?;
            }
            let values: [Parameter<'_>; 1] = [(&version, Type::INT8)];
            let sql = "INSERT INTO threadkeep.marks (name, value) VALUES ('analysis', $1) \
                       ON CONFLICT (name) DO UPDATE SET value = excluded.value";
            transaction.query_typed(sql, &values).await?;
            Ok(())
        })
        .await
}
