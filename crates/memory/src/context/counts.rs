//! Token counts of messages, carried from one context to the next, so that each text is counted once.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use threadkeep_core::{ApproximateCounter, Message, Part, TokenCount, TokenCounter};

/// Longer texts that stand in no message are counted each time, so that a huge one is not held in all its lengths.
const REMEMBERED_BYTES: usize = 64 * 1024;

/// What the newest messages of a thread count, by one counter. Numbers without words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    counter: String,
    by_seq: BTreeMap<u64, Counted>,
}

/// What a message counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Counted(
    /// As it stood at this revision.
    u32,
    /// Each of its texts, in the order of [`counted_texts`].
    Vec<TokenCount>,
);

impl Counts {
    /// Whether counting costs more than remembering.
    pub(super) fn are_kept_of(counter: &dyn TokenCounter) -> bool {
        counter.name() != ApproximateCounter.name()
    }

    /// Forgets what messages count that are gone.
    #[must_use]
    pub(super) fn without(&self, is_gone: impl Fn(u64) -> bool) -> Self {
        let by_seq = self.by_seq.iter().filter(|(seq, _)| !is_gone(**seq));
        Self { counter: self.counter.clone(), by_seq: by_seq.map(|(seq, counted)| (*seq, counted.clone())).collect() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_seq.is_empty()
    }
}

/// Counts as another counter does, but what is known already.
#[derive(Debug)]
pub(super) struct KnownCounter {
    counter: Arc<dyn TokenCounter>,
    /// The texts of some messages, with what they count as far as it is known, and others that were counted: what is
    /// chosen is measured several times on its way.
    texts: Mutex<HashMap<String, Option<TokenCount>>>,
}

impl KnownCounter {
    /// Knows of `messages` what was carried, where they are what they were.
    pub(super) fn new(counter: Arc<dyn TokenCounter>, carried: &Counts, messages: &[Message]) -> Self {
        let mut texts = HashMap::new();
        let is_same_counter = carried.counter == counter.name();
        for message in messages {
            let known = carried.by_seq.get(&message.seq).filter(|counted| counted.0 == message.revision);
            let counts = known.filter(|_| is_same_counter).map_or(&[][..], |counted| &counted.1);
            let mut counts = counts.iter().copied();
            for text in counted_texts(message) {
                let place = texts.entry(text.to_owned()).or_insert(None);
                *place = counts.next().or(*place);
            }
        }
        Self { counter, texts: Mutex::new(texts) }
    }

    /// What is known of messages, to be carried on: only of those of which each text was counted.
    pub(super) fn counts(&self, messages: &[Message]) -> Counts {
        let texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = messages.iter().filter_map(|message| {
            let counts = counted_texts(message).map(|text| texts.get(text).copied().flatten());
            Some((message.seq, Counted(message.revision, counts.collect::<Option<_>>()?)))
        });
        let by_seq: BTreeMap<_, _> = counted.collect();
        if by_seq.is_empty() {
            return Counts::default();
        }
        Counts { counter: self.counter.name().to_owned(), by_seq }
    }
}

impl TokenCounter for KnownCounter {
    fn name(&self) -> &str {
        self.counter.name()
    }

    fn count(&self, text: &str) -> TokenCount {
        let lock = || self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Some(count)) = lock().get(text) {
            return *count;
        }
        // Counted outside the lock: two at once may count the same text, and both are right.
        let count = self.counter.count(text);
        let mut texts = lock();
        if let Some(place) = texts.get_mut(text) {
            *place = Some(count);
        } else if text.len() <= REMEMBERED_BYTES {
            texts.insert(text.to_owned(), Some(count));
        }
        count
    }
}

/// The texts of a message that a chat counts one by one. A reasoning is never shown.
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
