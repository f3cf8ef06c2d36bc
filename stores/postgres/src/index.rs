//! The index of words follows the log behind its own watermark, off the commit path.
//!
//! A message's terms are taken from its text here, by the same analysis in every store, and stand in a `tsvector` as they
//! are. Messages are read and analysed without a lock; `threadkeep.index_messages` then takes them only if the thread is
//! still as it was.

use std::collections::HashMap;

use deadpool_postgres::Transaction;
use threadkeep_core::{CatchUp, StoreError, codec, text};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::collections;
use crate::error::{PostgresError, Result};
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{get, signed};

/// Messages indexed in one transaction.
const STEP: usize = 1_000;
/// Threads looked at in one.
const THREADS: i64 = 200;
/// Whoever indexes holds this; it belongs to the database.
const LOCK: i64 = 0x7468_6b70_0001;
/// Transactions of others after which the watermark is moved though there was nothing to index.
const IDLE: i64 = 10_000;

/// A thread's messages on their way into the index.
struct Portion {
    thread_no: i64,
    change: i64,
    indexed: i64,
    from: i64,
    upto: i64,
    is_whole: bool,
}

/// Indexes at most about `limit` messages.
pub(crate) async fn catch_up(shared: &Shared, limit: usize) -> Result<CatchUp, StoreError> {
    let mut indexed = 0;
    loop {
        let step = STEP.min(limit.saturating_sub(usize::try_from(indexed).unwrap_or(usize::MAX)));
        if step == 0 {
            return Ok(CatchUp { indexed, done: false });
        }
        let done = step_forward(shared, step).await.map_err(PostgresError::of_write)?;
        indexed += done.messages;
        if done.is_all {
            return Ok(CatchUp { indexed, done: true });
        }
        if done.messages == 0 && !done.moved {
            return Ok(CatchUp { indexed, done: false });
        }
    }
}

struct Step {
    messages: u64,
    /// Whether anything was indexed, were it a thread without messages.
    moved: bool,
    is_all: bool,
}

async fn step_forward(shared: &Shared, limit: usize) -> Result<Step> {
    let caller = Caller::keeper();
    let looked = look(shared, &caller, limit).await?;
    if looked.portions.is_empty() && looked.present - looked.watermark < IDLE {
        return Ok(Step { messages: 0, moved: false, is_all: true });
    }
    let lines = read_lines(shared, &caller, &looked.portions).await?;
    shared.transact(caller, async |transaction| write(transaction, &looked, &lines).await).await
}

/// What there is to index, in the order of change.
struct Looked {
    portions: Vec<Portion>,
    /// Whether these are all.
    is_complete: bool,
    watermark: i64,
    /// Below this stamp everything was seen.
    present: i64,
}

async fn look(shared: &Shared, caller: &Caller, limit: usize) -> Result<Looked> {
    let marks = "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint \
                 + (SELECT value FROM threadkeep.marks WHERE name = 'stamp_offset'), value \
                 FROM threadkeep.marks WHERE name = 'index_stamp'";
    let sql = "SELECT t.no, t.seq, t.change, t.first_seq, coalesce(i.seq, 0) FROM threadkeep.stamps s \
               JOIN threadkeep.threads t ON t.no = s.thread_no LEFT JOIN threadkeep.indexed i ON i.thread_no = t.no \
               WHERE s.stamp >= (SELECT value FROM threadkeep.marks WHERE name = 'index_stamp') \
               AND t.seq > coalesce(i.seq, 0) AND NOT t.restoring ORDER BY s.stamp LIMIT $1";
    let values: [Parameter<'_>; 1] = [(&THREADS, Type::INT8)];
    let answers = shared.read(caller, &[(marks, &[]), (sql, &values)]).await?;
    let marks = answers[0].first().ok_or_else(|| StoreError::corrupt("marks", "missing"))?;
    let mut looked = Looked {
        portions: Vec::new(),
        is_complete: (answers[1].len() as i64) < THREADS,
        present: get(marks, 0)?,
        watermark: get(marks, 1)?,
    };
    let mut left = signed(limit as u64);
    for row in &answers[1] {
        if left == 0 {
            looked.is_complete = false;
            break;
        }
        let portion = portion(row, left)?;
        left -= (portion.upto - portion.from + 1).clamp(0, left);
        looked.is_complete &= portion.is_whole;
        looked.portions.push(portion);
    }
    Ok(looked)
}

fn portion(row: &Row, left: i64) -> Result<Portion> {
    let (seq, first_seq, indexed): (i64, i64, i64) = (get(row, 1)?, get(row, 3)?, get(row, 4)?);
    let from = (indexed + 1).max(first_seq);
    let upto = seq.min(from.saturating_add(left - 1));
    Ok(Portion { thread_no: get(row, 0)?, change: get(row, 2)?, indexed, from, upto, is_whole: upto == seq })
}

type Lines = HashMap<i64, (Vec<i64>, Vec<String>)>;

async fn read_lines(shared: &Shared, caller: &Caller, portions: &[Portion]) -> Result<Lines> {
    let column = |value: fn(&Portion) -> i64| -> Vec<i64> { portions.iter().map(value).collect() };
    let (numbers, from) = (column(|portion| portion.thread_no), column(|portion| portion.from));
    let upto = column(|portion| portion.upto);
    let sql = "SELECT m.thread_no, m.seq, m.body FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) \
               AS p (no, first, last) JOIN threadkeep.messages m ON m.thread_no = p.no \
               AND m.seq BETWEEN p.first AND p.last WHERE m.body IS NOT NULL";
    let values: [Parameter<'_>; 3] =
        [(&numbers, Type::INT8_ARRAY), (&from, Type::INT8_ARRAY), (&upto, Type::INT8_ARRAY)];
    let answers = shared.read(caller, &[(sql, &values)]).await?;
    let mut lines = Lines::new();
    for row in &answers[0] {
        let (seqs, terms) = lines.entry(get(row, 0)?).or_default();
        seqs.push(get(row, 1)?);
        terms.push(terms_of(get(row, 2)?));
    }
    Ok(lines)
}

/// What is indexed of a message. Nothing for one that does not decode: `verify` tells of it.
fn terms_of(body: &str) -> String {
    let content = codec::decode_content(body);
    content.map(|content| text::indexed_terms(&content.plain_text()).join(" ")).unwrap_or_default()
}

async fn write(transaction: &Transaction<'_>, looked: &Looked, lines: &Lines) -> Result<Step> {
    let lock: [Parameter<'_>; 1] = [(&LOCK, Type::INT8)];
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &lock).await?;
    let mut step = Step { messages: 0, moved: false, is_all: looked.is_complete };
    let nothing = (Vec::new(), Vec::new());
    for portion in &looked.portions {
        let (seqs, terms) = lines.get(&portion.thread_no).unwrap_or(&nothing);
        let values: [Parameter<'_>; 6] = [
            (&portion.thread_no, Type::INT8),
            (&portion.change, Type::INT8),
            (&portion.indexed, Type::INT8),
            (&portion.upto, Type::INT8),
            (seqs, Type::INT8_ARRAY),
            (terms, Type::TEXT_ARRAY),
        ];
        let sql = "SELECT threadkeep.index_messages($1, $2, $3, $4, $5, $6)";
        let rows = transaction.query_typed(sql, &values).await?;
        if rows.first().is_some_and(|row| get(row, 0).unwrap_or(false)) {
            step.messages += seqs.len() as u64;
            step.moved = true;
        } else {
            step.is_all = false;
            // Overtaken, so the next look is at something else.
            step.moved = true;
        }
    }
    if step.is_all {
        let present: [Parameter<'_>; 1] = [(&looked.present, Type::INT8)];
        let sql = "UPDATE threadkeep.marks SET value = $1 WHERE name = 'index_stamp' AND value < $1";
        transaction.query_typed(sql, &present).await?;
    }
    Ok(step)
}

/// Forgets the whole index; it is built again as it is caught up.
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

/// Starts the index anew when it was made by another analysis of words.
pub(crate) async fn check_analysis(shared: &Shared) -> Result<()> {
    let version = i64::from(text::ANALYSIS_VERSION);
    let caller = Caller::keeper();
    let find = "SELECT value FROM threadkeep.marks WHERE name = 'analysis'";
    let answers = shared.read(&caller, &[(find, &[])]).await?;
    let made_by: Option<i64> = answers[0].first().map(|row| get(row, 0)).transpose()?;
    if made_by == Some(version) {
        return Ok(());
    }
    if made_by.is_some() {
        // Before it is noted: should this be cut off, the next to open does it again.
        collections::rebuild(shared).await?;
    }
    shared
        .transact(caller, async |transaction| {
            if made_by.is_some() {
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
