//! Searches the index for the positions that contain the terms of a query, and lists threads with unindexed messages.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, params};
use threadkeep_core::{
    Message, Scope, SearchAnswer, SearchHit, SearchQuery, StoreError, ThreadId, Timestamp, UnindexedThread, limits,
};

use super::{OWNER_MARK, TENANT_MARK, watermark};
use crate::connection::{Shared, lock};
use crate::error::Result;
use crate::metadata;
use crate::owners::{self, ScopeNumbers};
use crate::row::{self, ThreadRow, message_columns};
use crate::{threads, view};

/// The maximum number of positions that are read per term. Limits the cost of a common term.
pub(crate) const MAX_POSITIONS: i64 = 4_000;
/// The number of positions per term that a search in one thread reads first. It reads more only if the rarer terms yield too few hits.
const FIRST_POSITIONS: i64 = 256;
/// A term with fewer positions in the whole index counts as rare: filtering its positions by scope is cheaper than intersecting them
/// with the long list of the scope's positions.
const RARE_TERM_POSITIONS: usize = 256;
/// The number of positions of a term from which the share of the scope is estimated.
const SAMPLED_POSITIONS: usize = 8;
/// The maximum number of terms of a query; further terms are ignored.
pub(crate) const MAX_TERMS: usize = 32;
/// The maximum number of cached message counts.
const MAX_COUNTS: usize = 10_000;
/// The maximum number of unindexed messages that a caller is expected to read from the log. If there are more, the index
/// catches up first.
const MAX_UNINDEXED: u64 = 1_000;

pub(crate) fn search(shared: &Shared, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchOutcome> {
    if query.vector.is_some() {
        return Err(StoreError::Unsupported("vector search over messages").into());
    }
    if !query.filters.is_empty() {
        return Err(StoreError::Unsupported("filters over messages").into());
    }
    query.metadata.check()?;
    limits::check_page(query.limit)?;
    view::in_read_transaction(shared, scope, |connection| {
        Ok(match Search::new(shared, connection, scope, query, now)? {
            Some(search) => search.run()?,
            None => SearchOutcome {
                answer: SearchAnswer { frequencies: vec![0; query.frequency_count()], ..SearchAnswer::default() },
                is_far_behind: false,
            },
        })
    })
}

pub(crate) struct SearchOutcome {
    pub(crate) answer: SearchAnswer,
    /// Whether so many messages are unindexed that the index should catch up before the answer is used.
    pub(crate) is_far_behind: bool,
}

struct Search<'a> {
    shared: &'a Shared,
    connection: &'a Connection,
    numbers: ScopeNumbers,
    thread: Option<ThreadRow>,
    query: &'a SearchQuery,
    now: Timestamp,
    /// The threads that pass the metadata filter; `None` without a filter, and in a search of one thread.
    passing: Option<HashSet<i64>>,
    /// Cached results of [`Search::searched_thread`]; most hits are in a few threads.
    threads: RefCell<HashMap<i64, Option<(ThreadId, u64)>>>,
}

const NEWEST_FIRST: &str = "SELECT rowid FROM message_terms WHERE message_terms MATCH ?1 \
                            AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid DESC LIMIT ?4";
const OLDEST_FIRST: &str = "SELECT rowid FROM message_terms WHERE message_terms MATCH ?1 \
                            AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid LIMIT ?4";

/// A hit, and its key in the table of messages.
struct FoundHit {
    key: i64,
    hit: SearchHit,
}

/// The positions that contain a term: all of them, or only the newest.
struct TermList {
    keys: Vec<i64>,
    /// The number of positions that contain the term; an estimate if `is_truncated`.
    frequency: u64,
    is_truncated: bool,
}

impl TermList {
    fn complete(keys: Vec<i64>) -> Self {
        Self { frequency: keys.len() as u64, keys, is_truncated: false }
    }
}

/// Returns an FTS5 pattern for each term of the query, and for each list of alternatives. `None` if nothing is looked up.
fn patterns(query: &SearchQuery) -> Vec<Option<String>> {
    let mut patterns: Vec<Option<String>> = vec![None; query.frequency_count()];
    for (index, term) in query.lookups(MAX_TERMS) {
        // Text that cannot be a term was never indexed, and could contain FTS5 syntax.
        if term.is_empty() || !term.chars().all(char::is_alphanumeric) {
            continue;
        }
        let pattern = &mut patterns[index];
        *pattern = Some(match pattern.take() {
            Some(others) => format!("{others} OR \"{term}\""),
            None => format!("\"{term}\""),
        });
    }
    patterns
}

impl<'a> Search<'a> {
    /// Returns `None` if the scope may not access the thread.
    fn new(
        shared: &'a Shared,
        connection: &'a Connection,
        scope: &Scope,
        query: &'a SearchQuery,
        now: Timestamp,
    ) -> Result<Option<Self>> {
        let numbers = owners::resolve_scope(shared, connection, scope)?;
        let thread = match query.thread {
            None => None,
            Some(thread) => match threads::find_row(shared, connection, scope, thread, now)? {
                None => return Ok(None),
                Some((row, _)) if !metadata::thread_passes(connection, row.number, &query.metadata)? => {
                    return Ok(None);
                }
                Some((row, _)) => Some(row),
            },
        };
        let passing = match &thread {
            None if !query.metadata.is_empty() => {
                Some(metadata::passing_threads(connection, &query.metadata, numbers)?)
            }
            _ => None,
        };
        Ok(Some(Self { connection, shared, numbers, thread, query, now, passing, threads: RefCell::default() }))
    }

    fn run(&self) -> Result<SearchOutcome> {
        let documents = self.count_documents()?;
        let patterns = patterns(self.query);
        // The candidates for a single term are its newest messages, so that few positions are enough, unless messages no longer exist.
        let is_single = patterns.iter().flatten().count() == 1 && self.thread.is_none();
        let few = i64::try_from((2 * self.query.limit).max(RARE_TERM_POSITIONS)).unwrap_or(i64::MAX);
        if is_single && few < MAX_POSITIONS {
            let lists = self.term_lists(&patterns, few)?;
            let is_complete = lists.iter().all(|list| (list.keys.len() as i64) < few);
            let (hits, frequencies) = self.rank(lists, documents)?;
            if is_complete || hits.len() == self.query.limit {
                return self.outcome(hits, documents, frequencies);
            }
        }
        let (hits, frequencies) = self.rank(self.term_lists(&patterns, MAX_POSITIONS)?, documents)?;
        self.outcome(hits, documents, frequencies)
    }

    fn outcome(&self, hits: Vec<FoundHit>, documents: u64, frequencies: Vec<u64>) -> Result<SearchOutcome> {
        let (unindexed, unindexed_messages) = self.unindexed_threads()?;
        let messages = if self.query.reads_messages { self.read_messages(&hits)? } else { Vec::new() };
        let hits = hits.into_iter().map(|found| found.hit).collect();
        let answer = SearchAnswer { hits, messages, documents, frequencies, unindexed, ..SearchAnswer::default() };
        Ok(SearchOutcome { answer, is_far_behind: unindexed_messages > MAX_UNINDEXED })
    }

    /// Returns the best positions, and the frequencies of the terms.
    fn rank(&self, lists: Vec<TermList>, documents: u64) -> Result<(Vec<FoundHit>, Vec<u64>)> {
        let mut frequencies = Vec::with_capacity(lists.len());
        let mut scored: Vec<(i64, f64)> = Vec::new();
        for list in lists {
            let rarity = rarity(documents, list.frequency);
            frequencies.push(list.frequency);
            scored.extend(list.keys.into_iter().map(|key| (key, rarity)));
        }
        // The sort is stable, so that rarities are summed in the order of the terms, and equal sets of terms get equal scores.
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
        Ok((self.live_hits(ranked.into_iter().map(|(key, _)| key))?, frequencies))
    }

    /// Finds the positions of each pattern: in the whole scope at most `limit`.
    fn term_lists(&self, patterns: &[Option<String>], limit: i64) -> Result<Vec<TermList>> {
        let lists = patterns.iter().map(|pattern| match (pattern, &self.thread) {
            (None, _) => Ok(TermList::complete(Vec::new())),
            (Some(pattern), None) => Ok(TermList::complete(self.keys_in_scope(pattern, limit)?)),
            (Some(pattern), Some(thread)) => self.list_in_thread(thread, pattern),
        });
        let mut lists = lists.collect::<Result<Vec<_>>>()?;
        let Some(thread) = &self.thread else { return Ok(lists) };
        let mut found: usize = lists.iter().filter(|list| !list.is_truncated).map(|list| list.keys.len()).sum();
        let mut truncated: Vec<(&mut TermList, &String)> = lists
            .iter_mut()
            .zip(patterns)
            .filter_map(|(list, pattern)| Some((list, pattern.as_ref()?)).filter(|(list, _)| list.is_truncated))
            .collect();
        // Rare terms first, because they contribute most to the score. Once there are enough hits, longer lists of the common
        // terms are not worth their cost.
        truncated.sort_by_key(|(list, _)| list.frequency);
        for (list, pattern) in truncated {
            if found >= self.query.limit {
                break;
            }
            let density = list.frequency as f64 / thread.message_count.max(1) as f64;
            *list = self.newest_in_thread(thread, pattern, MAX_POSITIONS, density)?;
            found += list.keys.len();
        }
        Ok(lists)
    }

    /// Finds the positions in a thread that match a pattern; only the newest positions if there are many.
    fn list_in_thread(&self, thread: &ThreadRow, pattern: &str) -> Result<TermList> {
        let (first, last) = (row::key(thread.number, thread.positions.first_seq), row::last_key(thread.number));
        // Most terms are so rare that this finds all of their positions.
        let keys = self.find_matching(OLDEST_FIRST, pattern, first, last, FIRST_POSITIONS)?;
        match keys.last() {
            Some(newest) if keys.len() as i64 == FIRST_POSITIONS => {
                let density =
                    keys.len() as f64 / (row::position_of_key(*newest) - thread.positions.first_seq + 1) as f64;
                self.newest_in_thread(thread, pattern, FIRST_POSITIONS, density)
            }
            _ => Ok(TermList::complete(keys)),
        }
    }

    /// Finds the newest matching positions in a thread, at most `limit`. If there are more, the total number is extrapolated from the
    /// density of the positions that were found. `density` is the estimated proportion of messages that match.
    fn newest_in_thread(&self, thread: &ThreadRow, pattern: &str, limit: i64, density: f64) -> Result<TermList> {
        let (first_seq, end) = (thread.positions.first_seq, thread.positions.seq + 1);
        let all = end.saturating_sub(first_seq);
        let last = row::last_key(thread.number);
        // FTS5 scans forwards three times as fast as backwards. The forward scan starts where, at the given density, 1.5 times
        // `limit` matches should follow.
        let reach = ((limit as f64 * 1.5 / density) as u64).min(all);
        let mut keys =
            self.find_matching(OLDEST_FIRST, pattern, row::key(thread.number, end - reach), last, 2 * limit)?;
        let is_complete = (keys.len() as i64) < 2 * limit;
        if is_complete && (keys.len() as i64 >= limit || reach == all) {
            keys.reverse();
            keys.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        } else {
            keys = self.find_matching(NEWEST_FIRST, pattern, row::key(thread.number, first_seq), last, limit)?;
        }
        let mut list = TermList::complete(keys);
        if let Some(oldest) = list.keys.last().filter(|_| list.keys.len() as i64 == limit) {
            let scanned = end.saturating_sub(row::position_of_key(*oldest)).max(1);
            list.frequency =
                (list.frequency * all / scanned).clamp(list.frequency, thread.message_count.max(list.frequency));
            list.is_truncated = true;
        }
        Ok(list)
    }

    /// Returns the approximate number of messages in the scope. A count is cached until the number of later commits exceeds a tenth of
    /// the count.
    fn count_documents(&self) -> Result<u64> {
        if let Some(thread) = self.thread {
            return Ok(thread.message_count);
        }
        let (sql, number) = match self.numbers.user_no {
            Some(user_no) => ("SELECT coalesce(sum(message_count), 0) FROM threads WHERE owner_no = ?1", user_no),
            // At most 20,000 threads of a tenant are counted.
            None => (
                "SELECT coalesce(sum(message_count), 0) FROM \
                 (SELECT message_count FROM threads WHERE tenant_no = ?1 LIMIT 20000)",
                self.numbers.tenant_no,
            ),
        };
        let key = (self.numbers.user_no.is_some(), number);
        let stamp = threads::next_stamp(self.connection)?.unsigned_abs();
        if let Some((count, counted_at)) = lock(&self.shared.counts).get(&key)
            && stamp.saturating_sub(*counted_at) <= count / 10
        {
            return Ok(*count);
        }
        let count =
            self.connection.prepare_cached(sql)?.query_row([number], |row| row.get::<_, i64>(0))?.unsigned_abs();
        let mut counts = lock(&self.shared.counts);
        if counts.len() >= MAX_COUNTS {
            counts.clear();
        }
        counts.insert(key, (count, stamp));
        Ok(count)
    }

    /// Finds the newest positions in the scope that match a pattern, at most `limit`.
    fn keys_in_scope(&self, pattern: &str, limit: i64) -> Result<Vec<i64>> {
        if self.passing.is_none()
            && let Some(keys) = self.scan_for_scope(pattern, usize::try_from(limit).unwrap_or(usize::MAX))?
        {
            return Ok(keys);
        }
        let scope = match self.numbers.user_no {
            Some(user_no) => format!("{OWNER_MARK}{user_no}"),
            None => format!("{TENANT_MARK}{}", self.numbers.tenant_no),
        };
        self.find_matching(NEWEST_FIRST, &format!("\"{scope}\" AND ({pattern})"), 0, i64::MAX, limit)
    }

    /// Finds the newest positions in the scope that match a pattern, at most `limit`, among the positions of all scopes. If the pattern
    /// is rare, or the scope has most of the positions, this is several times as fast as intersecting the long lists of the pattern and
    /// of the scope. Returns `None` in other cases.
    fn scan_for_scope(&self, pattern: &str, limit: usize) -> Result<Option<Vec<i64>>> {
        let mut statement = self.connection.prepare_cached(NEWEST_FIRST)?;
        let mut rows = statement.query(params![pattern, 0, i64::MAX, i64::MAX])?;
        let mut newest: Vec<i64> = Vec::with_capacity(RARE_TERM_POSITIONS);
        while newest.len() < RARE_TERM_POSITIONS
            && let Some(row) = rows.next()?
        {
            newest.push(row.get(0)?);
        }
        if newest.len() == RARE_TERM_POSITIONS && !self.has_most_of(&newest)? {
            return Ok(None);
        }
        let mut keys = Vec::new();
        for key in newest {
            if self.searched_thread(row::thread_no_of_key(key))?.is_some() {
                keys.push(key);
            }
        }
        let mut skipped = 0;
        while keys.len() < limit
            && let Some(row) = rows.next()?
        {
            let key = row.get(0)?;
            if self.searched_thread(row::thread_no_of_key(key))?.is_some() {
                keys.push(key);
            } else {
                skipped += 1;
                if skipped > keys.len() {
                    return Ok(None);
                }
            }
        }
        keys.truncate(limit);
        Ok(Some(keys))
    }

    /// Whether a sample of some positions is mostly in the scope.
    fn has_most_of(&self, keys: &[i64]) -> Result<bool> {
        let mut in_scope = 0;
        for key in keys.iter().step_by(keys.len() / SAMPLED_POSITIONS) {
            in_scope += usize::from(self.searched_thread(row::thread_no_of_key(*key))?.is_some());
        }
        Ok(in_scope * 4 > SAMPLED_POSITIONS * 3)
    }

    /// Returns the first matching positions in threads that pass the filter, at most `limit`, in the order of the statement `sql`.
    fn find_matching(&self, sql: &str, pattern: &str, first: i64, last: i64, limit: i64) -> Result<Vec<i64>> {
        let mut statement = self.connection.prepare_cached(sql)?;
        let Some(passing) = &self.passing else {
            let keys = statement.query_map(params![pattern, first, last, limit], |row| row.get(0))?;
            return Ok(keys.collect::<Result<_, _>>()?);
        };
        // The limit counts only positions that pass, so that other threads do not use it up.
        let keys = statement.query_map(params![pattern, first, last, i64::MAX], |row| row.get(0))?;
        let is_passing = |key: &rusqlite::Result<i64>| match key {
            Ok(key) => passing.contains(&row::thread_no_of_key(*key)),
            Err(_) => true,
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        Ok(keys.filter(is_passing).take(limit).collect::<Result<_, _>>()?)
    }

    /// Converts keys into hits, up to the query's limit. Skips messages that no longer exist or that the scope may not read.
    fn live_hits(&self, keys: impl Iterator<Item = i64>) -> Result<Vec<FoundHit>> {
        let mut hits = Vec::new();
        for key in keys {
            let seq = row::position_of_key(key);
            let thread = self.searched_thread(row::thread_no_of_key(key))?;
            if let Some((thread, _)) = thread.filter(|(_, first_seq)| seq >= *first_seq) {
                hits.push(FoundHit { key, hit: SearchHit { thread, seq } });
                if hits.len() == self.query.limit {
                    break;
                }
            }
        }
        Ok(hits)
    }

    /// Reads the messages of hits. Omits those that cannot be decoded.
    fn read_messages(&self, hits: &[FoundHit]) -> Result<Vec<(ThreadId, Message)>> {
        let sql = concat!("SELECT ", message_columns!(), " FROM messages WHERE position = ?1 AND body IS NOT NULL");
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut messages = Vec::with_capacity(hits.len());
        for FoundHit { key, hit } in hits {
            let mut rows = statement.query([key])?;
            if let Some(row) = rows.next()?
                && let Ok(message) = row::message(row)
            {
                messages.push((hit.thread, message));
            }
        }
        Ok(messages)
    }

    /// Returns the id and the first position of a thread; `None` if it no longer exists or is not searched.
    fn searched_thread(&self, thread_no: i64) -> Result<Option<(ThreadId, u64)>> {
        if let Some(thread) = self.threads.borrow().get(&thread_no) {
            return Ok(*thread);
        }
        let sql = "SELECT id, first_seq FROM threads WHERE no = ?1 AND tenant_no = ?2 AND restoring = 0 \
                   AND (?4 IS NULL OR owner_no = ?4) AND (expires_at IS NULL OR expires_at > ?3)";
        let mut statement = self.connection.prepare_cached(sql)?;
        // A search in one thread includes a shared thread, which the user does not own.
        let owner_no = if self.thread.is_some() { None } else { self.numbers.user_no };
        let arguments = params![thread_no, self.numbers.tenant_no, self.now.as_micros(), owner_no];
        let mut rows = statement.query(arguments)?;
        let found = match rows.next()? {
            Some(row) => Some((ThreadId(row::uuid(row, 0)?), row::unsigned(row, 1)?)),
            None => None,
        };
        self.threads.borrow_mut().insert(thread_no, found);
        Ok(found)
    }

    /// Lists the threads with unindexed messages, and returns the total number of these messages.
    fn unindexed_threads(&self) -> Result<(Vec<UnindexedThread>, u64)> {
        // Few threads are unindexed. The plus sign keeps SQLite from reading all threads of the tenant instead.
        let sql = "SELECT t.id, coalesce(i.seq, 0), t.seq, t.no FROM threads t LEFT JOIN indexed i ON i.thread_no = t.no \
                   WHERE t.stamp > ?1 AND t.seq > coalesce(i.seq, 0) AND t.seq >= t.first_seq AND +t.tenant_no = ?2 \
                   AND (?3 IS NULL OR t.owner_no = ?3) AND (?4 IS NULL OR t.no = ?4) AND t.restoring = 0 \
                   AND (t.expires_at IS NULL OR t.expires_at > ?5)";
        let watermark = watermark(self.connection)?;
        // A search in one thread includes a shared thread, as in `searched_thread`.
        let owner_no = if self.thread.is_some() { None } else { self.numbers.user_no };
        let thread_no = self.thread.map(|thread| thread.number);
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows =
            statement.query(params![watermark, self.numbers.tenant_no, owner_no, thread_no, self.now.as_micros()])?;
        let (mut threads, mut messages) = (Vec::new(), 0);
        while let Some(row) = rows.next()? {
            if self
                .passing
                .as_ref()
                .is_some_and(|passing| !row.get(3).is_ok_and(|thread_no| passing.contains(&thread_no)))
            {
                continue;
            }
            let indexed_seq = row::unsigned(row, 1)?;
            messages += row::unsigned(row, 2)?.saturating_sub(indexed_seq);
            threads.push(UnindexedThread { thread: ThreadId(row::uuid(row, 0)?), indexed_seq });
        }
        Ok((threads, messages))
    }
}

/// Returns the inverse document frequency of a term, as in BM25.
pub(crate) fn rarity(documents: u64, frequency: u64) -> f64 {
    let frequency = frequency as f64;
    (1.0 + (documents as f64 - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
}
