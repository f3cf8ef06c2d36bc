//! Finding what was said.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

use futures::{StreamExt, TryStreamExt};
use threadkeep_core::{
    Behind, Collection, Message, MessageName, Role, Scope, SearchAnswer, SearchHit, SearchQuery, ThreadId, Timestamp,
    limits, text,
};

use crate::messages::READ_PAGE;
use crate::ranking::{Statistics, TermCounts, bm25};
use crate::retry::repeat_simply;
use crate::{Memory, MemoryError, Result, Snippet};

/// Terms of a query that are looked at.
const TERMS: usize = 32;
/// Candidates that an index is asked for at least, and at most.
const CANDIDATES: (usize, usize) = (200, 1_000);
/// Messages that are read because the index does not hold them yet.
const TAIL_MESSAGES: usize = 5_000;
/// Messages that one step of catching up indexes.
const CATCH_UP_MESSAGES: usize = 1_000;
/// Steps of catching up that one search takes.
const CATCH_UP_STEPS: usize = 1_000;
/// Threads that are read at a time.
const THREADS_AT_ONCE: usize = 8;

/// How to search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Only this thread.
    pub thread: Option<ThreadId>,
    /// At most so many hits (1 to [`limits::PAGE`]). Default: 20.
    pub limit: usize,
    /// Only messages of these roles; empty for all.
    pub roles: Vec<Role>,
    /// Only messages said at or after this instant.
    pub since: Option<Timestamp>,
    /// Only messages said before this instant.
    pub until: Option<Timestamp>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { thread: None, limit: 20, roles: Vec::new(), since: None, until: None }
    }
}

/// A message that was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The thread that it stands in.
    pub thread: ThreadId,
    /// The message.
    pub message: Message,
    /// How well it answers: larger is better. Comparable within one search.
    pub score: f64,
    /// The piece that shows why.
    pub snippet: Snippet,
}

/// What was found, and what could not be looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The best first; of equally good ones the newer first.
    pub hits: Vec<Hit>,
    /// Whether there were more candidates than are ever ranked: narrow the search to see them.
    pub truncated: bool,
    /// Threads whose newest messages are neither indexed nor could be read within bounds: search again later.
    pub unsearched: Vec<Behind>,
}

impl Memory {
    /// Searches what was said in the threads that a scope has in full: a user's own, for a tenant all.
    ///
    /// A message is found by any word of the query, in any form ([`text::terms`]). What the index does not hold yet is
    /// read from the log, so a message can be found as soon as it is stored.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for the limit, and those of the store.
    pub async fn search(&self, scope: &Scope, query: &str, options: &SearchOptions) -> Result<SearchResults> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "0; ask for at least 1"));
        }
        limits::check_bytes("limit", options.limit, limits::PAGE)?;
        let mut terms = text::distinct_terms(query);
        terms.truncate(TERMS);
        if terms.is_empty() {
            return Ok(SearchResults::default());
        }
        let candidates = self.candidates(scope, &terms, options).await?;
        Ok(rank(candidates, &terms, options))
    }

    async fn candidates(&self, scope: &Scope, terms: &[String], options: &SearchOptions) -> Result<Candidates> {
        let limit = if options.is_filtered() {
            CANDIDATES.1
        } else {
            options.limit.saturating_mul(5).clamp(CANDIDATES.0, CANDIDATES.1)
        };
        let (collection, terms) = (Collection::Messages, terms.to_vec());
        let query = SearchQuery { collection, terms, vector: None, thread: options.thread, limit };
        let mut answer = self.ask_index(scope, &query).await?;
        let mut tail = self.tail(scope, &answer.behind).await?;
        if !tail.unread.is_empty() && self.catch_up().await? {
            answer = self.ask_index(scope, &query).await?;
            tail = self.tail(scope, &answer.behind).await?;
        }
        let truncated = answer.hits.len() >= limit;
        let indexed = self.read_hits(scope, answer.hits).await?;
        let statistics = Statistics { documents: answer.documents, frequencies: answer.frequencies };
        Ok(Candidates { indexed, tail, statistics, truncated })
    }

    async fn ask_index(&self, scope: &Scope, query: &SearchQuery) -> Result<SearchAnswer> {
        let now = self.now();
        Ok(repeat_simply(|| self.search_index().search(scope, query, now)).await?)
    }

    /// Has the index take in what is too much to be read. Says whether it took in anything.
    async fn catch_up(&self) -> Result<bool> {
        let mut has_indexed = false;
        for _ in 0..CATCH_UP_STEPS {
            let Ok(step) = repeat_simply(|| self.search_index().catch_up(CATCH_UP_MESSAGES)).await else {
                // A store that cannot write now (one opened for reading, say) still answers with what it has.
                return Ok(has_indexed);
            };
            has_indexed |= step.indexed > 0;
            if step.done || step.indexed == 0 {
                break;
            }
        }
        Ok(has_indexed)
    }

    async fn read_hits(&self, scope: &Scope, hits: Vec<SearchHit>) -> Result<Vec<Found>> {
        let mut by_thread: BTreeMap<ThreadId, Vec<MessageName>> = BTreeMap::new();
        for hit in hits {
            by_thread.entry(hit.thread).or_default().push(MessageName::Seq(hit.seq));
        }
        let reads = by_thread.into_iter().map(|(thread, names)| self.read_hits_of(scope, thread, names));
        let found: Vec<_> = futures::stream::iter(reads).buffer_unordered(THREADS_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn read_hits_of(&self, scope: &Scope, thread: ThreadId, names: Vec<MessageName>) -> Result<Vec<Found>> {
        match self.find_messages(scope, thread, &names).await {
            // Deleted since the index was asked.
            Err(error) if error.is_thread_not_found() => Ok(Vec::new()),
            found => Ok(found?.into_iter().map(|message| Found { thread, message }).collect()),
        }
    }

    /// Reads what the index does not hold yet, up to a bound over all threads.
    async fn tail(&self, scope: &Scope, behind: &[Behind]) -> Result<Tail> {
        let mut tail = Tail::default();
        let mut room = TAIL_MESSAGES;
        for behind in behind {
            let mut after = Some(behind.indexed_seq);
            while let Some(seq) = after {
                if room == 0 {
                    tail.unread.push(Behind { thread: behind.thread, indexed_seq: seq });
                    break;
                }
                let following = match self.page_after(scope, behind.thread, seq, READ_PAGE.min(room)).await {
                    Err(error) if error.is_thread_not_found() => break,
                    following => following?,
                };
                room -= following.page.messages.len().min(room);
                let found = following.page.messages.into_iter();
                tail.found.extend(found.map(|message| Found { thread: behind.thread, message }));
                after = following.next;
            }
        }
        Ok(tail)
    }
}

impl SearchOptions {
    fn is_filtered(&self) -> bool {
        !self.roles.is_empty() || self.since.is_some() || self.until.is_some()
    }

    fn wants(&self, message: &Message) -> bool {
        (self.roles.is_empty() || self.roles.contains(&message.content.role))
            && self.since.is_none_or(|since| message.created_at >= since)
            && self.until.is_none_or(|until| message.created_at < until)
    }
}

struct Found {
    thread: ThreadId,
    message: Message,
}

#[derive(Default)]
struct Tail {
    found: Vec<Found>,
    unread: Vec<Behind>,
}

struct Candidates {
    indexed: Vec<Found>,
    tail: Tail,
    statistics: Statistics,
    truncated: bool,
}

fn rank(candidates: Candidates, terms: &[String], options: &SearchOptions) -> SearchResults {
    let Candidates { indexed, tail, mut statistics, truncated } = candidates;
    statistics.frequencies.resize(terms.len(), 0);
    statistics.documents += tail.found.len() as u64;
    let mut seen: HashSet<(ThreadId, u64)> = indexed.iter().map(|found| (found.thread, found.message.seq)).collect();
    let mut counted: Vec<(Found, TermCounts)> = indexed.into_iter().map(|found| count(found, terms)).collect();
    for found in tail.found {
        // The index may have taken a message in since it said that it was behind.
        if seen.insert((found.thread, found.message.seq)) {
            let (found, counts) = count(found, terms);
            for (frequency, occurrences) in statistics.frequencies.iter_mut().zip(&counts.counts) {
                *frequency += u64::from(*occurrences > 0);
            }
            counted.push((found, counts));
        }
    }
    counted.retain(|(found, counts)| !counts.is_miss() && options.wants(&found.message));
    let (found, counts): (Vec<Found>, Vec<TermCounts>) = counted.into_iter().unzip();
    let scores = bm25(&counts, &statistics);
    let mut scored: Vec<(f64, Found)> = scores.into_iter().zip(found).collect();
    scored.sort_by(|(one_score, one), (other_score, other)| {
        let newer = |found: &Found| (Reverse(found.message.created_at), Reverse(found.message.seq), found.thread);
        other_score.total_cmp(one_score).then_with(|| newer(one).cmp(&newer(other)))
    });
    scored.truncate(options.limit);
    let hits = scored.into_iter().map(|(score, Found { thread, message })| {
        let snippet = Snippet::of(&message.plain_text(), terms);
        Hit { thread, message, score, snippet }
    });
    SearchResults { hits: hits.collect(), truncated, unsearched: tail.unread }
}

fn count(found: Found, terms: &[String]) -> (Found, TermCounts) {
    let counts = TermCounts::of(&found.message.plain_text(), terms);
    (found, counts)
}
