//! What became of every message of the thread, and what took how many tokens.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use threadkeep_core::{Part, ThreadId, TokenCount, TokenCounter, add_tokens, count_message_tokens};

use crate::assemble::Plan;
use crate::budget::Fitting;
use crate::chat::Shown;
use crate::transcript::block;
use crate::{ChatMessage, Rendering, ThreadRange};

/// The explanation of a context. Holds positions and numbers, no words of anyone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The counter that counted.
    pub counter: String,
    /// The budget that was set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<TokenCount>,
    /// What took how many tokens.
    pub tokens: TokensByPart,
    /// The fate of each position of the thread from the first to the last, ascending, each in exactly one span.
    pub messages: Vec<FateSpan>,
    /// What became of recalled messages, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<RecalledFate>,
    /// Whether the question was cut so that it fits.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub question_was_cut: bool,
    /// Where the history begins, when it is trimmed in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<u64>,
}

/// Tokens by part. They and `framing` add up to `total` exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensByPart {
    /// Of the final rendering.
    pub total: TokenCount,
    /// Of the system prompt.
    pub system_prompt: TokenCount,
    /// Of what the conversation is about.
    pub enrichment: TokenCount,
    /// Of preferences.
    pub preferences: TokenCount,
    /// Of the summary.
    pub summary: TokenCount,
    /// Of recalled messages.
    pub recalled: TokenCount,
    /// Of the history.
    pub history: TokenCount,
    /// Of the question, where it is no message of the thread yet.
    pub question: TokenCount,
    /// Of what holds the parts together. Below 0 where joined text takes less than its pieces.
    pub framing: i64,
}

impl TokensByPart {
    pub(crate) fn with_framing(self) -> Self {
        let parts = [
            self.system_prompt,
            self.enrichment,
            self.preferences,
            self.summary,
            self.recalled,
            self.history,
            self.question,
        ];
        let parts: TokenCount = parts.into_iter().sum();
        Self { framing: self.total.0.cast_signed().wrapping_sub(parts.0.cast_signed()), ..self }
    }
}

/// Neighbouring positions with one fate. Those that are shown have a span each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FateSpan {
    /// The first position.
    pub first_seq: u64,
    /// The last position.
    pub last_seq: u64,
    /// What became of them.
    pub fate: Fate,
    /// Why, where they are not shown whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Why>,
    /// What they take as they are shown.
    pub tokens: TokenCount,
}

impl FateSpan {
    /// How many positions it spans.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.last_seq - self.first_seq + 1
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fate {
    /// Shown in the history, whole.
    Kept,
    /// Shown in the history, cut.
    Truncated,
    /// Shown among the recalled messages.
    Recalled,
    /// Not shown; the summary covers it.
    Summarised,
    /// Not shown: others bear more on the question.
    Pruned,
    /// Not shown, and nothing stands in for it.
    Dropped,
    /// There is no message at this position that could be read.
    Absent,
}

/// Why a message has its fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Why {
    /// It is older than the window.
    OutsideWindow,
    /// It lies before the anchor.
    BeforeAnchor,
    /// The budget was used up.
    OverBudget,
    /// Others bear more on the question.
    LessRelevant,
    /// It is longer than a message may be.
    TooLong,
    /// A tool's result whose call is out of reach, or a call whose result would be cut off by the window.
    PairBroken,
    /// The search found it.
    Found,
    /// It was erased.
    Erased,
    /// Its stored bytes do not decode.
    Unreadable,
}

/// What became of a recalled message.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecalledFate {
    /// Its thread, where it is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// Its position there.
    pub seq: u64,
    /// How well it was found to fit.
    pub score: f64,
    /// [`Fate::Recalled`], [`Fate::Kept`] (the history shows it) or [`Fate::Dropped`].
    pub fate: Fate,
    /// What it takes as it is shown.
    pub tokens: TokenCount,
}

/// What a message of the history takes as it is shown.
pub(crate) fn message_tokens(shown: &Shown<'_>, rendering: Rendering, counter: &dyn TokenCounter) -> TokenCount {
    match rendering {
        Rendering::Chat => {
            let content = &shown.message.content;
            count_message_tokens(content.author.as_deref(), &shown.parts, counter)
        }
        Rendering::Transcript => counter.count(&block(shown)),
    }
}

/// Writes the report of what was taken.
pub(crate) fn write(
    plan: &Plan<'_>,
    fitting: &Fitting<'_>,
    messages: &[ChatMessage],
    anchor: Option<u64>,
    counter: &dyn TokenCounter,
) -> Report {
    let chosen = &fitting.chosen;
    let rendering = plan.policy.rendering;
    let rendered = Rendered::count(messages, counter);
    let shown: BTreeMap<u64, TokenCount> = chosen
        .history
        .iter()
        .map(|shown| {
            let count = rendered.whole(shown).unwrap_or_else(|| message_tokens(shown, rendering, counter));
            (shown.message.seq, count)
        })
        .collect();
    let count = |text: &str| match text {
        "" => TokenCount::ZERO,
        _ => rendered.notes(text).unwrap_or_else(|| counter.count(text)),
    };
    let tokens = TokensByPart {
        total: rendered.total,
        system_prompt: count(&chosen.system_prompt),
        enrichment: count(&chosen.enrichment),
        preferences: count(chosen.preferences.as_deref().unwrap_or_default()),
        summary: count(chosen.summary.as_deref().unwrap_or_default()),
        recalled: count(&chosen.recalled_text().unwrap_or_default()),
        history: shown.values().copied().sum(),
        question: count(chosen.question.as_deref().unwrap_or_default()),
        framing: 0,
    };
    let recalled = recalled_fates(plan, fitting, &shown, counter);
    Report {
        counter: counter.name().to_owned(),
        budget: plan.policy.budget,
        tokens: tokens.with_framing(),
        messages: spans(plan, fitting, &shown, &recalled),
        recalled,
        question_was_cut: fitting.question_was_cut,
        anchor,
    }
}

/// What the final messages take, each counted once: most of them are what the history shows, to the letter.
struct Rendered<'m> {
    total: TokenCount,
    /// Of messages of the thread, by position.
    by_seq: BTreeMap<u64, TokenCount>,
    /// The text of the first message, where it holds nothing else, and what it takes without a frame.
    notes: Option<(&'m str, TokenCount)>,
}

impl<'m> Rendered<'m> {
    fn count(messages: &'m [ChatMessage], counter: &dyn TokenCounter) -> Self {
        let counts: Vec<TokenCount> = messages.iter().map(|message| message.count_tokens(counter)).collect();
        let by_seq = messages.iter().zip(&counts).filter_map(|(message, count)| Some((message.seq?, *count)));
        let frame = count_message_tokens(None, &[], counter);
        let notes =
            messages.first().zip(counts.first()).and_then(|(first, count)| match (&first.parts[..], &first.author) {
                ([Part::Text(text)], None) => Some((text.as_str(), count.saturating_sub(frame))),
                _ => None,
            });
        Self { total: add_tokens(counts.iter().copied()), by_seq: by_seq.collect(), notes }
    }

    /// What a message of the history takes, where it is one of the final messages. One that calls tools or brings what they
    /// gave is several of them.
    fn whole(&self, shown: &Shown<'_>) -> Option<TokenCount> {
        let stands_alone = |part: &Part| !matches!(part, Part::ToolCall(_) | Part::ToolResult(_));
        shown.parts.iter().all(stands_alone).then(|| self.by_seq.get(&shown.message.seq).copied()).flatten()
    }

    fn notes(&self, text: &str) -> Option<TokenCount> {
        self.notes.filter(|(notes, _)| *notes == text).map(|(_, count)| count)
    }
}

fn recalled_fates(
    plan: &Plan<'_>,
    fitting: &Fitting<'_>,
    shown: &BTreeMap<u64, TokenCount>,
    counter: &dyn TokenCounter,
) -> Vec<RecalledFate> {
    let fates = plan.input.recalled.iter().enumerate().map(|(rank, recalled)| {
        let seq = recalled.message.seq;
        let line = fitting.chosen.recalled.iter().find(|line| line.rank == rank);
        let (fate, tokens) = match (line, recalled.thread.is_none() && shown.contains_key(&seq)) {
            (Some(line), _) => (Fate::Recalled, counter.count(&line.text)),
            (None, true) => (Fate::Kept, TokenCount::ZERO),
            (None, false) => (Fate::Dropped, TokenCount::ZERO),
        };
        RecalledFate { thread: recalled.thread, seq, score: recalled.score, fate, tokens }
    });
    fates.collect()
}

/// The fate of every position, in spans.
fn spans(
    plan: &Plan<'_>,
    fitting: &Fitting<'_>,
    shown: &BTreeMap<u64, TokenCount>,
    recalled: &[RecalledFate],
) -> Vec<FateSpan> {
    let ThreadRange { first_seq, last_seq } = plan.input.thread;
    let first_seq = first_seq.max(1);
    if first_seq > last_seq {
        return Vec::new();
    }
    let single = |seq, fate, why, tokens| FateSpan { first_seq: seq, last_seq: seq, fate, why, tokens };
    let mut points: BTreeMap<u64, FateSpan> = BTreeMap::new();
    for row in plan.input.unreadable {
        points.insert(row.seq, single(row.seq, Fate::Absent, Some(Why::Unreadable), TokenCount::ZERO));
    }
    for (index, message) in plan.input.history.iter().enumerate() {
        let (fate, why) = fate_of(plan, fitting, index);
        let tokens = shown.get(&message.seq).copied().unwrap_or_default();
        points.insert(message.seq, single(message.seq, fate, why, tokens));
    }
    for found in recalled.iter().filter(|found| found.thread.is_none() && found.fate == Fate::Recalled) {
        points.insert(found.seq, single(found.seq, Fate::Recalled, Some(Why::Found), found.tokens));
    }
    let loaded_from = plan.input.loaded_from();
    let covered = fitting.covered();
    let mut spans = Vec::new();
    let mut next = first_seq;
    for (seq, span) in points.range(first_seq..=last_seq) {
        push_gap(&mut spans, next, *seq - 1, loaded_from, &covered);
        push(&mut spans, *span);
        next = seq + 1;
    }
    push_gap(&mut spans, next, last_seq, loaded_from, &covered);
    spans
}

fn fate_of(plan: &Plan<'_>, fitting: &Fitting<'_>, index: usize) -> (Fate, Option<Why>) {
    if let Ok(place) = fitting.taken.binary_search(&index) {
        let shown = &fitting.chosen.history[place];
        return match (shown.is_cut, fitting.newest_was_cut(plan, index)) {
            (false, _) => (Fate::Kept, None),
            (true, true) => (Fate::Truncated, Some(Why::OverBudget)),
            (true, false) => (Fate::Truncated, Some(Why::TooLong)),
        };
    }
    let why = plan.candidates.why[index].unwrap_or(Why::OverBudget);
    let is_covered = fitting.covered().contains(&plan.input.history[index].seq);
    let fate = match why {
        _ if is_covered => Fate::Summarised,
        Why::LessRelevant => Fate::Pruned,
        _ => Fate::Dropped,
    };
    (fate, Some(why))
}

/// Positions without a message that was loaded: older than those that were, or erased between them.
fn push_gap(spans: &mut Vec<FateSpan>, first: u64, last: u64, loaded_from: u64, covered: &Range<u64>) {
    let cuts = [loaded_from.saturating_sub(1), covered.start - 1, covered.end - 1];
    let mut start = first;
    while start <= last {
        let end = cuts.iter().copied().filter(|cut| *cut >= start).min().unwrap_or(last).min(last);
        let (fate, why) = match (start >= loaded_from, covered.contains(&start)) {
            (true, _) => (Fate::Absent, Why::Erased),
            (false, true) => (Fate::Summarised, Why::OutsideWindow),
            (false, false) => (Fate::Dropped, Why::OutsideWindow),
        };
        push(spans, FateSpan { first_seq: start, last_seq: end, fate, why: Some(why), tokens: TokenCount::ZERO });
        start = end + 1;
    }
}

fn push(spans: &mut Vec<FateSpan>, span: FateSpan) {
    let is_shown = matches!(span.fate, Fate::Kept | Fate::Truncated | Fate::Recalled);
    match spans.last_mut() {
        Some(last) if !is_shown && last.fate == span.fate && last.why == span.why => last.last_seq = span.last_seq,
        _ => spans.push(span),
    }
}
