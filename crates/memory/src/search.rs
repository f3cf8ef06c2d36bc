//! Searching messages.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use threadkeep_context::recall::{Question, Statistics, bm25};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, MetadataFilter, Role, Scope, ThreadId, Timestamp, UnindexedThread, limits};

use crate::candidates::{Candidate, Candidates, SearchArea};
use crate::{Memory, MemoryError, Result, Snippet};

/// Range of the number of candidates that are requested from the index.
const CANDIDATES: RangeInclusive<usize> = 200..=1_000;

/// Options for a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchOptions {
    /// Only messages in this thread. Default: all threads to which the scope has full access.
    pub thread: Option<ThreadId>,
    /// Only messages in threads whose metadata passes.
    pub metadata: MetadataFilter,
    /// Only messages whose own metadata passes.
    pub message_metadata: MetadataFilter,
    /// Maximum number of hits (1 to [`limits::PAGE`]). Default: 20.
    pub limit: usize,
    /// Only messages with these roles; empty for all roles.
    pub roles: Vec<Role>,
    /// Only messages created at or after this time.
    pub since: Option<Timestamp>,
    /// Only messages created before this time.
    pub until: Option<Timestamp>,
}

impl Default for SearchOptions {
    fn default() -> Self {
        Self {
            thread: None,
            metadata: MetadataFilter::default(),
            message_metadata: MetadataFilter::default(),
            limit: 20,
            roles: Vec::new(),
            since: None,
            until: None,
        }
    }
}

/// A message that matches a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The thread of the message.
    pub thread: ThreadId,
    /// The message.
    pub message: Message,
    /// The relevance: larger is better. Only comparable within one search.
    pub score: f64,
    /// An excerpt of the message, with the matches.
    pub snippet: Snippet,
}

/// The results of a search.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The hits, best first. Hits with equal scores are in the order of their age, newest first.
    pub hits: Vec<Hit>,
    /// Whether there were more candidates than can be ranked. If so, narrow the search to find all matches.
    pub truncated: bool,
    /// Threads whose newest messages were not searched, because too many messages are not indexed yet. Retry later.
    pub unsearched: Vec<UnindexedThread>,
}

impl Memory {
    /// Searches the messages in the threads to which a scope has full access: the user's own threads, or all threads of the
    /// tenant.
    ///
    /// A message matches if it contains any word of the query, in any inflected form and in either of the supported languages
    /// ([`threadkeep_core::text`]). Messages that are not indexed yet are read from their threads, so a message can be found as
    /// soon as it is stored. A message with copies in forks is found once.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid limit or filter; errors from the store.
    pub async fn search(&self, scope: &Scope, query: &str, options: &SearchOptions) -> Result<SearchResults> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "must be at least 1"));
        }
        limits::check_at_most("limit", options.limit, limits::PAGE)?;
        options.metadata.check()?;
        options.message_metadata.check()?;
        let question = Question::of_all_words(query);
        if question.is_empty() {
            return Ok(SearchResults::default());
        }
        let max_candidates = if options.is_filtered() {
            *CANDIDATES.end()
        } else if question.is_one_word() {
            // All candidates contain the word, and the index returns the newest of them, so fewer candidates are enough.
            options.limit.saturating_mul(2).min(*CANDIDATES.end())
        } else {
            options.limit.saturating_mul(5).clamp(*CANDIDATES.start(), *CANDIDATES.end())
        };
        let candidates = self.candidates(scope, &question, options.area(), max_candidates).await?;
        let Candidates { found, statistics, truncated, unread } = candidates;
        let scored = score_and_sort(found, &statistics, &question, options);
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
    fn area(&self) -> SearchArea<'_> {
        SearchArea { thread: self.thread, metadata: &self.metadata }
    }

    fn is_filtered(&self) -> bool {
        !self.message_metadata.is_empty() || !self.roles.is_empty() || self.since.is_some() || self.until.is_some()
    }

    fn matches(&self, message: &Message) -> bool {
        (self.roles.is_empty() || self.roles.contains(&message.content.role))
            && self.message_metadata.matches(&message.content.metadata)
            && self.since.is_none_or(|since| message.created_at >= since)
            && self.until.is_none_or(|until| message.created_at < until)
    }
}

fn message_of((_, candidate): &(f64, Candidate)) -> (ThreadId, &Message) {
    (candidate.thread, &candidate.message)
}

/// Scores the candidates that match, and sorts them, best first.
fn score_and_sort(
    found: Vec<Candidate>,
    statistics: &Statistics,
    question: &Question,
    options: &SearchOptions,
) -> Vec<(f64, Candidate)> {
    let counted = found.into_iter().map(|candidate| {
        let counts = question.count(&candidate.message.plain_text());
        (candidate, counts)
    });
    let is_hit =
        |(candidate, counts): &(Candidate, TermCounts)| !counts.is_miss() && options.matches(&candidate.message);
    let (found, counts): (Vec<Candidate>, Vec<TermCounts>) = counted.filter(is_hit).unzip();
    let mut scored: Vec<(f64, Candidate)> = bm25(&counts, statistics).into_iter().zip(found).collect();
    scored.sort_by(|(a_score, a), (b_score, b)| {
        let newest_first = |candidate: &Candidate| {
            (Reverse(candidate.message.created_at), Reverse(candidate.message.seq), candidate.thread)
        };
        b_score.total_cmp(a_score).then_with(|| newest_first(a).cmp(&newest_first(b)))
    });
    scored
}
