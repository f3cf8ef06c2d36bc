//! What is asked for when a page is read, and what comes of it.

use std::sync::Arc;

use threadkeep_core::{CorruptRow, Message, MessagePage, Positions, Record, RecordName, RecordQuery, Thread};

use super::held::CachedMessages;
use super::tail::Tail;

/// What is wanted beside a page.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// Records of the thread.
    pub(crate) records: Vec<RecordName>,
    /// Lists of records of anybody.
    pub(crate) lists: Vec<RecordQuery>,
    /// Whether it is wanted also where the page is held.
    pub(crate) is_always_read: bool,
}

impl Beside {
    /// What is wanted with a look at whether a held page holds still: what is held beside it is not.
    pub(super) fn of_a_look(&self, tail: &Tail) -> Self {
        let is_held = tail.carried.is_some() && !self.is_always_read;
        let records = if is_held { Vec::new() } else { self.records.clone() };
        Self { records, ..self.clone() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.lists.is_empty()
    }
}

/// What was read beside a page, as of the same instant.
#[derive(Debug)]
pub(crate) struct ReadBeside {
    pub(crate) thread: Thread,
    /// Those that were wanted, in that order; `None` where none were asked for.
    pub(crate) records: Option<Vec<Option<Record>>>,
    pub(crate) lists: Vec<Vec<Record>>,
}

/// A page that was read.
#[derive(Clone, Debug)]
pub(crate) enum Shared {
    /// As it is held in memory.
    Held(CachedMessages),
    Read(Arc<MessagePage>),
}

impl Shared {
    /// The messages, oldest first.
    pub(crate) fn messages(&self) -> &[Message] {
        match self {
            Self::Held(held) => held.messages(),
            Self::Read(page) => &page.messages,
        }
    }

    /// Messages among them that do not decode: none among those that are held.
    pub(crate) fn corrupt(&self) -> &[CorruptRow] {
        match self {
            Self::Held(_) => &[],
            Self::Read(page) => &page.corrupt,
        }
    }

    pub(crate) fn positions(&self) -> Positions {
        match self {
            Self::Held(held) => held.positions(),
            Self::Read(page) => page.positions,
        }
    }

    pub(super) fn into_page(self) -> MessagePage {
        match self {
            Self::Held(held) => held.to_page(),
            Self::Read(page) => Arc::unwrap_or_clone(page),
        }
    }

    /// Whether there are messages before the first.
    pub(crate) fn has_older(&self) -> bool {
        match self {
            Self::Held(held) => held.more(),
            Self::Read(page) => page.more,
        }
    }

    /// The position of the n-th newest message, those included that do not decode; `None` where there are fewer.
    pub(crate) fn nth_newest(&self, n: usize) -> Option<u64> {
        let (messages, corrupt) = (self.messages(), self.corrupt());
        if messages.len() + corrupt.len() < n {
            return None;
        }
        let mut seqs: Vec<u64> =
            messages.iter().map(|message| message.seq).chain(corrupt.iter().map(|row| row.seq)).collect();
        seqs.sort_unstable();
        seqs.len().checked_sub(n).and_then(|place| seqs.get(place)).copied()
    }
}
