//! Recalling messages that answer a question: limited reading here, the ranking in [`threadkeep_context::recall`].

mod embedding;

use std::collections::{BTreeMap, HashSet};

use threadkeep_context::recall::{Parts, Question, Ranked, Statistics, Turn, Weights, lexical, rank};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, Scope, SearchHit, ThreadId, UnindexedThread, limits};

use crate::candidates::{Candidate, Candidates};
use crate::{Memory, MemoryError, Result};
pub use embedding::EmbedderOutcome;

/// Minimum and maximum number of candidates requested from the index.
const CANDIDATES: (usize, usize) = (200, 1_000);
/// Minimum and maximum number of candidates whose neighbours are read.
const SEEDS: (usize, usize) = (40, 200);
/// How many messages are read on either side of a candidate. Messages further away that contain a word of the question are
/// mostly candidates themselves: reading all within [`threadkeep_context::recall::REACH`] did not recall more.
const READ_REACH: u64 = 2;

/// Options for recalling messages.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallOptions {
    /// Only from this thread, which the scope can read. Default: all threads to which it has full access.
    pub thread: Option<ThreadId>,
    /// Messages to exclude, such as those that are in the prompt anyway. They still count as neighbours.
    pub except: Option<ThreadTail>,
    /// Maximum number of messages (1 to [`limits::PAGE`]). Default: 10.
    pub limit: usize,
    /// The weights of the parts of the ranking.
    pub weights: Weights,
}

impl Default for RecallOptions {
    fn default() -> Self {
        Self { thread: None, except: None, limit: 10, weights: Weights::default() }
    }
}

/// The newest messages of a thread, from a position on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadTail {
    /// The thread.
    pub thread: ThreadId,
    /// Their first position.
    pub from_seq: u64,
}

impl ThreadTail {
    fn contains(self, thread: ThreadId, seq: u64) -> bool {
        self.thread == thread && seq >= self.from_seq
    }
}

/// A message that may answer a question.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// The thread of the message.
    pub thread: ThreadId,
    /// The message.
    pub message: Message,
    /// Its relevance: larger is better. Comparable within one recall. The sum of the parts, or a score from both ranks if an
    /// embedder took part.
    pub score: f64,
    /// The parts of its lexical score.
    pub parts: Parts,
    /// The similarity of its embedding to the question's, from -1 to 1; `None` without an embedder.
    pub similarity: Option<f64>,
}

/// The results of a recall.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecallResults {
    /// The best first; those with equal scores, the newest first.
    pub turns: Vec<Recalled>,
    /// Threads whose newest messages are not indexed and could not be read within limits: ask again later.
    pub unsearched: Vec<UnindexedThread>,
    /// Whether an embedder took part in the ranking.
    pub embedder_outcome: EmbedderOutcome,
}

impl Memory {
    /// Recalls messages that answer a question, from one thread or from all to which the scope has full access.
    ///
    /// Messages are ranked by their words, by the messages around them, and by their author and date
    /// ([`threadkeep_context::recall`]), so a result need not contain a word of the question. Messages that are not indexed yet
    /// are read from the log. The cost is limited, however long the threads are. A message that forks of a thread share is
    /// recalled once.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for the limit; those of the store.
    pub async fn recall(&self, scope: &Scope, question: &str, options: &RecallOptions) -> Result<RecallResults> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "must be at least 1"));
        }
        limits::check_bytes("limit", options.limit, limits::PAGE)?;
        let question = Question::new(question, self.now());
        if question.is_empty() {
            return Ok(RecallResults::default());
        }
        let max_candidates = options.limit.saturating_mul(3).clamp(CANDIDATES.0, CANDIDATES.1);
        let candidates = self.candidates(scope, &question, options.thread, max_candidates).await?;
        let Candidates { found, statistics, unread, .. } = candidates;
        // Neighbours are read only for the lexically best candidates, so that many unindexed messages do not cost more reads.
        let mut counting = question.counting();
        let mut count = |found: Candidate| {
            let counts = counting.count(&found.message.plain_text());
            Counted { found, counts }
        };
        let mut found: Vec<Counted> = found.into_iter().map(&mut count).collect();
        found.retain(|counted| !counted.counts.is_miss());
        let seeds = (options.limit / 2).clamp(SEEDS.0, SEEDS.1);
        let neighbours = neighbours(&found, &question, &statistics, seeds);
        found.extend(self.read_hits(scope, neighbours).await?.into_iter().map(count));
        let turns = best(found, &question, &statistics, options);
        let preferred = options.thread.or(options.except.map(|except| except.thread));
        let turns = self.remove_duplicates(scope, turns, preferred, |turn| (turn.thread, &turn.message)).await?;
        let is_included =
            |turn: &Recalled| options.except.is_none_or(|except| !except.contains(turn.thread, turn.message.seq));
        let turns = turns.into_iter().filter(is_included).take(options.limit).collect();
        Ok(RecallResults { turns, unsearched: unread, embedder_outcome: EmbedderOutcome::NotRequested })
    }
}

/// A message with the counts of the question's words in it.
struct Counted {
    found: Candidate,
    counts: TermCounts,
}

/// The positions neighbours the best candidates that are not candidates themselves.
fn neighbours(found: &[Counted], question: &Question, statistics: &Statistics, seeds: usize) -> Vec<SearchHit> {
    let turns = turns(found);
    let mut known: HashSet<(ThreadId, u64)> = turns.iter().map(|turn| (turn.thread, turn.message.seq)).collect();
    let mut neighbours = Vec::new();
    for Ranked { turn, .. } in lexical(question, &turns, statistics).into_iter().take(seeds) {
        let seq = turn.message.seq;
        for near in seq.saturating_sub(READ_REACH).max(1)..=seq.saturating_add(READ_REACH) {
            if known.insert((turn.thread, near)) {
                neighbours.push(SearchHit { thread: turn.thread, seq: near });
            }
        }
    }
    neighbours
}

/// Ranks the messages with a positive score, the best first.
fn best(found: Vec<Counted>, question: &Question, statistics: &Statistics, options: &RecallOptions) -> Vec<Recalled> {
    let ranked: Vec<(ThreadId, u64, Parts)> = rank(question, &turns(&found), statistics, &options.weights)
        .into_iter()
        .map(|Ranked { turn, parts }| (turn.thread, turn.message.seq, parts))
        .collect();
    let mut messages: BTreeMap<(ThreadId, u64), Message> =
        found.into_iter().map(|Counted { found, .. }| ((found.thread, found.message.seq), found.message)).collect();
    let recalled = ranked.into_iter().filter_map(|(thread, seq, parts)| {
        let message = messages.remove(&(thread, seq))?;
        Some(Recalled { thread, message, score: parts.score(), parts, similarity: None })
    });
    recalled.collect()
}

fn turns(found: &[Counted]) -> Vec<Turn<'_>> {
    let turns = found.iter();
    turns.map(|Counted { found, counts }| Turn { thread: found.thread, message: &found.message, counts }).collect()
}
