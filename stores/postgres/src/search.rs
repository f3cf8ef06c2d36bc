use std::collections::HashMap;

use threadkeep_core::{
    Scope, SearchAnswer, SearchHit, SearchQuery, StoreError, ThreadId, Timestamp, UnindexedThread, limits,
};
use tokio_postgres::Row;
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

/// Searches the messages.
pub(crate) async fn search(shared: &Shared, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<Found> {
    if query.vector.is_some() {
        return Err(StoreError::Unsupported("vector search over messages").into());
    }
    limits::check_page(query.limit)?;
    let caller = Caller::of(scope);
    // Terms as analysis makes them; anything else was never indexed.
    let looked_up = query.terms.iter().take(TERMS).map(String::as_str);
    let terms: Vec<&str> =
        looked_up.map(|term| if term.chars().all(char::is_alphanumeric) { term } else { "" }).collect();
    let sql = "SELECT place, thread, thread_no, first_seq, seqs, documents, behind_threads, behind_seqs, missing \
               FROM threadkeep.search($1, $2, $3, $4, $5, $6)";
    let values: [Parameter<'_>; 6] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&query.thread.map(|thread| thread.0), Type::UUID),
        (&terms, Type::TEXT_ARRAY),
        (&PER_TERM, Type::INT8),
        (&now.as_micros(), Type::INT8),
    ];
    let rows = shared.call(sql, &values).await?;
    let mut found = Found { answer: SearchAnswer::default(), is_far_behind: false };
    if let Some((last, matches)) = rows.split_last() {
        found.answer.documents = unsigned(last, 5)?;
        let behind = pairs(get(last, 6)?, get(last, 7)?);
        found.answer.behind = behind.map(|(thread, indexed_seq)| UnindexedThread { thread, indexed_seq }).collect();
        found.is_far_behind = get::<i64>(last, 8)? > signed(BEHIND);
        let matches = matches.iter().map(Match::read).collect::<Result<Vec<_>>>()?;
        found.answer.frequencies = frequencies(&matches, terms.len());
        found.answer.hits = candidates(&matches, &found.answer, query.limit);
    }
    found.answer.frequencies.resize(query.terms.len(), 0);
    Ok(found)
}

/// Messages of one thread that hold one term.
struct Match {
    /// Of the term, from 0 on.
    place: usize,
    thread: ThreadId,
    thread_no: i64,
    seqs: Vec<u64>,
}

impl Match {
    fn read(row: &Row) -> Result<Self> {
        let (place, first_seq): (i64, i64) = (get(row, 0)?, get(row, 3)?);
        let seqs: Vec<i64> = get(row, 4)?;
        // A trimmed message is in the index until the sweep.
        let seqs = seqs.into_iter().filter(|seq| *seq >= first_seq).map(i64::unsigned_abs);
        Ok(Self {
            place: place.unsigned_abs() as usize - 1,
            thread: ThreadId(get(row, 1)?),
            thread_no: get(row, 2)?,
            seqs: seqs.collect(),
        })
    }
}

/// How many messages hold each term.
fn frequencies(matches: &[Match], terms: usize) -> Vec<u64> {
    let mut frequencies = vec![0; terms];
    for found in matches {
        frequencies[found.place] += found.seqs.len() as u64;
    }
    frequencies
}

/// The messages with the rarer terms first, then the newest.
fn candidates(matches: &[Match], answer: &SearchAnswer, limit: usize) -> Vec<SearchHit> {
    let mut scores: HashMap<(i64, u64), (f64, ThreadId)> = HashMap::new();
    // Term by term, so that equal sets of terms add up to equal scores.
    for place in 0..answer.frequencies.len() {
        let frequency = answer.frequencies[place] as f64;
        let rarity = ((answer.documents as f64 - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln_1p();
        for found in matches.iter().filter(|found| found.place == place) {
            for seq in &found.seqs {
                scores.entry((found.thread_no, *seq)).or_insert((0.0, found.thread)).0 += rarity;
            }
        }
    }
    let mut ranked: Vec<_> = scores.into_iter().map(|((no, seq), (score, thread))| (score, no, seq, thread)).collect();
    ranked
        .sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then_with(|| (other.1, other.2).cmp(&(one.1, one.2))));
    ranked.into_iter().take(limit).map(|(_, _, seq, thread)| SearchHit { thread, seq }).collect()
}

fn pairs(threads: Vec<Uuid>, seqs: Vec<i64>) -> impl Iterator<Item = (ThreadId, u64)> {
    threads.into_iter().map(ThreadId).zip(seqs.into_iter().map(i64::unsigned_abs))
}
