//! The words of the newest messages of one thread.

use std::collections::HashMap;
use std::mem::size_of;

use threadkeep_core::{Message, Positions, Thread, ThreadId, Timestamp, text};

/// What words were read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    thread: ThreadId,
    /// The positions of the thread before its messages were read.
    positions: Positions,
    expires_at: Option<Timestamp>,
    /// The maximum number of messages.
    limit: usize,
}

impl Source {
    pub(super) fn of(thread: &Thread, limit: usize) -> Self {
        Self { thread: thread.id, positions: thread.positions, expires_at: thread.expires_at, limit }
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }
}

/// The distinct words of a thread's newest messages, and the number of messages that contain each of them.
#[derive(Debug)]
pub(super) struct ThreadWords {
    source: Source,
    messages: usize,
    /// When the oldest of the messages was created.
    oldest_at: Option<Timestamp>,
    /// Sorted.
    words: Box<[(Box<str>, u32)]>,
}

impl ThreadWords {
    pub(super) fn new(source: Source, messages: &[Message]) -> Self {
        // The number of messages with each word, and the last of them.
        let mut counts: HashMap<Box<str>, (u32, usize)> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            text::for_each_word(&message.plain_text(), |word| match counts.get_mut(word) {
                Some((_, last)) if *last == index => {}
                Some((count, last)) => (*count, *last) = (*count + 1, index),
                None => drop(counts.insert(word.into(), (1, index))),
            });
        }
        let mut words: Box<[(Box<str>, u32)]> = counts.into_iter().map(|(word, (count, _))| (word, count)).collect();
        words.sort_unstable();
        let oldest_at = messages.iter().map(|message| message.created_at).min();
        Self { source, messages: messages.len(), oldest_at, words }
    }

    pub(super) fn thread(&self) -> ThreadId {
        self.source.thread
    }

    pub(super) fn messages(&self) -> usize {
        self.messages
    }

    /// Returns the words that begin with a prefix.
    pub(super) fn with_prefix(&self, prefix: &str) -> impl Iterator<Item = (&str, u32)> {
        let start = self.words.partition_point(|(word, _)| &**word < prefix);
        let from_start = self.words[start..].iter();
        from_start.take_while(move |(word, _)| word.starts_with(prefix)).map(|(word, count)| (&**word, *count))
    }

    /// Whether a new read of `source` would return the same words.
    pub(super) fn is_valid(&self, source: &Source, now: Timestamp, cutoff: Option<Timestamp>) -> bool {
        self.source == *source && self.is_current(now, cutoff)
    }

    /// Whether the thread has not expired, and none of its messages is older than `cutoff`.
    pub(super) fn is_current(&self, now: Timestamp, cutoff: Option<Timestamp>) -> bool {
        self.source.expires_at.is_none_or(|expires_at| expires_at > now)
            && cutoff.is_none_or(|cutoff| self.oldest_at.is_none_or(|oldest_at| oldest_at >= cutoff))
    }

    pub(super) fn bytes(&self) -> usize {
        let words = self.words.iter().map(|(word, _)| size_of::<(Box<str>, u32)>() + word.len());
        size_of::<Self>() + words.sum::<usize>()
    }
}
