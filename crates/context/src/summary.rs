//! Extractive summaries of messages that no longer fit: their most informative sentences, up to a size limit.

use std::borrow::{Borrow, Cow};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use threadkeep_core::{Message, Part, Role, Timestamp, TokenCount, TokenCounter, text};
use unicode_segmentation::UnicodeSegmentation;

use crate::cut::cut_marked;
use crate::quote::{indent, one_line};
use crate::relevance::text_of;

/// The maximum length of a sentence, in characters.
const SENTENCE_CHARACTERS: usize = 300;
/// The approximate length of a speaker label. Used to pre-allocate memory.
const SPEAKER_BYTES: usize = 32;
/// The maximum number of sentences per message. The most informative sentences are selected.
const SENTENCES: usize = 12;

/// A summary and the range of messages that it covers. Summaries are derived data and can be rebuilt. Each sentence records
/// the message that contains it, so that it can be removed when that message is erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The first position that the summary covers.
    pub first_seq: u64,
    /// The last position that the summary covers; 0 if it covers none.
    pub through_seq: u64,
    /// The sentences, in order. Contexts with equal sentences share them.
    pub items: Arc<[SummaryItem]>,
    /// A model's text for the start of the range. In the context, it replaces the sentences from the positions that it
    /// covers. They stay stored in case the text has to be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<ModelSummary>,
}

/// A summary that a model wrote. Its text cannot be attributed to single messages, so erasing any of them removes the whole
/// text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelSummary {
    /// The first position that the text covers.
    pub first_seq: u64,
    /// The last position that the text covers.
    pub through_seq: u64,
    /// The time of the oldest message that the text covers.
    pub oldest_at: Timestamp,
    /// The name of the model.
    pub model: String,
    /// The text.
    pub text: String,
}

/// A sentence of a summary. Serialised as a list of its fields in this order; deserialised from such a list or from an
/// object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SummaryItem {
    /// The position of the message.
    pub seq: u64,
    /// The time of the message.
    pub created_at: Timestamp,
    /// The role of the speaker.
    pub role: Role,
    /// The name of the speaker.
    #[serde(default)]
    pub author: Option<String>,
    /// The sentence, on one line.
    pub text: String,
    /// The priority if sentences have to be dropped; larger is more important.
    pub weight: u32,
}

impl Serialize for SummaryItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Field names are omitted to save space, because the summary is read with every context.
        let Self { seq, created_at, role, author, text, weight } = self;
        (seq, created_at, role, author, text, weight).serialize(serializer)
    }
}

impl Summary {
    /// Extends a summary with messages that no longer fit, in bounded memory.
    ///
    /// Ignores messages that the summary covers already. The result covers all positions from `first_seq` through
    /// `through_seq`. Sentences from before `first_seq`, which are no longer in the thread, are removed. The result contains
    /// at most `characters` characters of the most informative sentences; among equals, the newest.
    #[must_use]
    pub fn extend(
        old: Option<&Self>,
        omitted: &[Message],
        first_seq: u64,
        through_seq: u64,
        characters: usize,
    ) -> Self {
        let covered = old.map_or(0, |old| old.through_seq);
        let mut items = old.map_or_else(Vec::new, |old| old.items.to_vec());
        items.retain(|item| item.seq >= first_seq);
        let omitted = omitted.iter().filter(|message| message.seq > covered && message.seq <= through_seq);
        items.extend(omitted.flat_map(sentences));
        let items = keep_best(items, |item| item.text.chars().count(), characters).into();
        let written = old.and_then(|old| old.written.clone()).filter(|written| written.first_seq >= first_seq);
        Self { first_seq, through_seq: covered.max(through_seq), items, written }
    }

    /// Returns the summary without the sentences for which `is_gone` is true, such as those of an erased message. Keeps a
    /// model's text; see [`Summary::without_written`].
    #[must_use]
    pub fn without(&self, is_gone: impl Fn(&SummaryItem) -> bool) -> Self {
        let items = self.items.iter().filter(|item| !is_gone(item)).cloned().collect();
        Self { items, written: self.written.clone(), ..*self }
    }

    /// Returns the summary without a model's text.
    #[must_use]
    pub fn without_written(&self) -> Self {
        Self { written: None, ..self.clone() }
    }

    /// Whether the summary covers a position.
    #[must_use]
    pub fn covers(&self, seq: u64) -> bool {
        (self.first_seq..=self.through_seq).contains(&seq)
    }

    /// Renders the summary of the messages before `seq` in at most `max_tokens` tokens: a model's text, then one sentence per
    /// line. Omits a model's text that does not fit. Returns `None` if there is nothing to render.
    pub(crate) fn render_before(
        &self,
        seq: u64,
        max_tokens: Option<TokenCount>,
        counter: &dyn TokenCounter,
    ) -> Option<String> {
        let text = self.written.as_ref().and_then(|written| self.fit(seq, Some(written), max_tokens, counter));
        text.or_else(|| self.fit(seq, None, max_tokens, counter))
    }

    fn fit(
        &self,
        before: u64,
        written: Option<&ModelSummary>,
        max_tokens: Option<TokenCount>,
        counter: &dyn TokenCounter,
    ) -> Option<String> {
        let covered = written.map_or(0, |written| written.through_seq);
        let is_visible = |item: &&SummaryItem| item.seq > covered && item.seq < before;
        let mut items: Vec<&SummaryItem> = self.items.iter().filter(is_visible).collect();
        let head = written.map_or_else(String::new, |written| format!("\n- {}", indent(&written.text)));
        let mut is_last = false;
        loop {
            if is_last || (items.is_empty() && head.is_empty()) {
                return None;
            }
            is_last = items.is_empty();
            let text = self.write(&head, &items);
            let tokens = max_tokens.map_or(TokenCount::ZERO, |_| counter.count(&text));
            let Some(limit) = max_tokens.filter(|limit| tokens > *limit) else { return Some(text) };
            // Reducing the limit in proportion to the excess converges in a few rounds.
            let (length, limit) = (text.chars().count() as u128, u128::from(limit.0));
            let target_characters =
                (length * limit / u128::from(tokens.0.max(1))).saturating_sub(head.chars().count() as u128);
            let count = items.len();
            items =
                keep_best(items, |item| item.line_characters() + 1, usize::try_from(target_characters).unwrap_or(0));
            if items.len() == count {
                items = without_worst(items);
            }
        }
    }

    fn write(&self, head: &str, items: &[&SummaryItem]) -> String {
        let Self { first_seq, through_seq, .. } = self;
        let lines: usize = items.iter().map(|item| item.text.len() + SPEAKER_BYTES).sum();
        let mut text = String::with_capacity(SPEAKER_BYTES * 2 + head.len() + lines);
        let _infallible =
            write!(text, "Summary of the conversation before (messages {first_seq} to {through_seq}):{head}");
        for item in items {
            text.push('\n');
            item.write_line(&mut text);
        }
        text
    }
}

impl SummaryItem {
    fn write_line(&self, text: &mut String) {
        let role = match self.role {
            Role::System => "System",
            Role::User => "User",
            Role::Assistant => "Assistant",
            Role::Tool => "Tool",
        };
        text.push_str("- ");
        text.push_str(role);
        if let Some(author) = &self.author {
            let _infallible = write!(text, " ({})", one_line(author));
        }
        text.push_str(": ");
        text.push_str(&self.text);
    }

    fn line_characters(&self) -> usize {
        let mut line = String::new();
        self.write_line(&mut line);
        line.chars().count()
    }
}

/// Whether the text contains a lasting statement of a user about themselves.
pub(crate) fn is_personal(text: &str) -> bool {
    const WORDS: [&str; 22] = [
        "my",
        "i'm",
        "i",
        "prefer",
        "usual",
        "usually",
        "always",
        "never",
        "favourite",
        "favorite",
        "must",
        "need",
        "mi",
        "mis",
        "soy",
        "prefiero",
        "siempre",
        "nunca",
        "necesito",
        "quiero",
        "want",
        "name",
    ];
    text.unicode_words().any(|word| WORDS.contains(&word.to_lowercase().as_str()))
}

/// Returns the informative sentences of a message, in order.
fn sentences(message: &Message) -> Vec<SummaryItem> {
    let text = text_of(message);
    let speaker = Speaker::of(message);
    let lines = text.split(crate::quote::LINE_BREAKS);
    let items: Vec<SummaryItem> = lines
        .flat_map(|line| line.unicode_sentences())
        .map(one_line)
        .filter_map(|sentence| {
            let weight = weight(speaker, &sentence)?;
            let text = cut_marked(&sentence, SENTENCE_CHARACTERS).unwrap_or(sentence);
            let author = message.content.author.clone();
            let Message { seq, created_at, .. } = *message;
            Some(SummaryItem { seq, created_at, role: message.content.role, author, text, weight })
        })
        .collect();
    let mut best: Vec<(usize, SummaryItem)> = items.into_iter().enumerate().collect();
    best.sort_by_key(|(index, item)| (Reverse(item.weight), *index));
    best.truncate(SENTENCES);
    best.sort_by_key(|(index, _)| *index);
    best.into_iter().map(|(_, item)| item).collect()
}

/// The kind of a sentence's speaker. Determines the weight of the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Answer,
    /// The assistant, in a message with tool calls: it announces actions rather than results.
    Note,
    System,
    /// A tool. Tool results are long lists of numbers and names, few of which are needed again.
    Tool,
}

impl Speaker {
    fn of(message: &Message) -> Self {
        let calls = message.content.parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
        match message.content.role {
            Role::User => Self::User,
            Role::Assistant if calls => Self::Note,
            Role::Assistant => Self::Answer,
            Role::System => Self::System,
            Role::Tool => Self::Tool,
        }
    }
}

/// Weighs a sentence by its numbers, names and statements of preference. Sentences of users weigh more than others. Returns
/// `None` for a sentence without information.
fn weight(speaker: Speaker, sentence: &str) -> Option<u32> {
    const FILLERS: [&str; 20] = [
        "yes", "no", "ok", "okay", "thanks", "thank", "you", "sure", "please", "hi", "hello", "great", "good", "bye",
        "hola", "gracias", "si", "bien", "right", "fine",
    ];
    let terms = text::distinct_terms(sentence);
    if terms.iter().all(|term| FILLERS.contains(&term.as_str())) {
        return None;
    }
    let words: Vec<&str> = sentence.unicode_words().collect();
    let numbers = words.iter().filter(|word| word.contains(|c: char| c.is_numeric())).count();
    let names = words.iter().skip(1).filter(|word| word.starts_with(char::is_uppercase)).count();
    let information = 2 * numbers.min(4) + names.min(4) + terms.len().min(12) / 3;
    let information = u32::try_from(information).unwrap_or(0);
    Some(match speaker {
        Speaker::User if is_personal(sentence) => 7 + information,
        Speaker::User => 4 + information,
        Speaker::Answer => 2 + information,
        Speaker::Note => 1 + information / 2,
        Speaker::System => 1 + information,
        Speaker::Tool => information / 2,
    })
}

/// Returns the best items whose lengths add up to at most `limit`, in their original order. Of equal items, only the newest
/// is kept. Lines from tools count as equal if they differ only in numbers, as log lines do.
fn keep_best<T: Borrow<SummaryItem>>(items: Vec<T>, length: impl Fn(&SummaryItem) -> usize, limit: usize) -> Vec<T> {
    let mut ranked: Vec<usize> = (0..items.len()).collect();
    ranked.sort_by_key(|&index| (Reverse(items[index].borrow().weight), Reverse(index)));
    let (mut remaining, mut selected, mut seen) = (limit, BTreeSet::new(), BTreeSet::new());
    for index in ranked {
        let item = items[index].borrow();
        let length = length(item);
        if length <= remaining && seen.insert((item.role, deduplication_key(item))) {
            remaining -= length;
            selected.insert(index);
        }
    }
    drop(seen);
    items.into_iter().enumerate().filter(|(index, _)| selected.contains(index)).map(|(_, item)| item).collect()
}

fn deduplication_key(item: &SummaryItem) -> Cow<'_, str> {
    match item.role {
        Role::Tool => Cow::Owned(item.text.replace(|character: char| character.is_numeric(), "0")),
        _ => Cow::Borrowed(&item.text),
    }
}

fn without_worst(mut items: Vec<&SummaryItem>) -> Vec<&SummaryItem> {
    let worst = (0..items.len()).min_by_key(|&index| (items[index].weight, index));
    if let Some(worst) = worst {
        items.remove(worst);
    }
    items
}
