//! Finding the messages that may answer: from the index, and from the log what the index does not hold yet.

use std::collections::{BTreeMap, HashSet};

use futures::{StreamExt, TryStreamExt};
use threadkeep_context::recall::{Question, Statistics};
use threadkeep_core::{
    Collection, Message, MessageName, Scope, SearchAnswer, SearchHit, SearchQuery, StoreError, ThreadId,
    UnindexedThread, limits,
};

use crate::messages::READ_PAGE;
use crate::retry::repeat_simply;
use crate::{Memory, MemoryError, Result};

/// Messages that are read because the index does not hold them yet.
const TAIL_MESSAGES: usize = 5_000;
/// Messages that one step of catching up indexes.
const CATCH_UP_MESSAGES: usize = 1_000;
/// Steps of catching up that one search takes.
const CATCH_UP_STEPS: usize = 1_000;
/// Candidates that an index is ever asked for.
const MOST: usize = 1_000;
/// Threads that are read at a time.
const THREADS_AT_ONCE: usize = 8;

/// What may answer, each message of a thread once.
pub(crate) struct Candidates {
    pub(crate) found: Vec<Found>,
    pub(crate) statistics: Statistics,
    /// Whether there were more than are ever ranked.
    pub(crate) truncated: bool,
    /// What is neither indexed nor was read.
    pub(crate) unread: Vec<UnindexedThread>,
}

/// A message that was found, and where.
pub(crate) struct Found {
    pub(crate) thread: ThreadId,
    pub(crate) message: Message,
}

#[derive(Default)]
struct Tail {
    found: Vec<Found>,
    unread: Vec<UnindexedThread>,
}

impl Memory {
    /// Finds messages that hold a word of the question: at most `limit` that are indexed (more where forks share messages), and
    /// all that are not yet. Those of ephemeral threads are found only where the thread is named.
    pub(crate) async fn candidates(
        &self,
        scope: &Scope,
        question: &Question,
        thread: Option<ThreadId>,
        limit: usize,
    ) -> Result<Candidates> {
        let query =
            SearchQuery { collection: Collection::Messages, terms: question.terms(), vector: None, thread, limit };
        let mut answer = self.ask_index(scope, &query).await?;
        let mut tail = self.tail(scope, &answer.behind).await?;
        if !tail.unread.is_empty() && self.catch_up().await? {
            answer = self.ask_index(scope, &query).await?;
            tail = self.tail(scope, &answer.behind).await?;
        }
        let mut truncated = answer.hits.len() >= limit;
        let mut indexed = self.read_hits(scope, answer.hits).await?;
        if truncated && limit < MOST && thread.is_none() && has_copies(&indexed) {
            // Copies have taken the places of other messages.
            answer = self.ask_index(scope, &SearchQuery { limit: MOST, ..query }).await?;
            truncated = answer.hits.len() >= MOST;
            indexed = self.read_hits(scope, answer.hits).await?;
        }
        let frequencies = question.frequencies_of_words(&answer.frequencies);
        let statistics = Statistics { documents: answer.documents, frequencies };
        let mut found = together(indexed, tail.found);
        if thread.is_none() {
            found.retain(|found| !found.message.is_ephemeral());
        }
        Ok(Candidates { found, statistics, truncated, unread: tail.unread })
    }

    async fn ask_index(&self, scope: &Scope, query: &SearchQuery) -> Result<SearchAnswer> {
        let now = self.now();
        Ok(repeat_simply(self.runtime(), || self.search_index().search(scope, query, now)).await?)
    }

    /// Has the index take in what is too much to be read. Says whether it took in anything.
    async fn catch_up(&self) -> Result<bool> {
        let mut has_indexed = false;
        for _ in 0..CATCH_UP_STEPS {
            let Ok(step) = repeat_simply(self.runtime(), || self.search_index().catch_up(CATCH_UP_MESSAGES)).await
            else {
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

    /// Reads messages by position, those of several threads at a time; what is gone is left out.
    pub(crate) async fn read_hits(&self, scope: &Scope, hits: Vec<SearchHit>) -> Result<Vec<Found>> {
        let mut by_thread: BTreeMap<ThreadId, Vec<MessageName>> = BTreeMap::new();
        for hit in hits {
            by_thread.entry(hit.thread).or_default().push(MessageName::Seq(hit.seq));
        }
        let reads = by_thread.into_iter().map(|(thread, names)| self.read_hits_of(scope, thread, names));
        let found: Vec<_> = futures::stream::iter(reads).buffer_unordered(THREADS_AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn read_hits_of(&self, scope: &Scope, thread: ThreadId, names: Vec<MessageName>) -> Result<Vec<Found>> {
        let mut all = Vec::new();
        for names in names.chunks(limits::PAGE) {
            match self.find_readable(scope, thread, names).await {
                // Deleted since the index was asked.
                Err(error) if error.is_thread_not_found() => return Ok(Vec::new()),
                found => all.extend(found?.into_iter().map(|message| Found { thread, message })),
            }
        }
        Ok(all)
    }

    /// Finds messages. One that does not decode does not blank the rest: they are halved until it stands alone.
    async fn find_readable(&self, scope: &Scope, thread: ThreadId, names: &[MessageName]) -> Result<Vec<Message>> {
        let mut left = vec![names];
        let mut all = Vec::new();
        while let Some(names) = left.pop() {
            match self.find_messages(scope, thread, names).await {
                Err(MemoryError::Store(StoreError::Corrupt { .. })) => {
                    let (one, other) = names.split_at(names.len() / 2);
                    left.extend([other, one].into_iter().filter(|_| !one.is_empty()));
                }
                found => all.extend(found?),
            }
        }
        Ok(all)
    }

    /// Reads what the index does not hold yet, up to a bound over all threads.
    async fn tail(&self, scope: &Scope, behind: &[UnindexedThread]) -> Result<Tail> {
        let mut tail = Tail::default();
        let mut room = TAIL_MESSAGES;
        for behind in behind {
            let mut after = Some(behind.indexed_seq);
            while let Some(seq) = after {
                if room == 0 {
                    tail.unread.push(UnindexedThread { thread: behind.thread, indexed_seq: seq });
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

/// Whether a message stands in several threads, as in forks.
fn has_copies(found: &[Found]) -> bool {
    let mut ids = HashSet::new();
    !found.iter().all(|found| ids.insert(found.message.id))
}

/// Hits and tail, each message once: the index may have taken one in since it said that it was behind.
fn together(indexed: Vec<Found>, tail: Vec<Found>) -> Vec<Found> {
    let mut seen: HashSet<(ThreadId, u64)> = indexed.iter().map(|found| (found.thread, found.message.seq)).collect();
    let mut all = indexed;
    all.extend(tail.into_iter().filter(|found| seen.insert((found.thread, found.message.seq))));
    all
}
