//! A page of a thread's messages, from the cache or the store, and the records that can be read together with it.

use std::sync::Arc;

use threadkeep_core::{CorruptRow, Message, MessagePage, Positions, Record, RecordName, RecordQuery, Thread};

use super::cached_thread::CachedThread;
use super::messages::CachedMessages;

/// Records to read together with a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct ExtraRequest {
    /// The names of records of the thread.
    pub(crate) records: Vec<RecordName>,
    /// Queries for pages of records of the thread or of other owners.
    pub(crate) lists: Vec<RecordQuery>,
    /// Whether to read the thread's records even if its context state is cached.
    pub(crate) reads_even_if_cached: bool,
}

impl ExtraRequest {
    /// Returns what to read when a cached page is revalidated. Omits the thread's records if its context state is cached.
    pub(super) fn for_revalidation(&self, cached: &CachedThread) -> Self {
        let is_cached = cached.context_state.is_some() && !self.reads_even_if_cached;
        let records = if is_cached { Vec::new() } else { self.records.clone() };
        Self { records, ..self.clone() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.lists.is_empty()
    }
}

/// The thread and the records that were read together with a page, as of the same instant.
#[derive(Debug)]
pub(crate) struct ExtraResult {
    pub(crate) thread: Thread,
    /// The requested records, in the order of the request; `None` if none were requested.
    pub(crate) records: Option<Vec<Option<Record>>>,
    pub(crate) lists: Vec<Vec<Record>>,
}

/// A page of messages.
#[derive(Clone, Debug)]
pub(crate) enum ReadPage {
    Cached(CachedMessages),
    Stored(Arc<MessagePage>),
}

impl ReadPage {
    /// The messages, oldest first.
    pub(crate) fn messages(&self) -> &[Message] {
        match self {
            Self::Cached(cached) => cached.messages(),
            Self::Stored(page) => &page.messages,
        }
    }

    /// Messages of the page that cannot be decoded. A cached page has none.
    pub(crate) fn corrupt(&self) -> &[CorruptRow] {
        match self {
            Self::Cached(_) => &[],
            Self::Stored(page) => &page.corrupt,
        }
    }

    pub(crate) fn positions(&self) -> Positions {
        match self {
            Self::Cached(cached) => cached.positions(),
            Self::Stored(page) => page.positions,
        }
    }

    pub(super) fn into_page(self) -> MessagePage {
        match self {
            Self::Cached(cached) => cached.to_page(),
            Self::Stored(page) => Arc::unwrap_or_clone(page),
        }
    }

    /// Whether the thread has messages before the first one in the page.
    pub(crate) fn has_older(&self) -> bool {
        match self {
            Self::Cached(cached) => cached.has_older(),
            Self::Stored(page) => page.more,
        }
    }

    /// The position of the n-th newest message, including messages that cannot be decoded; `None` if there are fewer.
    pub(crate) fn nth_newest(&self, n: usize) -> Option<u64> {
        let (messages, corrupt) = (self.messages(), self.corrupt());
        if messages.len() + corrupt.len() < n {
            return None;
        }
        let mut seqs: Vec<u64> =
            messages.iter().map(|message| message.seq).chain(corrupt.iter().map(|row| row.seq)).collect();
        seqs.sort_unstable();
        seqs.len().checked_sub(n).and_then(|index| seqs.get(index)).copied()
    }
}
