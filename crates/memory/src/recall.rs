//! Recalling messages that answer a question. Reads a limited number of messages; [`threadkeep_context::recall`] ranks them.

mod embedding;
mod provenance;

use std::collections::{BTreeMap, HashSet};
use std::ops::RangeInclusive;

use threadkeep_context::recall::{
    Question, RankCandidate, Ranked, ScoreParts, Statistics, Weights, rank, rank_by_words,
};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, MetadataFilter, Scope, SearchHit, ThreadId, UnindexedThread, limits};

use crate::candidates::{Candidate, Candidates, SearchArea};
use crate::{Memory, MemoryError, Result};
pub use embedding::EmbedderOutcome;

/// Range of the number of candidates that are requested from the index.
const CANDIDATES: RangeInclusive<usize> = 200..=1_000;
/// Range of the number of best candidates (*seeds*) whose neighbours are read.
const SEEDS: RangeInclusive<usize> = 40..=200;
/// Number of messages that are read on either side of a seed. Reading all messages within
/// [`threadkeep_context::recall::REACH`] did not improve the results, because more distant messages that contain a word of the
/// question are usually candidates themselves.
const READ_REACH: u64 = 2;

/// Options for recalling messages.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallOptions {
    /// Recalls only from this thread, which the scope can read. Default: all threads to which the scope has full access.
    pub thread: Option<ThreadId>,
    /// Only messages in threads whose metadata passes.
    pub metadata: MetadataFilter,
    /// Only messages whose own metadata passes.
    pub message_metadata: MetadataFilter,
    /// Messages to exclude, for example because they are in the context anyway. They still affect the ranks of their neighbours.
    pub except: Option<ThreadTail>,
    /// Maximum number of messages (1 to [`limits::PAGE`]). Default: 10.
    pub limit: usize,
    /// The weights of the parts of the ranking.
    pub weights: Weights,
}

impl Default for RecallOptions {
    fn default() -> Self {
        Self {
            thread: None,
            metadata: MetadataFilter::default(),
            message_metadata: MetadataFilter::default(),
            except: None,
            limit: 10,
            weights: Weights::default(),
        }
    }
}

/// The messages of a thread from a position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTail {
    /// The thread.
    pub thread: ThreadId,
    /// The first position.
    pub from_seq: u64,
}

impl ThreadTail {
    fn contains(self, thread: ThreadId, seq: u64) -> bool {
        self.thread == thread && seq >= self.from_seq
    }
}

/// A message that may answer a question.
#[derive(Clone, Debug, PartialEq)]
pub struct RecalledMessage {
    /// The thread of the message.
    pub thread: ThreadId,
    /// The message.
    pub message: Message,
    /// The relevance: larger is better. Only comparable within one recall. The sum of `parts`; less for a message that repeats
    /// others; with an embedder, a score computed from both ranks.
    pub score: f64,
    /// The parts of the word-based score.
    pub parts: ScoreParts,
    /// The similarity of the embeddings of message and question, from -1 to 1; `None` without an embedder, and for messages that
    /// were not embedded.
    pub similarity: Option<f64>,
}

/// The results of a recall.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecallResults {
    /// The messages, best first. Messages with equal scores are in the order of their age, newest first.
    pub messages: Vec<RecalledMessage>,
    /// Threads whose newest messages were not searched, because too many messages are not indexed yet. Retry later.
    pub unsearched: Vec<UnindexedThread>,
    /// Whether messages were also ranked by an embedder.
    pub embedder_outcome: EmbedderOutcome,
}

impl Memory {
    /// Recalls messages that answer a question, from one thread or from all threads to which the scope has full access.
    ///
    /// Messages are ranked by their words, by the messages around them, and by their author and date
    /// ([`threadkeep_context::recall`]), so a result need not contain a word of the question. Messages that are not indexed yet
    /// are read from their threads. The cost does not depend on the length of the threads. A message with copies in forks is
    /// recalled once. Questions and answers that only repeat other messages, which the sources of the answers identify, are omitted.
    /// The score of those that add something to these messages is multiplied by the share of words that they add.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid limit or filter; errors from the store.
    pub async fn recall(&self, scope: &Scope, question: &str, options: &RecallOptions) -> Result<RecallResults> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "must be at least 1"));
        }
        limits::check_at_most("limit", options.limit, limits::PAGE)?;
        options.metadata.check()?;
        options.message_metadata.check()?;
        let question = Question::new(question, self.now());
        if question.is_empty() {
            return Ok(RecallResults::default());
        }
        let max_candidates = if options.message_metadata.is_empty() {
            options.limit.saturating_mul(3).clamp(*CANDIDATES.start(), *CANDIDATES.end())
        } else {
            *CANDIDATES.end()
        };
        let area = SearchArea { thread: options.thread, metadata: &options.metadata };
        let candidates = self.candidates(scope, &question, area, max_candidates).await?;
        let Candidates { found, statistics, unread, .. } = candidates;
        // Neighbours are read only for the candidates that rank best by words, so that unindexed messages do not cause more reads.
        let mut matcher = question.caching_matcher();
        let mut count_words = |candidate: Candidate| {
            let counts = matcher.count(&candidate.message.plain_text());
            CountedMessage { candidate, counts }
        };
        let mut counted: Vec<CountedMessage> = found.into_iter().map(&mut count_words).collect();
        counted.retain(|message| !message.counts.is_miss());
        let seed_count = (options.limit / 2).clamp(*SEEDS.start(), *SEEDS.end());
        let neighbours = neighbours_of_seeds(&counted, &question, &statistics, seed_count);
        counted.extend(self.read_hits(scope, neighbours).await?.into_iter().map(count_words));
        let (ranked, unranked) = rank_messages(counted, &question, &statistics, options);
        let preferred = options.thread.or(options.except.map(|except| except.thread));
        let ranked = self.remove_duplicates(scope, ranked, preferred, |found| (found.thread, &found.message)).await?;
        let ranked = self.without_restatements(scope, ranked, &question, unranked, options.limit * 2).await?;
        let is_included = |found: &RecalledMessage| {
            options.except.is_none_or(|except| !except.contains(found.thread, found.message.seq))
                && options.message_metadata.matches(&found.message.content.metadata)
        };
        let messages = ranked.into_iter().filter(is_included).take(options.limit).collect();
        Ok(RecallResults { messages, unsearched: unread, embedder_outcome: EmbedderOutcome::NotRequested })
    }
}

/// A message, and how often it contains each word of the question.
struct CountedMessage {
    candidate: Candidate,
    counts: TermCounts,
}

/// Returns the positions next to the best candidates that are not candidates themselves.
fn neighbours_of_seeds(
    counted: &[CountedMessage],
    question: &Question,
    statistics: &Statistics,
    seed_count: usize,
) -> Vec<SearchHit> {
    let candidates = as_rank_candidates(counted);
    let mut known: HashSet<(ThreadId, u64)> =
        candidates.iter().map(|candidate| (candidate.thread, candidate.message.seq)).collect();
    let mut neighbours = Vec::new();
    for Ranked { candidate, .. } in rank_by_words(question, &candidates, statistics).into_iter().take(seed_count) {
        let seq = candidate.message.seq;
        for near in seq.saturating_sub(READ_REACH).max(1)..=seq.saturating_add(READ_REACH) {
            if known.insert((candidate.thread, near)) {
                neighbours.push(SearchHit { thread: candidate.thread, seq: near });
            }
        }
    }
    neighbours
}

/// Ranks messages, best first, and returns the messages without a positive score separately.
fn rank_messages(
    counted: Vec<CountedMessage>,
    question: &Question,
    statistics: &Statistics,
    options: &RecallOptions,
) -> (Vec<RecalledMessage>, provenance::MessagesByPosition) {
    let ranked: Vec<(ThreadId, u64, ScoreParts)> =
        rank(question, &as_rank_candidates(&counted), statistics, &options.weights)
            .into_iter()
            .map(|Ranked { candidate, parts }| (candidate.thread, candidate.message.seq, parts))
            .collect();
    let mut messages: BTreeMap<(ThreadId, u64), Message> = counted
        .into_iter()
        .map(|CountedMessage { candidate, .. }| ((candidate.thread, candidate.message.seq), candidate.message))
        .collect();
    let recalled = ranked.into_iter().filter_map(|(thread, seq, parts)| {
        let message = messages.remove(&(thread, seq))?;
        Some(RecalledMessage { thread, message, score: parts.score(), parts, similarity: None })
    });
    (recalled.collect(), messages)
}

fn as_rank_candidates(counted: &[CountedMessage]) -> Vec<RankCandidate<'_>> {
    let candidates = counted.iter().map(|CountedMessage { candidate, counts }| RankCandidate {
        thread: candidate.thread,
        message: &candidate.message,
        counts,
    });
    candidates.collect()
}
