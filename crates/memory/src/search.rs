//! Searching messages.

use std::cmp::Reverse;

use threadkeep_context::recall::{Question, Statistics, bm25};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, Role, Scope, ThreadId, Timestamp, UnindexedThread, limits};

use crate::candidates::{Candidate, Candidates};
use crate::{Memory, MemoryError, Result, Snippet};

/// Minimum and maximum number of candidates requested from the index.
const CANDIDATES: (usize, usize) = (200, 1_000);

/// Options for a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Only messages of this thread.
    pub thread: Option<ThreadId>,
    /// Maximum number of hits (1 to [`limits::PAGE`]). Default: 20.
    pub limit: usize,
    /// Only messages of these roles; empty for all.
    pub roles: Vec<Role>,
    /// Only messages created at or after this time.
    pub since: Option<Timestamp>,
    /// Only messages created before this time.
    pub until: Option<Timestamp>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self { thread: None, limit: 20, roles: Vec::new(), since: None, until: None }
    }
}

/// A message that matches a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The thread of the message.
    pub thread: ThreadId,
    /// The message.
    pub message: Message,
    /// Its relevance: larger is better. Comparable within one search.
    pub score: f64,
    /// The excerpt with the matches.
    pub snippet: Snippet,
}

/// The results of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The best first; those with equal scores, the newest first.
    pub hits: Vec<Hit>,
    /// Whether there were more candidates than can be ranked: narrow the search to find them.
    pub truncated: bool,
    /// Threads whose newest messages are not indexed and could not be read within limits: search again later.
    pub unsearched: Vec<UnindexedThread>,
}

impl Memory {
    /// Searches the messages of the threads to which a scope has full access: a user's own threads, all threads of a tenant.
    ///
    /// A message matches if it contains any word of the query, in any inflected form and in either language
    /// ([`threadkeep_core::text`]). Messages that are not indexed yet are read from the log, so a message can be found as soon as
    /// it is stored. A message that forks of a thread share is found once, in the first of them.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for the limit; those of the store.
    pub async fn search(&self, scope: &Scope, query: &str, options: &SearchOptions) -> Result<SearchResults> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "must be at least 1"));
        }
        limits::check_bytes("limit", options.limit, limits::PAGE)?;
        let question = Question::of_all_words(query);
        if question.is_empty() {
            return Ok(SearchResults::default());
        }
        let max_candidates = if options.is_filtered() {
            CANDIDATES.1
        } else if question.is_one_word() {
            // All candidates contain the word, and the index returns the newest of them, so fewer are enough.
            options.limit.saturating_mul(2).min(CANDIDATES.1)
        } else {
            options.limit.saturating_mul(5).clamp(CANDIDATES.0, CANDIDATES.1)
        };
        let candidates = self.candidates(scope, &question, options.thread, max_candidates).await?;
        let Candidates { found, statistics, truncated, unread } = candidates;
        let scored = rank(found, &statistics, &question, options);
        let mut scored = self.remove_duplicates(scope, scored, options.thread, message_of).await?;
        scored.truncate(options.limit);
        let terms = question.terms();
        let hits = scored.into_iter().map(|(score, Candidate { thread, message })| {
            let snippet = Snippet::of(&message.plain_text(), &terms);
            Hit { thread, message, score, snippet }
        });
        Ok(SearchResults { hits: hits.collect(), truncated, unsearched: unread })
    }
}

impl SearchOptions {
    fn is_filtered(&self) -> bool {
        !self.roles.is_empty() || self.since.is_some() || self.until.is_some()
    }

    fn matches(&self, message: &Message) -> bool {
        (self.roles.is_empty() || self.roles.contains(&message.content.role))
            && self.since.is_none_or(|since| message.created_at >= since)
            && self.until.is_none_or(|until| message.created_at < until)
    }
}

fn message_of((_, candidate): &(f64, Candidate)) -> (ThreadId, &Message) {
    (candidate.thread, &candidate.message)
}

/// Scores the candidates and sorts them, the best first.
fn rank(
    found: Vec<Candidate>,
    statistics: &Statistics,
    question: &Question,
    options: &SearchOptions,
) -> Vec<(f64, Candidate)> {
    let counted = found.into_iter().map(|found| {
        let counts = question.count(&found.message.plain_text());
        (found, counts)
    });
    let is_hit = |(found, counts): &(Candidate, TermCounts)| !counts.is_miss() && options.matches(&found.message);
    let (found, counts): (Vec<Candidate>, Vec<TermCounts>) = counted.filter(is_hit).unzip();
    let mut scored: Vec<(f64, Candidate)> = bm25(&counts, statistics).into_iter().zip(found).collect();
    scored.sort_by(|(one_score, one), (other_score, other)| {
        let newer = |found: &Candidate| (Reverse(found.message.created_at), Reverse(found.message.seq), found.thread);
        other_score.total_cmp(one_score).then_with(|| newer(one).cmp(&newer(other)))
    });
    scored
}
