use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use threadkeep_core::{
    Scope, SearchAnswer, SearchHit, SearchQuery, StoreError, ThreadId, Timestamp, UnindexedThread, limits,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::error::Result;
use crate::metadata;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{get, signed, unsigned};

/// The maximum number of messages read per term. Bounds the cost of a common term.
const MAX_POSITIONS: i64 = 4_000;
/// The maximum number of terms of a query; further terms are ignored.
const MAX_TERMS: usize = 32;
/// The maximum number of unindexed messages that a caller is expected to read from the log. If there are more, the index
/// catches up first.
const MAX_UNINDEXED: u64 = 1_000;

pub(crate) struct SearchOutcome {
    pub(crate) answer: SearchAnswer,
    /// Whether so many messages are unindexed that the index should catch up before the answer is used.
    pub(crate) is_far_behind: bool,
}

/// Searches the messages.
pub(crate) async fn search(
    shared: &Shared,
    scope: &Scope,
    query: &SearchQuery,
    now: Timestamp,
) -> Result<SearchOutcome> {
    if query.vector.is_some() {
        return Err(StoreError::Unsupported("vector search over messages").into());
    }
    if !query.filters.is_empty() {
        return Err(StoreError::Unsupported("filters over messages").into());
    }
    query.metadata.check()?;
    limits::check_page(query.limit)?;
    let caller = Caller::of(scope);
    // Text that cannot be a term was never indexed; the empty term stands for it and matches nothing.
    let (indexes, terms): (Vec<usize>, Vec<&str>) = query
        .lookups(MAX_TERMS)
        .map(|(index, term)| (index, if term.chars().all(char::is_alphanumeric) { term.as_str() } else { "" }))
        .unzip();
    let sql = "SELECT place, thread, thread_no, first_seq, seqs, documents, behind_threads, behind_seqs, missing \
               FROM threadkeep.search($1, $2, $3, $4, $5, $6, $7, $8)";
    let values: [Parameter<'_>; 8] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&query.thread.map(|thread| thread.0), Type::UUID),
        (&terms, Type::TEXT_ARRAY),
        (&MAX_POSITIONS, Type::INT8),
        (&now.as_micros(), Type::INT8),
        (&metadata::terms(&query.metadata), Type::BYTEA_ARRAY),
        (&signed(query.metadata.conditions().len() as u64), Type::INT8),
    ];
    let rows = shared.call(sql, &values).await?;
    let mut outcome = SearchOutcome { answer: SearchAnswer::default(), is_far_behind: false };
    if let Some((last, matches)) = rows.split_last() {
        outcome.answer.documents = unsigned(last, 5)?;
        let behind = pairs(get(last, 6)?, get(last, 7)?);
        outcome.answer.unindexed =
            behind.map(|(thread, indexed_seq)| UnindexedThread { thread, indexed_seq }).collect();
        outcome.is_far_behind = get::<i64>(last, 8)? > signed(MAX_UNINDEXED);
        let matches = matches.iter().map(|row| TermMatch::read(row, &indexes)).collect::<Result<Vec<_>>>()?;
        let matches = merge_alternatives(matches, query.terms.len());
        outcome.answer.frequencies = frequencies(&matches, query.frequency_count());
        outcome.answer.hits = rank(&matches, &outcome.answer, query.limit);
    }
    outcome.answer.frequencies.resize(query.frequency_count(), 0);
    Ok(outcome)
}

/// The messages of one thread that contain one term.
struct TermMatch {
    /// The index of the term, or of its list of alternatives, in the answer's frequencies.
    term: usize,
    thread: ThreadId,
    thread_no: i64,
    seqs: Vec<u64>,
}

impl TermMatch {
    /// Reads a row. `indexes` has an index of [`TermMatch::term`] for each term that was looked up.
    fn read(row: &Row, indexes: &[usize]) -> Result<Self> {
        let (place, first_seq): (i64, i64) = (get(row, 0)?, get(row, 3)?);
        let seqs: Vec<i64> = get(row, 4)?;
        // A trimmed message stays in the index until the sweep.
        let seqs = seqs.into_iter().filter(|seq| *seq >= first_seq).map(i64::unsigned_abs);
        Ok(Self {
            term: indexes[place.unsigned_abs() as usize - 1],
            thread: ThreadId(get(row, 1)?),
            thread_no: get(row, 2)?,
            seqs: seqs.collect(),
        })
    }
}

/// Merges the matches of alternatives, which have an index of `first` or more, so that each message counts once.
fn merge_alternatives(matches: Vec<TermMatch>, first: usize) -> Vec<TermMatch> {
    let (mut merged, alternatives): (Vec<_>, Vec<_>) = matches.into_iter().partition(|found| found.term < first);
    let mut lists: BTreeMap<(usize, i64), TermMatch> = BTreeMap::new();
    for found in alternatives {
        match lists.entry((found.term, found.thread_no)) {
            Entry::Vacant(entry) => drop(entry.insert(found)),
            Entry::Occupied(mut entry) => entry.get_mut().seqs.extend(found.seqs),
        }
    }
    for mut list in lists.into_values() {
        list.seqs.sort_unstable();
        list.seqs.dedup();
        merged.push(list);
    }
    merged
}

/// Counts the messages that contain each term.
fn frequencies(matches: &[TermMatch], term_count: usize) -> Vec<u64> {
    let mut frequencies = vec![0; term_count];
    for found in matches {
        frequencies[found.term] += found.seqs.len() as u64;
    }
    frequencies
}

/// Ranks messages by the summed rarity of their terms. Among equal scores, the newer message comes first.
fn rank(matches: &[TermMatch], answer: &SearchAnswer, limit: usize) -> Vec<SearchHit> {
    let mut scores: HashMap<(i64, u64), (f64, ThreadId)> = HashMap::new();
    // Sums rarities in the order of the terms, so that equal sets of terms get equal scores.
    for term in 0..answer.frequencies.len() {
        let frequency = answer.frequencies[term] as f64;
        let rarity = ((answer.documents as f64 - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln_1p();
        for found in matches.iter().filter(|found| found.term == term) {
            for seq in &found.seqs {
                scores.entry((found.thread_no, *seq)).or_insert((0.0, found.thread)).0 += rarity;
            }
        }
    }
    let mut ranked: Vec<_> =
        scores.into_iter().map(|((thread_no, seq), (score, thread))| (score, thread_no, seq, thread)).collect();
    ranked
        .sort_unstable_by(|one, other| other.0.total_cmp(&one.0).then_with(|| (other.1, other.2).cmp(&(one.1, one.2))));
    ranked.into_iter().take(limit).map(|(_, _, seq, thread)| SearchHit { thread, seq }).collect()
}

fn pairs(threads: Vec<Uuid>, seqs: Vec<i64>) -> impl Iterator<Item = (ThreadId, u64)> {
    threads.into_iter().map(ThreadId).zip(seqs.into_iter().map(i64::unsigned_abs))
}
