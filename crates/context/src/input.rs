use threadkeep_core::{CorruptRow, Message, ThreadId};

use crate::Summary;
use crate::enrichment::Enrichment;

/// The input of [`crate::assemble`].
#[derive(Clone, Copy, Debug, Default)]
pub struct ContextInput<'a> {
    /// The range of the thread's positions, including messages that are not loaded.
    pub thread: ThreadRange,
    /// The newest messages of the thread, oldest first; at least as many as the policy's window holds.
    pub history: &'a [Message],
    /// The messages in the range of `history` that could not be decoded.
    pub unreadable: &'a [CorruptRow],
    /// The current question. `None` means that the newest message is the question. If the question is given and is also
    /// the newest message, the context includes it only once.
    pub question: Option<&'a str>,
    /// The previous summary.
    pub summary: Option<&'a Summary>,
    /// Search results for the question, best first.
    pub recalled: &'a [Recalled],
    /// The user's preferences.
    pub preferences: &'a [PreferenceLine],
    /// Application-defined notes on the topic of the conversation.
    pub enrichment: Option<&'a Enrichment>,
    /// The first position of the previous context's history, for [`crate::Trimming::Steps`].
    pub anchor: Option<u64>,
}

impl ContextInput<'_> {
    /// Returns the position of the first loaded message, or the position after the last one if no message was loaded.
    pub(crate) fn first_loaded_seq(&self) -> u64 {
        let first = self.history.first().map(|message| message.seq);
        let first_unreadable = self.unreadable.iter().map(|row| row.seq).min();
        let loaded = first.into_iter().chain(first_unreadable).min();
        loaded.unwrap_or(self.thread.last_seq + 1)
    }
}

/// The range of positions of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadRange {
    /// The first position that has not been trimmed; an erased message keeps its position.
    pub first_seq: u64,
    /// The last assigned position; 0 for an empty thread.
    pub last_seq: u64,
}

/// A message that the search returned for the question.
#[derive(Clone, Debug, PartialEq)]
pub struct Recalled {
    /// The message's thread, if it is not the context's own thread.
    pub thread: Option<ThreadId>,
    /// The message.
    pub message: Message,
    /// The relevance; larger is better.
    pub score: f64,
}

/// A user preference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreferenceLine {
    /// The name of the preference.
    pub key: String,
    /// Its value: text or JSON.
    pub value: String,
}
