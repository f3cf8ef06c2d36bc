//! What stands in for messages that fell out: sentences taken from them, as many as there is room for.

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
use crate::relevance::words;

/// Characters of a sentence at most.
const SENTENCE_CHARACTERS: usize = 300;
/// What stands before a sentence, about: makes room, and bounds nothing.
const SPEAKER_BYTES: usize = 32;
/// Sentences that one message gives at most; the best of it.
const SENTENCES: usize = 12;

/// A summary, with the messages that it covers. Derived from them: it can be made anew, and each sentence names the
/// message it was taken from, so that it goes when that is erased.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// The first position that it covers.
    pub first_seq: u64,
    /// The last position that it covers; 0 when it covers nothing yet.
    pub through_seq: u64,
    /// Its sentences, in the order they were said. Shared by the contexts that they stay the same for.
    pub items: Arc<[SummaryItem]>,
    /// What a model wrote of the beginning. It stands in place of the sentences from there; they are kept beside it, so
    /// that nothing is lost when it has to go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenSummary>,
}

/// What a model wrote of some messages. No sentence of it can be told apart by message, so it goes whole when one of them
/// does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenSummary {
    /// The first position that it covers.
    pub first_seq: u64,
    /// The last position that it covers.
    pub through_seq: u64,
    /// When the oldest message that it covers was said.
    pub oldest_at: Timestamp,
    /// The model's name.
    pub model: String,
    /// What it says.
    pub text: String,
}

/// A sentence of a summary. Written as a list of its fields in this order, and read as that or as an object.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct SummaryItem {
    /// The position of the message that says it.
    pub seq: u64,
    /// When it was said.
    pub created_at: Timestamp,
    /// Who said it.
    pub role: Role,
    /// The speaker's name.
    #[serde(default)]
    pub author: Option<String>,
    /// The sentence, on one line.
    pub text: String,
    /// How much it is worth keeping.
    pub weight: u32,
}

impl Serialize for SummaryItem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Without the names of its fields, which each would repeat: it is read with every context.
        let Self { seq, created_at, role, author, text, weight } = self;
        (seq, created_at, role, author, text, weight).serialize(serializer)
    }
}

impl Summary {
    /// Renews a summary with messages that fell out since, in memory that does not grow with the conversation.
    ///
    /// Messages up to its own `through_seq` are covered already and left aside. It then covers all positions from
    /// `first_seq` on through `through_seq`: what is below `first_seq` is gone from the thread and from the summary. At
    /// most `characters` are kept, of the sentences that tell most, the newer of two that tell as much.
    #[must_use]
    pub fn extend(old: Option<&Self>, fallen: &[Message], first_seq: u64, through_seq: u64, characters: usize) -> Self {
        let covered = old.map_or(0, |old| old.through_seq);
        let mut items = old.map_or_else(Vec::new, |old| old.items.to_vec());
        items.retain(|item| item.seq >= first_seq);
        let fallen = fallen.iter().filter(|message| message.seq > covered && message.seq <= through_seq);
        items.extend(fallen.flat_map(sentences));
        let items = keep_best(items, |item| item.text.chars().count(), characters).into();
        let written = old.and_then(|old| old.written.clone()).filter(|written| written.first_seq >= first_seq);
        Self { first_seq, through_seq: covered.max(through_seq), items, written }
    }

    /// The summary without some of its sentences, such as those of a message that was erased. What a model wrote stays:
    /// [`Summary::without_written`] takes that away.
    #[must_use]
    pub fn without(&self, is_gone: impl Fn(&SummaryItem) -> bool) -> Self {
        let items = self.items.iter().filter(|item| !is_gone(item)).cloned().collect();
        Self { items, written: self.written.clone(), ..*self }
    }

    /// The summary by its sentences alone.
    #[must_use]
    pub fn without_written(&self) -> Self {
        Self { written: None, ..self.clone() }
    }

    /// Whether it covers a position.
    #[must_use]
    pub fn covers(&self, seq: u64) -> bool {
        (self.first_seq..=self.through_seq).contains(&seq)
    }

    /// What it says of the messages before a position, as text of at most so many tokens: what a model wrote of it first,
    /// then one sentence a line; `None` when it has nothing to say. Where there is no room for what was written, the
    /// sentences say it all.
    pub(crate) fn text_before(
        &self,
        seq: u64,
        at_most: Option<TokenCount>,
        counter: &dyn TokenCounter,
    ) -> Option<String> {
        let text = self.written.as_ref().and_then(|written| self.fit(seq, Some(written), at_most, counter));
        text.or_else(|| self.fit(seq, None, at_most, counter))
    }

    fn fit(
        &self,
        before: u64,
        written: Option<&WrittenSummary>,
        at_most: Option<TokenCount>,
        counter: &dyn TokenCounter,
    ) -> Option<String> {
        let covered = written.map_or(0, |written| written.through_seq);
        let is_shown = |item: &&SummaryItem| item.seq > covered && item.seq < before;
        let mut items: Vec<&SummaryItem> = self.items.iter().filter(is_shown).collect();
        let head = written.map_or_else(String::new, |written| format!("\n- {}", indent(&written.text)));
        let mut is_last = false;
        loop {
            if is_last || (items.is_empty() && head.is_empty()) {
                return None;
            }
            is_last = items.is_empty();
            let text = self.write(&head, &items);
            let tokens = at_most.map_or(TokenCount::ZERO, |_| counter.count(&text));
            let Some(limit) = at_most.filter(|limit| tokens > *limit) else { return Some(text) };
            // A proportional cut comes close from above in a few rounds.
            let (length, limit) = (text.chars().count() as u128, u128::from(limit.0));
            let wanted = (length * limit / u128::from(tokens.0.max(1))).saturating_sub(head.chars().count() as u128);
            let count = items.len();
            items = keep_best(items, |item| item.line_characters() + 1, usize::try_from(wanted).unwrap_or(0));
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

/// Whether a user says something about themselves that outlasts the moment.
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

/// The sentences of a message that tell something, in order.
fn sentences(message: &Message) -> Vec<SummaryItem> {
    let words = words(message);
    let speaker = Speaker::of(message);
    let lines = words.split(crate::quote::LINE_BREAKS);
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
    best.sort_by_key(|(place, item)| (Reverse(item.weight), *place));
    best.truncate(SENTENCES);
    best.sort_by_key(|(place, _)| *place);
    best.into_iter().map(|(_, item)| item).collect()
}

/// Whose words a sentence is of, as far as it matters for what they are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    User,
    Answer,
    /// An assistant that is about to call a tool says what it will do, not what it found.
    Note,
    System,
    /// Tools give long lists full of numbers and names, most of which nobody asks for again.
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

/// How much a sentence tells: numbers, names, wishes; of a user more than of others. `None` for nothing.
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
    let told = 2 * numbers.min(4) + names.min(4) + terms.len().min(12) / 3;
    let told = u32::try_from(told).unwrap_or(0);
    Some(match speaker {
        Speaker::User if is_personal(sentence) => 7 + told,
        Speaker::User => 4 + told,
        Speaker::Answer => 2 + told,
        Speaker::Note => 1 + told / 2,
        Speaker::System => 1 + told,
        Speaker::Tool => told / 2,
    })
}

/// The best items whose lengths add up to at most `room`, in their order; of two alike the newer one. Lines that tools
/// give are alike where only their numbers differ, as those of a log.
fn keep_best<T: Borrow<SummaryItem>>(items: Vec<T>, length: impl Fn(&SummaryItem) -> usize, room: usize) -> Vec<T> {
    let mut ranked: Vec<usize> = (0..items.len()).collect();
    ranked.sort_by_key(|&place| (Reverse(items[place].borrow().weight), Reverse(place)));
    let (mut left, mut kept, mut seen) = (room, BTreeSet::new(), BTreeSet::new());
    for place in ranked {
        let item = items[place].borrow();
        let length = length(item);
        if length <= left && seen.insert((item.role, likeness(item))) {
            left -= length;
            kept.insert(place);
        }
    }
    drop(seen);
    items.into_iter().enumerate().filter(|(place, _)| kept.contains(place)).map(|(_, item)| item).collect()
}

fn likeness(item: &SummaryItem) -> Cow<'_, str> {
    match item.role {
        Role::Tool => Cow::Owned(item.text.replace(|character: char| character.is_numeric(), "0")),
        _ => Cow::Borrowed(&item.text),
    }
}

fn without_worst(mut items: Vec<&SummaryItem>) -> Vec<&SummaryItem> {
    let worst = (0..items.len()).min_by_key(|&place| (items[place].weight, place));
    if let Some(worst) = worst {
        items.remove(worst);
    }
    items
}
