//! Recalling what answers a question: bounded reading here, the ranking in [`threadkeep_context::recall`].

mod meaning;

use std::collections::{BTreeMap, HashSet};

use threadkeep_context::recall::{Parts, Question, Ranked, Statistics, Turn, Weights, lexical, rank};
use threadkeep_core::text::TermCounts;
use threadkeep_core::{Message, Scope, SearchHit, ThreadId, UnindexedThread, limits};

use crate::candidates::{Candidates, Found};
use crate::{Memory, MemoryError, Result};
pub use meaning::Meaning;

/// Candidates that an index is asked for at least, and at most.
const CANDIDATES: (usize, usize) = (200, 1_000);
/// Candidates whose surroundings are read at least, and at most.
const SEEDS: (usize, usize) = (40, 200);
/// How many turns around them are read, on either side. Those that are further away and hold a word of the question are
/// mostly candidates themselves: reading all within [`threadkeep_context::recall::REACH`] recalls no more.
const READ_REACH: u64 = 2;

/// How to recall.
#[derive(Clone, Debug, PartialEq)]
pub struct RecallOptions {
    /// Only from this thread, which the scope may read; otherwise from all that it has in full.
    pub thread: Option<ThreadId>,
    /// None of these, such as those that a prompt shows anyhow. They still count as neighbours.
    pub except: Option<ThreadTail>,
    /// At most so many messages (1 to [`limits::PAGE`]). Default: 10.
    pub limit: usize,
    /// How much each part of the ranking counts.
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
    /// The first position of them.
    pub from_seq: u64,
}

impl ThreadTail {
    fn holds(self, thread: ThreadId, seq: u64) -> bool {
        self.thread == thread && seq >= self.from_seq
    }
}

/// A message that may answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// The thread that it stands in.
    pub thread: ThreadId,
    /// The message.
    pub message: Message,
    /// How well it answers: larger is better. Comparable within one recall. It is the sum of the parts, or where an
    /// embedder joined in, what both rankings give.
    pub score: f64,
    /// What it is worth by its words, and why.
    pub parts: Parts,
    /// How near its meaning is to the question's, from -1 to 1, where an embedder was asked.
    pub similarity: Option<f64>,
}

/// What was recalled, and what could not be looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecallResults {
    /// The best first; of equally good ones the newer first.
    pub turns: Vec<Recalled>,
    /// Threads whose newest messages are neither indexed nor could be read within bounds: ask again later.
    pub unsearched: Vec<UnindexedThread>,
    /// Whether meaning had a part in the ranking.
    pub meaning: Meaning,
}

impl Memory {
    /// Recalls what answers a question, from one thread or from all that the scope has in full.
    ///
    /// A message is recalled for its words, for those around it, for its speaker and its date
    /// ([`threadkeep_context::recall`]); it need not hold a word of the question itself. What the index does not hold yet
    /// is read from the log. The cost is bounded, however long the threads are. What forks of a thread share is recalled once.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for the limit, and those of the store.
    pub async fn recall(&self, scope: &Scope, question: &str, options: &RecallOptions) -> Result<RecallResults> {
        if options.limit == 0 {
            return Err(MemoryError::invalid("limit", "0; ask for at least 1"));
        }
        limits::check_bytes("limit", options.limit, limits::PAGE)?;
        let question = Question::new(question, self.now());
        if question.is_empty() {
            return Ok(RecallResults::default());
        }
        let most = options.limit.saturating_mul(3).clamp(CANDIDATES.0, CANDIDATES.1);
        let candidates = self.candidates(scope, &question, options.thread, most).await?;
        let Candidates { found, statistics, unread, .. } = candidates;
        // The words alone say which are worth a look around; so the tail of a log that is far behind costs no more.
        let mut counting = question.counting();
        let mut count = |found: Found| {
            let counts = counting.count(&found.message.plain_text());
            Counted { found, counts }
        };
        let mut found: Vec<Counted> = found.into_iter().map(&mut count).collect();
        found.retain(|counted| !counted.counts.is_miss());
        let seeds = (options.limit / 2).clamp(SEEDS.0, SEEDS.1);
        let around = surroundings(&found, &question, &statistics, seeds);
        found.extend(self.read_hits(scope, around).await?.into_iter().map(count));
        let turns = best(found, &question, &statistics, options);
        let preferred = options.thread.or(options.except.map(|except| except.thread));
        let turns = self.leave_out_copies(scope, turns, preferred, |turn| (turn.thread, &turn.message)).await?;
        let is_kept =
            |turn: &Recalled| options.except.is_none_or(|except| !except.holds(turn.thread, turn.message.seq));
        let turns = turns.into_iter().filter(is_kept).take(options.limit).collect();
        Ok(RecallResults { turns, unsearched: unread, meaning: Meaning::Absent })
    }
}

/// A message, and how often it holds the question's words.
struct Counted {
    found: Found,
    counts: TermCounts,
}

/// The positions around the best candidates that are not among them.
fn surroundings(found: &[Counted], question: &Question, statistics: &Statistics, seeds: usize) -> Vec<SearchHit> {
    let turns = turns(found);
    let mut known: HashSet<(ThreadId, u64)> = turns.iter().map(|turn| (turn.thread, turn.message.seq)).collect();
    let mut around = Vec::new();
    for Ranked { turn, .. } in lexical(question, &turns, statistics).into_iter().take(seeds) {
        let seq = turn.message.seq;
        for near in seq.saturating_sub(READ_REACH).max(1)..=seq.saturating_add(READ_REACH) {
            if known.insert((turn.thread, near)) {
                around.push(SearchHit { thread: turn.thread, seq: near });
            }
        }
    }
    around
}

/// What is worth anything, the best first.
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
