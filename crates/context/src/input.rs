use threadkeep_core::{CorruptRow, Message, ThreadId};

use crate::Summary;
use crate::enrichment::Enrichment;

/// What a context is assembled from.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextInput<'a> {
    /// The positions that the thread holds, loaded or not.
    pub thread: ThreadRange,
    /// The newest messages of the thread, ascending; at least as many as the policy shows.
    pub history: &'a [Message],
    /// Messages among them that do not decode.
    pub unreadable: &'a [CorruptRow],
    /// What is asked now. Where the newest message of the history is a user's with this very text it is the same one, and
    /// shown once. `None` when the newest message is what is to be answered.
    pub question: Option<&'a str>,
    /// The summary so far.
    pub summary: Option<&'a Summary>,
    /// Messages found for the question, best first.
    pub recalled: &'a [Recalled],
    /// What the user prefers.
    pub preferences: &'a [PreferenceLine],
    /// What the conversation is about, as an application sees it.
    pub enrichment: Option<&'a Enrichment>,
    /// Where the history began last time, for [`crate::Trimming::Steps`].
    pub anchor: Option<u64>,
}

impl ContextInput<'_> {
    /// The first position that was loaded; one past the last where nothing was.
    pub(crate) fn loaded_from(&self) -> u64 {
        let first = self.history.first().map(|message| message.seq);
        let first_unreadable = self.unreadable.iter().map(|row| row.seq).min();
        let loaded = first.into_iter().chain(first_unreadable).min();
        loaded.unwrap_or(self.thread.last_seq + 1)
    }
}

/// The positions of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadRange {
    /// The first that is kept.
    pub first_seq: u64,
    /// The last that was given; 0 when there was none.
    pub last_seq: u64,
}

/// A message found for the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// Its thread, where it is another one than the context's.
    pub thread: Option<ThreadId>,
    /// The message.
    pub message: Message,
    /// How well it fits: larger is better.
    pub score: f64,
}

/// Something that the user prefers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferenceLine {
    /// Its name.
    pub key: String,
    /// What it is set to: a text, or JSON.
    pub value: String,
}
