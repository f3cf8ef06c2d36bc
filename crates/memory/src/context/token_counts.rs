//! Token counts of messages, which are stored in the context state so that each text is counted only once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use threadkeep_core::{ApproximateCounter, Message, Part, TokenCount, TokenCounter};

/// Maximum length in bytes of a cached text that is not part of a message. Longer texts are counted each time, because a huge
/// text would be cached once for each length to which it is truncated.
const MAX_CACHED_TEXT_BYTES: usize = 64 * 1024;

/// The token counts of a thread's newest messages, all by the same counter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TokenCounts {
    counter: String,
    by_seq: BTreeMap<u64, MessageCounts>,
}

/// The token counts of one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct MessageCounts(
    /// The revision of the message that was counted.
    u32,
    /// The count of each text of the message, in the order of [`counted_texts`].
    Vec<TokenCount>,
);

impl TokenCounts {
    /// Whether the counts of this counter are stored. The approximate counter is cheaper than storing its counts.
    pub(super) fn are_stored_for(counter: &dyn TokenCounter) -> bool {
        counter.name() != ApproximateCounter.name()
    }

    /// Returns the counts without those of removed messages.
    #[must_use]
    pub(super) fn without(&self, is_removed: impl Fn(u64) -> bool) -> Self {
        let by_seq = self.by_seq.iter().filter(|(seq, _)| !is_removed(**seq));
        Self { counter: self.counter.clone(), by_seq: by_seq.map(|(seq, counted)| (*seq, counted.clone())).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_seq.is_empty()
    }
}

/// Wraps a counter and caches its counts.
#[derive(Debug)]
pub(super) struct CachingCounter {
    counter: Arc<dyn TokenCounter>,
    /// The texts of the messages, with their counts if known, and other texts that were counted. Caching saves time because
    /// assembling a context counts the same text several times.
    texts: Mutex<HashMap<String, Option<TokenCount>>>,
}

impl CachingCounter {
    /// Starts with the stored counts of those `messages` that have not been revised since.
    pub(super) fn new(counter: Arc<dyn TokenCounter>, stored: &TokenCounts, messages: &[Message]) -> Self {
        let mut texts = HashMap::new();
        let is_same_counter = stored.counter == counter.name();
        for message in messages {
            let known = stored.by_seq.get(&message.seq).filter(|counted| counted.0 == message.revision);
            let counts = known.filter(|_| is_same_counter).map_or(&[][..], |counted| &counted.1);
            let mut counts = counts.iter().copied();
            for text in counted_texts(message) {
                let count = texts.entry(text.to_owned()).or_insert(None);
                *count = counts.next().or(*count);
            }
        }
        Self { counter, texts: Mutex::new(texts) }
    }

    /// Returns the counts to store, for the messages whose texts were all counted.
    pub(super) fn counts(&self, messages: &[Message]) -> TokenCounts {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = messages.iter().filter_map(|message| {
            let counts = counted_texts(message).map(|text| texts.get(text).copied().flatten());
            Some((message.seq, MessageCounts(message.revision, counts.collect::<Option<_>>()?)))
        });
        let by_seq: BTreeMap<_, _> = counted.collect();
        if by_seq.is_empty() {
            return TokenCounts::default();
        }
        TokenCounts { counter: self.counter.name().to_owned(), by_seq }
    }
}

impl TokenCounter for CachingCounter {
    fn name(&self) -> &str {
        self.counter.name()
    }

    fn count(&self, text: &str) -> TokenCount {
        let lock = || self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(count)) = lock().get(text) {
            return *count;
        }
        // The lock is not held while counting. Two threads may count the same text, with the same result.
        let count = self.counter.count(text);
        let mut texts = lock();
        if let Some(cached) = texts.get_mut(text) {
            *cached = Some(count);
        } else if text.len() <= MAX_CACHED_TEXT_BYTES {
            texts.insert(text.to_owned(), Some(count));
        }
        count
    }
}

/// The texts of a message, which are counted one by one. Excludes reasoning, which is never part of a context.
fn counted_texts(message: &Message) -> impl Iterator<Item = &str> {
    let parts = message.content.parts.iter().flat_map(|part| match part {
        Part::Text(text) => [Some(text.as_str()), None, None],
        Part::Reasoning(_) => [None; 3],
        Part::ToolCall(call) => [Some(call.id.as_str()), Some(call.name.as_str()), Some(call.arguments.as_str())],
        Part::ToolResult(result) => [Some(result.call_id.as_str()), Some(result.output.as_str()), None],
        Part::Image(image) => [Some(image.url.as_str()), image.description.as_deref(), None],
        Part::Raw { json, .. } => [Some(json.as_str()), None, None],
    });
    message.content.author.as_deref().into_iter().chain(parts.flatten())
}
