//! Finding what was said.

use std::cmp::Reverse;

use threadkeep_context::recall::{Question, Statistics, bm25};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, Role, Scope, ThreadId, Timestamp, UnindexedThread, limits};

use crate::candidates::{Candidates, Found};
use crate::{Memory, MemoryError, Result, Snippet};

/// Candidates that an index is asked for at least, and at most.
const CANDIDATES: (usize, usize) = (200, 1_000);

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
    pub unsearched: Vec<UnindexedThread>,
}

impl Memory {
    /// Searches what was said in the threads that a scope has in full: a user's own, for a tenant all.
    ///
    /// A message that forks of a thread share is found once, in the first of them. A message is found by any word of the query, in any form and in either language
    /// ([`threadkeep_core::text`]). What the index does not hold yet is
    /// read from the log, so a message can be found as soon as it is stored.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for the limit, and those of the store.
    pub async fn search(&self, scope: &Scope, query: &str, options: &SearchOptions) -> Result<SearchResults> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "0; ask for at least 1"));
        }
        limits::check_bytes("limit", options.limit, limits::PAGE)?;
        let question = Question::of_all_words(query);
        if question.is_empty() {
            return Ok(SearchResults::default());
        }
        let most = if options.is_filtered() {
            CANDIDATES.1
        } else if question.is_one_word() {
            // All candidates hold the word, and the index gives the newest of them: there is little left to rank.
            options.limit.saturating_mul(2).min(CANDIDATES.1)
        } else {
            options.limit.saturating_mul(5).clamp(CANDIDATES.0, CANDIDATES.1)
        };
        let candidates = self.candidates(scope, &question, options.thread, most).await?;
        let Candidates { found, statistics, truncated, unread } = candidates;
        let scored = rank(found, &statistics, &question, options);
        let mut scored = self.leave_out_copies(scope, scored, options.thread, message_of).await?;
        scored.truncate(options.limit);
        let terms = question.terms();
        let hits = scored.into_iter().map(|(score, Found { thread, message })| {
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

    fn wants(&self, message: &Message) -> bool {
        (self.roles.is_empty() || self.roles.contains(&message.content.role))
            && self.since.is_none_or(|since| message.created_at >= since)
            && self.until.is_none_or(|until| message.created_at < until)
    }
}

fn message_of((_, found): &(f64, Found)) -> (ThreadId, &Message) {
    (found.thread, &found.message)
}

/// What was found, the best first.
fn rank(found: Vec<Found>, statistics: &Statistics, question: &Question, options: &SearchOptions) -> Vec<(f64, Found)> {
    let counted = found.into_iter().map(|found| {
        let counts = question.count(&found.message.plain_text());
        (found, counts)
    });
    let is_asked = |(found, counts): &(Found, TermCounts)| !counts.is_miss() && options.wants(&found.message);
    let (found, counts): (Vec<Found>, Vec<TermCounts>) = counted.filter(is_asked).unzip();
    let mut scored: Vec<(f64, Found)> = bm25(&counts, statistics).into_iter().zip(found).collect();
    scored.sort_by(|(one_score, one), (other_score, other)| {
        let newer = |found: &Found| (Reverse(found.message.created_at), Reverse(found.message.seq), found.thread);
        other_score.total_cmp(one_score).then_with(|| newer(one).cmp(&newer(other)))
    });
    scored
}
