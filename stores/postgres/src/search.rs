use threadkeep_core::{
    Behind, Collection, Scope, SearchAnswer, SearchHit, SearchQuery, StoreError, ThreadId, Timestamp, limits,
};
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::error::Result;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{get, signed, unsigned};

/// How many messages are looked at for each term: bounds the cost of a common word.
const PER_TERM: i64 = 4_000;
/// Terms of a question that are looked up.
const TERMS: usize = 32;
/// Messages that a question leaves to its caller to read from the log; more are indexed first.
const BEHIND: u64 = 1_000;

/// An answer, and whether so much is behind that a caller should not be asked to read it.
pub(crate) struct Found {
    pub(crate) answer: SearchAnswer,
    pub(crate) is_far_behind: bool,
}

pub(crate) async fn search(shared: &Shared, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<Found> {
    if query.collection != Collection::Messages {
        return Err(StoreError::Unsupported("named collections").into());
    }
    if query.vector.is_some() {
        return Err(StoreError::Unsupported("vector search").into());
    }
    limits::check_page(query.limit)?;
    let caller = Caller::of(scope);
    // Terms as analysis makes them; anything else was never indexed.
    let looked_up = query.terms.iter().take(TERMS).map(String::as_str);
    let terms: Vec<&str> =
        looked_up.map(|term| if term.chars().all(char::is_alphanumeric) { term } else { "" }).collect();
    let sql = "SELECT documents, frequencies, hit_threads, hit_seqs, behind_threads, behind_seqs, missing \
               FROM threadkeep.search($1, $2, $3, $4, $5, $6, $7)";
    let values: [Parameter<'_>; 7] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&query.thread.map(|thread| thread.0), Type::UUID),
        (&terms, Type::TEXT_ARRAY),
        (&i32::try_from(query.limit).unwrap_or(i32::MAX), Type::INT4),
        (&PER_TERM, Type::INT8),
        (&now.as_micros(), Type::INT8),
    ];
    let rows = shared.call(sql, &values).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("answer", "of no row"))?;
    let mut found = Found { answer: SearchAnswer::default(), is_far_behind: false };
    if get::<Option<i64>>(row, 0)?.is_some() {
        let frequencies: Vec<i64> = get(row, 1)?;
        found.answer.documents = unsigned(row, 0)?;
        found.answer.frequencies = frequencies.into_iter().map(i64::unsigned_abs).collect();
        let hits = pairs(get(row, 2)?, get(row, 3)?);
        found.answer.hits = hits.map(|(thread, seq)| SearchHit { thread, seq }).collect();
        let behind = pairs(get(row, 4)?, get(row, 5)?);
        found.answer.behind = behind.map(|(thread, indexed_seq)| Behind { thread, indexed_seq }).collect();
        found.is_far_behind = get::<i64>(row, 6)? > signed(BEHIND);
    }
    found.answer.frequencies.resize(query.terms.len(), 0);
    Ok(found)
}

fn pairs(threads: Vec<Uuid>, seqs: Vec<i64>) -> impl Iterator<Item = (ThreadId, u64)> {
    threads.into_iter().map(ThreadId).zip(seqs.into_iter().map(i64::unsigned_abs))
}
