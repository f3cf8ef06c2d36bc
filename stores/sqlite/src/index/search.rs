//! Searching the index: which positions hold the words of a question, and which the index does not hold yet.

use std::cell::RefCell;
use std::collections::HashMap;

use rusqlite::{Connection, params};
use threadkeep_core::{
    Scope, SearchAnswer, SearchHit, SearchQuery, StoreError, ThreadId, Timestamp, UnindexedThread, limits,
};

use super::{OWNER_MARK, TENANT_MARK, watermark};
use crate::connection::{Shared, lock};
use crate::error::Result;
use crate::owners::{self, ScopeNumbers};
use crate::row::{self, ThreadRow};
use crate::threads;

/// How many positions are looked at per term: bounds the cost of a common word.
pub(crate) const PER_TERM: i64 = 4_000;
/// How many positions of a named thread are looked at first; more only where its rarer terms find too little.
const PER_TERM_FIRST: i64 = 256;
/// Up to how many positions a term's own are looked through before the scope's are asked for as well: for a rare word
/// following the scope's long list costs more than looking at what is found.
const RARE: i64 = 256;
/// Terms of a question that are looked up.
pub(crate) const TERMS: usize = 32;
/// Scopes whose count is kept.
const COUNTS: usize = 10_000;
/// Messages that a question leaves to its caller to read from the log; more are indexed first.
const BEHIND: u64 = 1_000;

pub(crate) fn search(shared: &Shared, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<Found> {
    if query.vector.is_some() {
        return Err(StoreError::Unsupported("vector search over messages").into());
    }
    limits::check_page(query.limit)?;
    shared.read(|connection| {
        let transaction = connection.unchecked_transaction()?;
        let found = match Search::new(shared, connection, scope, query, now)? {
            Some(search) => search.run()?,
            None => Found {
                answer: SearchAnswer { frequencies: vec![0; query.terms.len()], ..SearchAnswer::default() },
                is_far_behind: false,
            },
        };
        transaction.commit()?;
        Ok(found)
    })
}

/// An answer, and whether so much is behind that a caller should not be asked to read it.
pub(crate) struct Found {
    pub(crate) answer: SearchAnswer,
    pub(crate) is_far_behind: bool,
}

struct Search<'a> {
    shared: &'a Shared,
    connection: &'a Connection,
    numbers: ScopeNumbers,
    thread: Option<ThreadRow>,
    query: &'a SearchQuery,
    now: Timestamp,
    /// Threads that were looked up: most hits share a few.
    known: RefCell<HashMap<i64, Option<(ThreadId, u64)>>>,
}

const FROM_THE_NEWEST: &str = "SELECT rowid FROM message_terms WHERE message_terms MATCH ?1 \
                               AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC LIMIT ?4";
const FROM_THE_OLDEST: &str = "SELECT rowid FROM message_terms WHERE message_terms MATCH ?1 \
                               AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid LIMIT ?4";

/// The positions that hold a term: all, or the newest, newest first.
struct TermList {
    keys: Vec<i64>,
    /// How many there are, about.
    frequency: u64,
    /// Whether there may be more than those listed.
    is_cut: bool,
}

impl TermList {
    fn counted(keys: Vec<i64>) -> Self {
        Self { frequency: keys.len() as u64, keys, is_cut: false }
    }
}

/// A term as FTS5 is asked for it: as analysis makes them. Anything else was never indexed, and must mean nothing to FTS5
/// either.
fn pattern(term: &str) -> Option<String> {
    let is_term = !term.is_empty() && term.chars().all(char::is_alphanumeric);
    is_term.then(|| format!("\"{term}\""))
}

impl<'a> Search<'a> {
    /// `None` where the scope reaches nothing to search.
    fn new(
        shared: &'a Shared,
        connection: &'a Connection,
        scope: &Scope,
        query: &'a SearchQuery,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let numbers = owners::of_scope(shared, connection, scope)?;
        let thread = match query.thread {
            None => None,
            Some(thread) => match threads::find_row(shared, connection, scope, thread, now)? {
                None => return Ok(None),
                Some((row, _)) => Some(row),
            },
        };
        Ok(Some(Self { connection, shared, numbers, thread, query, now, known: RefCell::default() }))
    }

    fn run(&self) -> Result<Found> {
        let documents = self.count_documents()?;
        let mut frequencies = Vec::with_capacity(self.query.terms.len());
        let mut scored: Vec<(i64, f64)> = Vec::new();
        for list in self.lists()? {
            let rarity = rarity(documents, list.frequency);
            frequencies.push(list.frequency);
            scored.extend(list.keys.into_iter().map(|key| (key, rarity)));
        }
        frequencies.resize(self.query.terms.len(), 0);
        // Stable, so that rarities are added up in the order of the terms and equal sums come out equal.
        scored.sort_by_key(|(key, _)| *key);
        let mut ranked: Vec<(i64, f64)> = Vec::new();
        for (key, rarity) in scored {
            match ranked.last_mut() {
                Some((last, score)) if *last == key => *score += rarity,
                _ => ranked.push((key, rarity)),
            }
        }
        ranked.sort_unstable_by(|(key, score), (other_key, other)| {
            other.total_cmp(score).then_with(|| other_key.cmp(key))
        });
        let hits = self.alive(ranked.into_iter().map(|(key, _)| key))?;
        let (behind, missing) = self.behind()?;
        let answer = SearchAnswer { hits, documents, frequencies, behind, ..SearchAnswer::default() };
        Ok(Found { answer, is_far_behind: missing > BEHIND })
    }

    /// Where each of the terms stands.
    fn lists(&self) -> Result<Vec<TermList>> {
        let terms = self.query.terms.iter().take(TERMS);
        let Some(thread) = &self.thread else {
            return terms.map(|term| Ok(TermList::counted(self.keys_of(term)?))).collect();
        };
        let first = terms.clone().map(|term| self.list_in(thread, term));
        let mut lists = first.collect::<Result<Vec<_>>>()?;
        let mut found: usize = lists.iter().filter(|list| !list.is_cut).map(|list| list.keys.len()).sum();
        let mut cut: Vec<(&mut TermList, &String)> =
            lists.iter_mut().zip(terms).filter(|(list, _)| list.is_cut).collect();
        // The rarest say most; more of the others would cost much and find little else.
        cut.sort_by_key(|(list, _)| list.frequency);
        for (list, term) in cut {
            if found >= self.query.limit {
                break;
            }
            let Some(pattern) = pattern(term) else { continue };
            let density = list.frequency as f64 / thread.message_count.max(1) as f64;
            *list = self.newest_in(thread, &pattern, PER_TERM, density)?;
            found += list.keys.len();
        }
        Ok(lists)
    }

    /// The positions of a thread that hold a term, the newest where there are many.
    fn list_in(&self, thread: &ThreadRow, term: &str) -> Result<TermList> {
        let Some(pattern) = pattern(term) else { return Ok(TermList::counted(Vec::new())) };
        let (first, last) = (row::key(thread.no, thread.positions.first_seq), row::last_key(thread.no));
        // Most terms are so rare that these are all.
        let keys = self.matching(FROM_THE_OLDEST, &pattern, first, last, PER_TERM_FIRST)?;
        match keys.last() {
            Some(newest) if keys.len() as i64 == PER_TERM_FIRST => {
                let density = keys.len() as f64 / (row::position(*newest) - thread.positions.first_seq + 1) as f64;
                self.newest_in(thread, &pattern, PER_TERM_FIRST, density)
            }
            _ => Ok(TermList::counted(keys)),
        }
    }

    /// The newest positions of a thread that match. Of more than `most` it is estimated how many there are, as if the
    /// older ones lay as densely.
    fn newest_in(&self, thread: &ThreadRow, pattern: &str, most: i64, density: f64) -> Result<TermList> {
        let (first_seq, end) = (thread.positions.first_seq, thread.positions.seq + 1);
        let all = end.saturating_sub(first_seq);
        let last = row::last_key(thread.no);
        // FTS5 goes forward three times as fast as back: from where half as many again should be found, if they lie as
        // densely there as where they were met.
        let reach = ((most as f64 * 1.5 / density) as u64).min(all);
        let mut keys = self.matching(FROM_THE_OLDEST, pattern, row::key(thread.no, end - reach), last, 2 * most)?;
        let is_complete = (keys.len() as i64) < 2 * most;
        if is_complete && (keys.len() as i64 >= most || reach == all) {
            keys.reverse();
            keys.truncate(usize::try_from(most).unwrap_or(usize::MAX));
        } else {
            keys = self.matching(FROM_THE_NEWEST, pattern, row::key(thread.no, first_seq), last, most)?;
        }
        let mut list = TermList::counted(keys);
        if let Some(oldest) = list.keys.last().filter(|_| list.keys.len() as i64 == most) {
            let looked_at = end.saturating_sub(row::position(*oldest)).max(1);
            list.frequency =
                (list.frequency * all / looked_at).clamp(list.frequency, thread.message_count.max(list.frequency));
            list.is_cut = true;
        }
        Ok(list)
    }

    /// How many messages are searched, about: a scope's count is kept until a tenth as many commits have come since.
    fn count_documents(&self) -> Result<u64> {
        if let Some(thread) = self.thread {
            return Ok(thread.message_count);
        }
        let (sql, no) = match self.numbers.user_no {
            Some(no) => ("SELECT coalesce(sum(message_count), 0) FROM threads WHERE owner_no = ?1", no),
            // A tenant's threads are counted up to a bound.
            None => (
                "SELECT coalesce(sum(message_count), 0) FROM \
                 (SELECT message_count FROM threads WHERE tenant_no = ?1 LIMIT 20000)",
                self.numbers.tenant_no,
            ),
        };
        let key = (self.numbers.user_no.is_some(), no);
        let stamp = threads::next_stamp(self.connection)?.unsigned_abs();
        if let Some((count, counted_at)) = lock(&self.shared.counts).get(&key)
            && stamp.saturating_sub(*counted_at) <= count / 10
        {
            return Ok(*count);
        }
        let count = self.connection.prepare_cached(sql)?.query_row([no], |row| row.get::<_, i64>(0))?.unsigned_abs();
        let mut counts = lock(&self.shared.counts);
        if counts.len() >= COUNTS {
            counts.clear();
        }
        counts.insert(key, (count, stamp));
        Ok(count)
    }

    /// The newest positions in the scope that hold a term.
    fn keys_of(&self, term: &str) -> Result<Vec<i64>> {
        let Some(term) = pattern(term) else { return Ok(Vec::new()) };
        let anywhere = self.matching(FROM_THE_NEWEST, &term, 0, i64::MAX, RARE)?;
        if (anywhere.len() as i64) < RARE {
            let mut own = Vec::with_capacity(anywhere.len());
            for key in anywhere {
                if self.searched_thread(row::thread_no(key))?.is_some() {
                    own.push(key);
                }
            }
            return Ok(own);
        }
        let scope = match self.numbers.user_no {
            Some(no) => format!("{OWNER_MARK}{no}"),
            None => format!("{TENANT_MARK}{}", self.numbers.tenant_no),
        };
        self.matching(FROM_THE_NEWEST, &format!("\"{scope}\" AND {term}"), 0, i64::MAX, PER_TERM)
    }

    /// The first positions that match, at most `limit`, in the order of a statement.
    fn matching(&self, sql: &str, pattern: &str, first: i64, last: i64, limit: i64) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let keys = statement.query_map(params![pattern, first, last, limit], |row| row.get(0))?;
        Ok(keys.collect::<Result<_, _>>()?)
    }

    /// The first `limit` of the keys that still name a message that the scope reads.
    fn alive(&self, keys: impl Iterator<Item = i64>) -> Result<Vec<SearchHit>> {
        let mut hits = Vec::new();
        for key in keys {
            let seq = row::position(key);
            let thread = self.searched_thread(row::thread_no(key))?;
            if let Some((thread, _)) = thread.filter(|(_, first_seq)| seq >= *first_seq) {
                hits.push(SearchHit { thread, seq });
                if hits.len() == self.query.limit {
                    break;
                }
            }
        }
        Ok(hits)
    }

    /// The thread with a number, and its first position, if it is alive and the scope searches it.
    fn searched_thread(&self, thread_no: i64) -> Result<Option<(ThreadId, u64)>> {
        if let Some(known) = self.known.borrow().get(&thread_no) {
            return Ok(*known);
        }
        let sql = "SELECT id, first_seq FROM threads WHERE no = ?1 AND tenant_no = ?2 AND restoring = 0 \
                   AND (?4 IS NULL OR owner_no = ?4) AND (expires_at IS NULL OR expires_at > ?3)";
        let mut statement = self.connection.prepare_cached(sql)?;
        // A shared thread is searched when it is named, although the user owns no part of it.
        let owner_no = if self.thread.is_some() { None } else { self.numbers.user_no };
        let arguments = params![thread_no, self.numbers.tenant_no, self.now.as_micros(), owner_no];
        let mut rows = statement.query(arguments)?;
        let found = match rows.next()? {
            Some(row) => Some((ThreadId(row::uuid(row, 0)?), row::unsigned(row, 1)?)),
            None => None,
        };
        self.known.borrow_mut().insert(thread_no, found);
        Ok(found)
    }

    /// The threads whose newest messages are not indexed, and how many messages these are.
    fn behind(&self) -> Result<(Vec<UnindexedThread>, u64)> {
        let sql = "SELECT t.id, coalesce(i.seq, 0), t.seq FROM threads t LEFT JOIN indexed i ON i.thread_no = t.no \
                   WHERE t.stamp > ?1 AND t.seq > coalesce(i.seq, 0) AND t.seq >= t.first_seq AND t.tenant_no = ?2 \
                   AND (?3 IS NULL OR t.owner_no = ?3) AND (?4 IS NULL OR t.no = ?4) AND t.restoring = 0 \
                   AND (t.expires_at IS NULL OR t.expires_at > ?5)";
        let done = watermark(self.connection)?;
        // A shared thread is searched when it is named, although the user owns no part of it.
        let owner_no = if self.thread.is_some() { None } else { self.numbers.user_no };
        let thread_no = self.thread.map(|thread| thread.no);
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows =
            statement.query(params![done, self.numbers.tenant_no, owner_no, thread_no, self.now.as_micros()])?;
        let (mut behind, mut missing) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            let indexed_seq = row::unsigned(row, 1)?;
            missing += row::unsigned(row, 2)?.saturating_sub(indexed_seq);
            behind.push(UnindexedThread { thread: ThreadId(row::uuid(row, 0)?), indexed_seq });
        }
        Ok((behind, missing))
    }
}

/// What a term is worth that so many of the documents hold: more, the fewer they are.
pub(crate) fn rarity(documents: u64, frequency: u64) -> f64 {
    let frequency = frequency as f64;
    (1.0 + (documents as f64 - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
}
