//! Finding the candidates of a search: in the index, and among the messages that are not indexed yet.

use std::collections::{BTreeMap, HashMap, HashSet};

use futures::{StreamExt, TryStreamExt};
use threadkeep_context::recall::{Question, Statistics};
use threadkeep_core::{
    Collection, Message, MessageRef, MetadataFilter, Scope, SearchAnswer, SearchHit, SearchQuery, StoreError, ThreadId,
    UnindexedThread, limits,
};

use crate::messages::READ_PAGE;
use crate::retry::retry;
use crate::{Memory, MemoryError, Result};

/// Maximum number of unindexed messages that one search reads.
const MAX_UNINDEXED_MESSAGES: usize = 5_000;
/// Maximum number of messages to index in one step, if the index has to catch up first.
const CATCH_UP_MESSAGES: usize = 1_000;
/// Maximum number of indexing steps in one search.
const MAX_CATCH_UP_STEPS: usize = 1_000;
/// Maximum number of candidates requested from the index.
const MAX_CANDIDATES: usize = 1_000;
/// Number of threads that are read concurrently.
const CONCURRENT_THREADS: usize = 8;

/// The candidates of a search. Contains each message of a thread once.
pub(crate) struct Candidates {
    pub(crate) found: Vec<Candidate>,
    pub(crate) statistics: Statistics,
    /// Whether there were more candidates than can be ranked.
    pub(crate) truncated: bool,
    /// Threads with messages that are not indexed and were not read.
    pub(crate) unread: Vec<UnindexedThread>,
}

/// The threads that a search includes.
#[derive(Clone, Copy)]
pub(crate) struct SearchArea<'a> {
    /// Only this thread. `None` for all threads to which the scope has full access.
    pub(crate) thread: Option<ThreadId>,
    /// Only threads whose metadata passes.
    pub(crate) metadata: &'a MetadataFilter,
}

/// A message that may match, and its thread.
pub(crate) struct Candidate {
    pub(crate) thread: ThreadId,
    pub(crate) message: Message,
    /// The position among the index's hits; 0 for messages that are not indexed yet.
    pub(crate) position: usize,
}

impl Candidate {
    pub(crate) const fn new(thread: ThreadId, message: Message) -> Self {
        Self { thread, message, position: 0 }
    }
}

#[derive(Default)]
struct UnindexedMessages {
    found: Vec<Candidate>,
    unread: Vec<UnindexedThread>,
}

impl Memory {
    /// Finds messages that contain a word of the question: at most `limit` indexed messages (more if forks share messages), and
    /// the unindexed messages. Messages in ephemeral threads are found only if the search is limited to their thread.
    pub(crate) async fn candidates(
        &self,
        scope: &Scope,
        question: &Question,
        area: SearchArea<'_>,
        limit: usize,
    ) -> Result<Candidates> {
        let SearchArea { thread, metadata } = area;
        let query = SearchQuery {
            collection: Collection::Messages,
            terms: question.terms(),
            alternatives: question.alternatives(),
            vector: None,
            filters: Vec::new(),
            metadata: metadata.clone(),
            thread,
            limit,
            reads_messages: true,
        };
        let mut answer = self.query_index(scope, &query).await?;
        let mut unindexed = self.read_unindexed(scope, &answer.unindexed).await?;
        if !unindexed.unread.is_empty() && self.catch_up().await? {
            answer = self.query_index(scope, &query).await?;
            unindexed = self.read_unindexed(scope, &answer.unindexed).await?;
        }
        let mut truncated = answer.hits.len() >= limit;
        let mut indexed = self.read_rest(scope, &mut answer).await?;
        if truncated && limit < MAX_CANDIDATES && thread.is_none() && has_copies(&indexed) {
            // Copies of the same messages took up part of the limit, so query again with a higher limit.
            answer = self.query_index(scope, &SearchQuery { limit: MAX_CANDIDATES, ..query }).await?;
            truncated = answer.hits.len() >= MAX_CANDIDATES;
            indexed = self.read_rest(scope, &mut answer).await?;
        }
        let frequencies = question.frequencies_of_words(&answer.frequencies);
        let statistics = Statistics { documents: answer.documents, frequencies };
        let mut found = merge(indexed, unindexed.found);
        if thread.is_none() {
            found.retain(|found| !found.message.is_ephemeral());
        }
        Ok(Candidates { found, statistics, truncated, unread: unindexed.unread })
    }

    async fn query_index(&self, scope: &Scope, query: &SearchQuery) -> Result<SearchAnswer> {
        let now = self.now();
        Ok(retry(self.runtime(), || self.search_index().search(scope, query, now)).await?)
    }

    /// Indexes messages, because there are too many unindexed messages to read. Returns whether any message was indexed.
    async fn catch_up(&self) -> Result<bool> {
        let mut has_indexed = false;
        for _ in 0..MAX_CATCH_UP_STEPS {
            let Ok(step) = retry(self.runtime(), || self.search_index().catch_up(CATCH_UP_MESSAGES)).await else {
                // A store that cannot write, such as one opened read-only, can still be searched.
                return Ok(has_indexed);
            };
            has_indexed |= step.indexed > 0;
            if step.done || step.indexed == 0 {
                break;
            }
        }
        Ok(has_indexed)
    }

    /// Takes the messages of an answer, and reads those of the other hits.
    async fn read_rest(&self, scope: &Scope, answer: &mut SearchAnswer) -> Result<Vec<Candidate>> {
        let messages = std::mem::take(&mut answer.messages);
        let mut hits = std::mem::take(&mut answer.hits);
        let positions: HashMap<_, _> = hits.iter().map(|hit| (hit.thread, hit.seq)).zip(0..).collect();
        if !messages.is_empty() {
            let read: HashSet<_> = messages.iter().map(|(thread, message)| (*thread, message.seq)).collect();
            hits.retain(|hit| !read.contains(&(hit.thread, hit.seq)));
        }
        let mut found = self.read_hits(scope, hits).await?;
        found.extend(messages.into_iter().map(|(thread, message)| Candidate::new(thread, message)));
        for candidate in &mut found {
            let place = (candidate.thread, candidate.message.seq);
            candidate.position = positions.get(&place).copied().unwrap_or_default();
        }
        Ok(found)
    }

    /// Reads messages by position, from several threads concurrently. Omits messages that no longer exist.
    pub(crate) async fn read_hits(&self, scope: &Scope, hits: Vec<SearchHit>) -> Result<Vec<Candidate>> {
        let mut by_thread: BTreeMap<ThreadId, Vec<MessageRef>> = BTreeMap::new();
        for hit in hits {
            by_thread.entry(hit.thread).or_default().push(MessageRef::Seq(hit.seq));
        }
        let reads = by_thread.into_iter().map(|(thread, refs)| self.read_hits_in_thread(scope, thread, refs));
        let found: Vec<_> = futures::stream::iter(reads).buffer_unordered(CONCURRENT_THREADS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    async fn read_hits_in_thread(
        &self,
        scope: &Scope,
        thread: ThreadId,
        refs: Vec<MessageRef>,
    ) -> Result<Vec<Candidate>> {
        let mut all = Vec::new();
        for refs in refs.chunks(limits::PAGE) {
            match self.find_readable(scope, thread, refs).await {
                // Deleted since the index was queried.
                Err(error) if error.is_thread_not_found() => return Ok(Vec::new()),
                found => all.extend(found?.into_iter().map(|message| Candidate::new(thread, message))),
            }
        }
        Ok(all)
    }

    /// Finds messages and omits those that cannot be decoded, which it isolates by repeatedly splitting the list.
    async fn find_readable(&self, scope: &Scope, thread: ThreadId, refs: &[MessageRef]) -> Result<Vec<Message>> {
        let mut remaining = vec![refs];
        let mut all = Vec::new();
        while let Some(refs) = remaining.pop() {
            match self.find_messages(scope, thread, refs).await {
                Err(MemoryError::Store(StoreError::Corrupt { .. })) => {
                    let (first, second) = refs.split_at(refs.len() / 2);
                    remaining.extend([second, first].into_iter().filter(|_| !first.is_empty()));
                }
                found => all.extend(found?),
            }
        }
        Ok(all)
    }

    /// Reads the unindexed messages, at most [`MAX_UNINDEXED_MESSAGES`] across all threads.
    async fn read_unindexed(&self, scope: &Scope, threads: &[UnindexedThread]) -> Result<UnindexedMessages> {
        let mut unindexed = UnindexedMessages::default();
        let mut remaining = MAX_UNINDEXED_MESSAGES;
        for &UnindexedThread { thread, indexed_seq } in threads {
            let mut after = Some(indexed_seq);
            while let Some(seq) = after {
                if remaining == 0 {
                    unindexed.unread.push(UnindexedThread { thread, indexed_seq: seq });
                    break;
                }
                let step = match self.page_after(scope, thread, seq, READ_PAGE.min(remaining)).await {
                    Err(error) if error.is_thread_not_found() => break,
                    step => step?,
                };
                remaining -= step.page.messages.len().min(remaining);
                let found = step.page.messages.into_iter();
                unindexed.found.extend(found.map(|message| Candidate::new(thread, message)));
                after = step.next;
            }
        }
        Ok(unindexed)
    }
}

/// Whether several threads contain the same message, which means that they are forks.
fn has_copies(found: &[Candidate]) -> bool {
    let mut ids = HashSet::new();
    !found.iter().all(|found| ids.insert(found.message.id))
}

/// Merges indexed and unindexed messages, without duplicates: a message may have been indexed since the index reported it as
/// unindexed.
fn merge(indexed: Vec<Candidate>, unindexed: Vec<Candidate>) -> Vec<Candidate> {
    let mut seen: HashSet<(ThreadId, u64)> = indexed.iter().map(|found| (found.thread, found.message.seq)).collect();
    let mut all = indexed;
    all.extend(unindexed.into_iter().filter(|found| seen.insert((found.thread, found.message.seq))));
    all
}
