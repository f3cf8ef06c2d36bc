//! Reports what happened to every message of the thread, and the tokens of each part.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use threadkeep_core::{Part, ThreadId, TokenCount, TokenCounter, add_tokens, count_message_tokens};

use crate::assemble::Plan;
use crate::budget::FittedContext;
use crate::chat::HistoryEntry;
use crate::transcript::block;
use crate::{ChatMessage, Rendering, ThreadRange};

/// Explains a context. Contains positions and numbers, no message text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The name of the token counter.
    pub counter: String,
    /// The token budget of the policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<TokenCount>,
    /// The tokens of each part.
    pub tokens: TokensByPart,
    /// The fate of each position of the thread, ascending; each position is in exactly one span.
    pub messages: Vec<FateSpan>,
    /// The fates of the recalled messages, best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recalled: Vec<RecalledFate>,
    /// Whether the question was truncated to fit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub question_was_cut: bool,
    /// The first position of the history, if it is trimmed in steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<u64>,
}

/// Tokens by part. The parts and `framing` add up to `total` exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokensByPart {
    /// Tokens of the rendered context.
    pub total: TokenCount,
    /// Tokens of the system prompt.
    pub system_prompt: TokenCount,
    /// Tokens of the enrichment.
    pub enrichment: TokenCount,
    /// Tokens of the preferences.
    pub preferences: TokenCount,
    /// Tokens of the summary.
    pub summary: TokenCount,
    /// Tokens of recalled messages.
    pub recalled: TokenCount,
    /// Tokens of the history.
    pub history: TokenCount,
    /// Tokens of the question, unless it is a message of the history.
    pub question: TokenCount,
    /// The overhead of the chat format: tokens of separators and message frames. Negative if the joined text has fewer tokens than its parts.
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

/// Consecutive positions with the same fate. Each included message has its own span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FateSpan {
    /// The first position.
    pub first_seq: u64,
    /// The last position.
    pub last_seq: u64,
    /// The fate.
    pub fate: Fate,
    /// The reason, unless the messages are included in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<FateReason>,
    /// The number of tokens of these messages in the context.
    pub tokens: TokenCount,
}

impl FateSpan {
    /// Returns the number of positions in the span.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.last_seq - self.first_seq + 1
    }
}

/// What happened to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Fate {
    /// Included in the history, in full.
    Kept,
    /// Included in the history, truncated.
    Truncated,
    /// Included among the recalled messages.
    Recalled,
    /// Omitted; the summary covers the message.
    Summarised,
    /// Omitted, because other messages are more relevant.
    Pruned,
    /// Omitted without a replacement.
    Dropped,
    /// The position has no readable message.
    Absent,
}

/// The reason for a message's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FateReason {
    /// The message is older than the window.
    OutsideWindow,
    /// The message precedes the anchor.
    BeforeAnchor,
    /// The budget was exhausted.
    OverBudget,
    /// Other messages are more relevant.
    LessRelevant,
    /// The message exceeds the limit per message.
    TooLong,
    /// The message is part of a tool call or result whose counterpart is outside the window, so both are omitted.
    PairBroken,
    /// The search returned the message.
    Found,
    /// The message was erased.
    Erased,
    /// The stored message could not be decoded.
    Unreadable,
}

/// What happened to a recalled message.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RecalledFate {
    /// The message's thread, if it is not the context's own thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<ThreadId>,
    /// The message's position in its thread.
    pub seq: u64,
    /// The relevance that the search assigned.
    pub score: f64,
    /// [`Fate::Recalled`], [`Fate::Kept`] (part of the history) or [`Fate::Dropped`].
    pub fate: Fate,
    /// The number of tokens of the message in the context.
    pub tokens: TokenCount,
}

/// Counts the tokens of a rendered message of the history.
pub(crate) fn message_tokens(entry: &HistoryEntry<'_>, rendering: Rendering, counter: &dyn TokenCounter) -> TokenCount {
    match rendering {
        Rendering::Chat => {
            let content = &entry.message.content;
            count_message_tokens(content.author.as_deref(), &entry.parts, counter)
        }
        Rendering::Transcript => counter.count(&block(entry)),
    }
}

/// Writes the report of a selection.
pub(crate) fn write(
    plan: &Plan<'_>,
    fitted: &FittedContext<'_>,
    messages: &[ChatMessage],
    anchor: Option<u64>,
    counter: &dyn TokenCounter,
) -> Report {
    let parts = &fitted.parts;
    let rendering = plan.policy.rendering;
    let rendered = Rendered::count(messages, counter);
    let history_tokens: BTreeMap<u64, TokenCount> = parts
        .history
        .iter()
        .map(|entry| {
            let count = rendered.whole(entry).unwrap_or_else(|| message_tokens(entry, rendering, counter));
            (entry.message.seq, count)
        })
        .collect();
    let count = |text: &str| match text {
        "" => TokenCount::ZERO,
        _ => rendered.notes(text).unwrap_or_else(|| counter.count(text)),
    };
    let tokens = TokensByPart {
        total: rendered.total,
        system_prompt: count(&parts.system_prompt),
        enrichment: count(&parts.enrichment),
        preferences: count(parts.preferences.as_deref().unwrap_or_default()),
        summary: count(parts.summary.as_deref().unwrap_or_default()),
        recalled: count(&parts.recalled_text().unwrap_or_default()),
        history: history_tokens.values().copied().sum(),
        question: count(parts.question.as_deref().unwrap_or_default()),
        framing: 0,
    };
    let recalled = recalled_fates(plan, fitted, &history_tokens, counter);
    Report {
        counter: counter.name().to_owned(),
        budget: plan.policy.budget,
        tokens: tokens.with_framing(),
        messages: spans(plan, fitted, &history_tokens, &recalled),
        recalled,
        question_was_cut: fitted.question_was_cut,
        anchor,
    }
}

/// Token counts of the rendered messages. A message of the history that is rendered unchanged is counted only once.
struct Rendered<'m> {
    total: TokenCount,
    /// Counts of the messages of the thread, by position.
    by_seq: BTreeMap<u64, TokenCount>,
    /// The text and token count of the first message if it contains only text. Excludes the message frame.
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

    /// Returns the count of a message of the history that is rendered as one message. Tool calls and results are rendered as
    /// several messages.
    fn whole(&self, entry: &HistoryEntry<'_>) -> Option<TokenCount> {
        let is_plain = |part: &Part| !matches!(part, Part::ToolCall(_) | Part::ToolResult(_));
        entry.parts.iter().all(is_plain).then(|| self.by_seq.get(&entry.message.seq).copied()).flatten()
    }

    fn notes(&self, text: &str) -> Option<TokenCount> {
        self.notes.filter(|(notes, _)| *notes == text).map(|(_, count)| count)
    }
}

fn recalled_fates(
    plan: &Plan<'_>,
    fitted: &FittedContext<'_>,
    history_tokens: &BTreeMap<u64, TokenCount>,
    counter: &dyn TokenCounter,
) -> Vec<RecalledFate> {
    let fates = plan.input.recalled.iter().enumerate().map(|(rank, recalled)| {
        let seq = recalled.message.seq;
        let line = fitted.parts.recalled.iter().find(|line| line.rank == rank);
        let (fate, tokens) = match (line, recalled.thread.is_none() && history_tokens.contains_key(&seq)) {
            (Some(line), _) => (Fate::Recalled, counter.count(&line.text)),
            (None, true) => (Fate::Kept, TokenCount::ZERO),
            (None, false) => (Fate::Dropped, TokenCount::ZERO),
        };
        RecalledFate { thread: recalled.thread, seq, score: recalled.score, fate, tokens }
    });
    fates.collect()
}

/// Returns the fate of every position, in spans.
fn spans(
    plan: &Plan<'_>,
    fitted: &FittedContext<'_>,
    history_tokens: &BTreeMap<u64, TokenCount>,
    recalled: &[RecalledFate],
) -> Vec<FateSpan> {
    let ThreadRange { first_seq, last_seq } = plan.input.thread;
    let first_seq = first_seq.max(1);
    if first_seq > last_seq {
        return Vec::new();
    }
    let single = |seq, fate, why, tokens| FateSpan { first_seq: seq, last_seq: seq, fate, why, tokens };
    let mut spans_by_seq: BTreeMap<u64, FateSpan> = BTreeMap::new();
    for row in plan.input.unreadable {
        spans_by_seq.insert(row.seq, single(row.seq, Fate::Absent, Some(FateReason::Unreadable), TokenCount::ZERO));
    }
    for (index, message) in plan.input.history.iter().enumerate() {
        let (fate, why) = fate_of(plan, fitted, index);
        let tokens = history_tokens.get(&message.seq).copied().unwrap_or_default();
        spans_by_seq.insert(message.seq, single(message.seq, fate, why, tokens));
    }
    for found in recalled.iter().filter(|found| found.thread.is_none() && found.fate == Fate::Recalled) {
        spans_by_seq.insert(found.seq, single(found.seq, Fate::Recalled, Some(FateReason::Found), found.tokens));
    }
    let first_loaded_seq = plan.input.first_loaded_seq();
    let summarised = fitted.summarised_positions();
    let mut spans = Vec::new();
    let mut next = first_seq;
    for (seq, span) in spans_by_seq.range(first_seq..=last_seq) {
        push_gap(&mut spans, next, *seq - 1, first_loaded_seq, &summarised);
        push(&mut spans, *span);
        next = seq + 1;
    }
    push_gap(&mut spans, next, last_seq, first_loaded_seq, &summarised);
    spans
}

fn fate_of(plan: &Plan<'_>, fitted: &FittedContext<'_>, index: usize) -> (Fate, Option<FateReason>) {
    if let Ok(entry_index) = fitted.indices.binary_search(&index) {
        let entry = &fitted.parts.history[entry_index];
        return match (entry.is_cut, fitted.newest_was_cut(plan, index)) {
            (false, _) => (Fate::Kept, None),
            (true, true) => (Fate::Truncated, Some(FateReason::OverBudget)),
            (true, false) => (Fate::Truncated, Some(FateReason::TooLong)),
        };
    }
    let reason = plan.candidates.omission_reasons[index].unwrap_or(FateReason::OverBudget);
    let is_summarised = fitted.summarised_positions().contains(&plan.input.history[index].seq);
    let fate = match reason {
        _ if is_summarised => Fate::Summarised,
        FateReason::LessRelevant => Fate::Pruned,
        _ => Fate::Dropped,
    };
    (fate, Some(reason))
}

/// Adds the span of positions without a loaded message: older than the loaded messages, or erased between them.
fn push_gap(spans: &mut Vec<FateSpan>, first: u64, last: u64, first_loaded_seq: u64, covered: &Range<u64>) {
    let cuts = [first_loaded_seq.saturating_sub(1), covered.start - 1, covered.end - 1];
    let mut start = first;
    while start <= last {
        let end = cuts.iter().copied().filter(|cut| *cut >= start).min().unwrap_or(last).min(last);
        let (fate, why) = match (start >= first_loaded_seq, covered.contains(&start)) {
            (true, _) => (Fate::Absent, FateReason::Erased),
            (false, true) => (Fate::Summarised, FateReason::OutsideWindow),
            (false, false) => (Fate::Dropped, FateReason::OutsideWindow),
        };
        push(spans, FateSpan { first_seq: start, last_seq: end, fate, why: Some(why), tokens: TokenCount::ZERO });
        start = end + 1;
    }
}

fn push(spans: &mut Vec<FateSpan>, span: FateSpan) {
    let is_included = matches!(span.fate, Fate::Kept | Fate::Truncated | Fate::Recalled);
    match spans.last_mut() {
        Some(last) if !is_included && last.fate == span.fate && last.why == span.why => last.last_seq = span.last_seq,
        _ => spans.push(span),
    }
}
