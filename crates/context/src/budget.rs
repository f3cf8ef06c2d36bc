//! Selects the parts of a context that fit the budget, as measured on the rendered context.

use std::borrow::Cow;
use std::collections::BTreeSet;

use threadkeep_core::{Message, ThreadId, TokenCount, TokenCounter};

use crate::assemble::{Plan, history_entries};
use crate::chat::history_entry;
use crate::count_tokens;
use crate::enrichment::{collect, enrich};
use crate::layout::{RecalledLine, SelectedParts, recalled_line};
use crate::quote::one_line;
use crate::{ContextError, PreferenceLine, Rendering, Summary, Trimming, transcript};

/// The approximate overhead of a part in tokens. It only guides the selection: the rendered context is counted exactly.
const PART_OVERHEAD: TokenCount = TokenCount(2);

/// The selected parts of a context.
#[derive(Clone, Debug, Default)]
pub(crate) struct FittedContext<'a> {
    pub(crate) parts: SelectedParts<'a>,
    /// Units, in the order they were selected.
    pub(crate) units: Vec<usize>,
    /// The indices of the messages of these units, ascending.
    pub(crate) indices: Vec<usize>,
    pub(crate) summary: Option<Cow<'a, Summary>>,
    pub(crate) question_was_cut: bool,
    /// The number of characters to which the newest unit was truncated.
    newest_cut: Option<usize>,
}

/// Selects the parts that fit.
///
/// # Errors
/// `BudgetTooSmall` if not even the smallest context fits.
pub(crate) fn fit<'a>(plan: &Plan<'a>, counter: &dyn TokenCounter) -> Result<FittedContext<'a>, ContextError> {
    let budget = Budget { limit: plan.policy.budget, rendering: plan.policy.rendering, counter };
    let mut fitted = FittedContext::required(plan, &budget)?;
    fitted.add_notes(plan, &budget);
    fitted.fill(plan, &budget);
    Ok(fitted)
}

struct Budget<'c> {
    limit: Option<TokenCount>,
    rendering: Rendering,
    counter: &'c dyn TokenCounter,
}

impl Budget<'_> {
    fn count(&self, parts: &SelectedParts<'_>) -> TokenCount {
        count_tokens(&parts.render(self.rendering), self.counter)
    }

    fn fits(&self, parts: &SelectedParts<'_>) -> bool {
        self.limit.is_none_or(|limit| self.count(parts) <= limit)
    }

    fn remaining(&self, parts: &SelectedParts<'_>) -> TokenCount {
        self.limit.map_or(TokenCount(u64::MAX), |limit| limit.saturating_sub(self.count(parts)))
    }
}

fn share(total: TokenCount, percent: u8) -> TokenCount {
    if total.0 == u64::MAX { total } else { TokenCount(total.0.saturating_mul(u64::from(percent)) / 100) }
}

impl<'a> FittedContext<'a> {
    /// Creates the smallest context: the system prompt and the question, truncated if necessary.
    fn required(plan: &Plan<'a>, budget: &Budget<'_>) -> Result<Self, ContextError> {
        let system_prompt = plan.policy.system_prompt.clone().unwrap_or_default();
        let mut fitted = Self { parts: SelectedParts { system_prompt, ..SelectedParts::default() }, ..Self::default() };
        fitted.set_units(plan, plan.newest_unit().into_iter().collect());
        fitted.cut_newest(plan, None);
        if budget.fits(&fitted.parts) {
            return Ok(fitted);
        }
        fitted.cut_newest(plan, Some(0));
        if !budget.fits(&fitted.parts) {
            let limit = budget.limit.unwrap_or_default();
            return Err(ContextError::BudgetTooSmall { budget: limit, needed: budget.count(&fitted.parts) });
        }
        // Finds the longest prefix that fits: `fits` is always a length that fits, `exceeds` one that does not. Doubling
        // from a small start bounds the cost by the budget, however long the message is.
        let (mut fits, mut exceeds, mut doubled) = (0, plan.newest_characters(), 64);
        while exceeds > fits + 1 {
            let available = if doubled < exceeds { doubled } else { fits + (exceeds - fits) / 2 };
            fitted.cut_newest(plan, Some(available));
            if budget.fits(&fitted.parts) {
                fits = available
            } else {
                exceeds = available
            }
            doubled = doubled.saturating_mul(2);
        }
        fitted.cut_newest(plan, Some(fits));
        Ok(fitted)
    }

    fn cut_newest(&mut self, plan: &Plan<'a>, available: Option<usize>) {
        self.newest_cut = available;
        self.parts.history = history_entries(plan, &self.indices, available);
        let cut =
            plan.question.zip(available).and_then(|(question, available)| crate::cut::cut_marked(question, available));
        self.question_was_cut = cut.is_some();
        self.parts.question = cut.or_else(|| plan.question.map(str::to_owned));
    }

    /// Adds the enrichment and the preferences.
    fn add_notes(&mut self, plan: &Plan<'a>, budget: &Budget<'_>) {
        if let Some(enrichment) = plan.input.enrichment {
            let mentions = collect(plan.input.history, &enrichment.extractors);
            self.parts.enrichment = enrich("", &mentions, &enrichment.sentences);
            if !budget.fits(&self.parts) {
                self.parts.enrichment.clear();
            }
        }
        if plan.policy.preferences {
            let mut lines = plan.input.preferences;
            self.parts.preferences = preferences_text(lines);
            while !lines.is_empty() && !budget.fits(&self.parts) {
                lines = &lines[..lines.len() / 2];
                self.parts.preferences = preferences_text(lines);
            }
        }
    }

    /// Adds the history, recalled messages, and a summary of the messages that do not fit.
    fn fill(&mut self, plan: &Plan<'a>, budget: &Budget<'_>) {
        let available = budget.remaining(&self.parts);
        let summary_limit =
            plan.policy.summary.map(|policy| share(budget.limit.unwrap_or(TokenCount(u64::MAX)), policy.share_percent));
        self.select_within(plan, budget, available);
        self.update_summary(plan, budget, summary_limit);
        // Without a budget, everything is included already.
        if let (Some(text), Some(_)) = (&self.parts.summary, budget.limit) {
            let needed = budget.counter.count(text) + PART_OVERHEAD;
            self.select_within(plan, budget, available.saturating_sub(needed));
            self.update_summary(plan, budget, summary_limit);
        }
        while !budget.fits(&self.parts) {
            if !self.drop_least_valuable(plan) {
                break;
            }
            if self.parts.summary.is_some() {
                self.update_summary(plan, budget, summary_limit);
            }
        }
    }

    /// Selects in four passes: the history without the share that is reserved for recalled messages; recalled messages
    /// up to that share; more history with the unused tokens; and more recalled messages with the rest.
    fn select_within(&mut self, plan: &Plan<'a>, budget: &Budget<'_>, available: TokenCount) {
        let keep_percent = match plan.policy.trimming {
            Trimming::Steps { keep_percent } if plan.is_shortened => keep_percent,
            _ => 100,
        };
        if plan.input.recalled.is_empty() {
            let selected = self.select_units(plan, budget, share(available, keep_percent));
            return self.set_units(plan, selected.units);
        }
        let reserved = share(available, plan.policy.recall.share_percent);
        let selected = self.select_units(plan, budget, share(available.saturating_sub(reserved), keep_percent));
        let mut found = recalled_lines(plan, budget, reserved, Vec::new(), &selected.units);
        let selected = loop {
            let spent = found.iter().map(|line| line.cost).sum();
            let selected = self.select_units(plan, budget, share(available.saturating_sub(spent), keep_percent));
            // If the longer history includes a recalled message, the message is not recalled and its tokens go to the
            // history.
            let count = found.len();
            let mut seen = visible_keys(plan, &selected.units);
            found.retain(|line| seen.insert(message_key(plan, line.rank)));
            if found.len() == count {
                break selected;
            }
        };
        let unused = available.saturating_sub(selected.cost);
        self.parts.recalled = recalled_lines(plan, budget, unused, found, &selected.units);
        self.set_units(plan, selected.units);
    }

    /// Selects the newest unit, then other units that fit, in order of preference.
    fn select_units(&self, plan: &Plan<'a>, budget: &Budget<'_>, available: TokenCount) -> SelectedUnits {
        let newest = plan.newest_unit();
        let mut selected = SelectedUnits { units: newest.into_iter().collect(), cost: TokenCount::ZERO };
        let mut frame = match plan.policy.rendering {
            Rendering::Transcript => budget.counter.count(&transcript::frame()),
            Rendering::Chat => TokenCount::ZERO,
        };
        for &unit in plan.candidates.order.iter().filter(|unit| Some(**unit) != newest) {
            let members = plan.units[unit].members.iter();
            let cost: TokenCount = match budget.limit {
                Some(_) => members.map(|&index| message_cost(plan, index, budget)).sum(),
                None => TokenCount::ZERO,
            };
            if budget.limit.is_some() && selected.cost + cost + frame > available {
                if plan.candidates.is_contiguous {
                    break;
                }
                continue;
            }
            selected.cost += cost + frame;
            frame = TokenCount::ZERO;
            selected.units.push(unit);
        }
        selected
    }

    fn set_units(&mut self, plan: &Plan<'a>, units: Vec<usize>) {
        let mut indices: Vec<usize> = plan.members(&units).collect();
        indices.sort_unstable();
        self.parts.history = history_entries(plan, &indices, self.newest_cut);
        (self.units, self.indices) = (units, indices);
    }

    /// Updates the summary of the omitted messages. A summary without sentences is also stored, because it records which
    /// positions it covers.
    fn update_summary(&mut self, plan: &Plan<'a>, budget: &Budget<'_>, limit: Option<TokenCount>) {
        let Some(limit) = limit else { return };
        self.summary = extended_summary(plan, &self.indices);
        let limit = budget.limit.map(|_| limit);
        // The summary may cover messages that a later pass added to the history. They are not rendered twice.
        let boundary = plan.boundary(&self.indices);
        self.parts.summary =
            self.summary.as_ref().and_then(|summary| summary.render_before(boundary, limit, budget.counter));
    }

    /// Removes the least valuable part: the unit selected last, then the last recalled message, then the notes. Returns
    /// whether anything was removed.
    fn drop_least_valuable(&mut self, plan: &Plan<'a>) -> bool {
        let required = usize::from(plan.newest_unit().is_some());
        if self.units.len() > required {
            let mut units = std::mem::take(&mut self.units);
            units.pop();
            self.set_units(plan, units);
            return true;
        }
        self.parts.recalled.pop().is_some()
            || self.parts.summary.take().is_some()
            || self.parts.preferences.take().is_some()
            || !std::mem::take(&mut self.parts.enrichment).is_empty()
    }

    /// Whether candidates were omitted.
    pub(crate) fn overflows(&self, plan: &Plan<'_>) -> bool {
        self.units.len() < plan.candidates.order.len()
    }

    /// Returns the positions that the summary in the context covers; an empty range without a summary.
    pub(crate) fn summarised_positions(&self) -> std::ops::Range<u64> {
        match (&self.parts.summary, &self.summary) {
            (Some(_), Some(summary)) => summary.first_seq.max(1)..summary.through_seq + 1,
            _ => 1..1,
        }
    }

    /// Whether a message belongs to the newest unit and was truncated with it.
    pub(crate) fn newest_was_cut(&self, plan: &Plan<'_>, index: usize) -> bool {
        let is_newest = plan.newest_unit().is_some_and(|unit| plan.units[unit].members.contains(&index));
        is_newest && self.newest_cut.is_some()
    }

    /// Returns the first position of the history if the policy trims in steps.
    pub(crate) fn anchor(&self, plan: &Plan<'_>) -> Option<u64> {
        let Trimming::Steps { .. } = plan.policy.trimming else { return None };
        let first = self.indices.first().map(|&index| plan.input.history[index].seq);
        if plan.is_shortened { first } else { plan.input.anchor.or(first) }
    }
}

impl Plan<'_> {
    /// Returns an upper bound on the number of characters in the newest unit and the question.
    fn newest_characters(&self) -> usize {
        let newest = self.newest_unit().map_or(&[][..], |unit| &self.units[unit].members[..]);
        let parts = newest.iter().flat_map(|&index| &self.input.history[index].content.parts);
        let characters_of_parts: usize =
            parts.map(|part| serde_json::to_string(part).map_or(0, |text| text.len())).sum();
        characters_of_parts + self.question.map_or(0, str::len)
    }
}

fn message_cost(plan: &Plan<'_>, index: usize, budget: &Budget<'_>) -> TokenCount {
    let message = history_entry(&plan.input.history[index], plan.policy.message_characters);
    crate::report::message_tokens(&message, plan.policy.rendering, budget.counter) + PART_OVERHEAD
}

/// Units in order of selection, and their total cost.
struct SelectedUnits {
    units: Vec<usize>,
    cost: TokenCount,
}

/// Identifies a message: its thread, `None` for the thread of the context, and its position.
type MessageKey = (Option<ThreadId>, u64);

fn message_key(plan: &Plan<'_>, rank: usize) -> MessageKey {
    let recalled = &plan.input.recalled[rank];
    (recalled.thread, recalled.message.seq)
}

/// Returns the keys of the messages in `units`, and of the question if it is a message: recalling the question itself
/// would add nothing.
fn visible_keys(plan: &Plan<'_>, units: &[usize]) -> BTreeSet<MessageKey> {
    let included = plan.members(units).map(|index| plan.input.history[index].seq);
    included.chain(plan.question_seq()).map(|seq| (None, seq)).collect()
}

/// Selects recalled messages that fit, best first. The messages in `found` take precedence. Omits duplicates and
/// messages that the history includes.
fn recalled_lines(
    plan: &Plan<'_>,
    budget: &Budget<'_>,
    available: TokenCount,
    found: Vec<RecalledLine>,
    selected: &[usize],
) -> Vec<RecalledLine> {
    let policy = plan.policy.recall;
    let mut seen = visible_keys(plan, selected);
    let mut lines: Vec<RecalledLine> =
        found.into_iter().filter(|line| seen.insert(message_key(plan, line.rank))).collect();
    let mut remaining = available.saturating_sub(lines.iter().map(|line| line.cost).sum());
    for (rank, recalled) in plan.input.recalled.iter().enumerate() {
        if lines.len() >= policy.messages {
            break;
        }
        if seen.contains(&message_key(plan, rank)) {
            continue;
        }
        let Some(text) = recalled_line(recalled, policy.message_characters) else { continue };
        let cost = budget.counter.count(&text) + PART_OVERHEAD;
        if budget.limit.is_none() || cost <= remaining {
            remaining = remaining.saturating_sub(cost);
            seen.insert(message_key(plan, rank));
            lines.push(RecalledLine { rank, text, cost });
        }
    }
    lines.sort_by_key(|line| line.rank);
    lines
}

fn preferences_text(lines: &[PreferenceLine]) -> Option<String> {
    let lines: Vec<String> =
        lines.iter().map(|line| format!("- {}: {}", one_line(&line.key), one_line(&line.value))).collect();
    (!lines.is_empty()).then(|| format!("What the user prefers:\n{}", lines.join("\n")))
}

/// Extends the summary with the messages before the contiguous end of the history. Returns the summary unchanged if
/// some of these messages were not loaded: it must not claim to cover messages that were never summarised.
fn extended_summary<'a>(plan: &Plan<'a>, indices: &[usize]) -> Option<Cow<'a, Summary>> {
    let (input, policy) = (&plan.input, plan.policy.summary?);
    let first_loaded_seq = input.first_loaded_seq();
    let covered = input.summary.map_or(0, |summary| summary.through_seq).max(input.thread.first_seq.saturating_sub(1));
    let through = plan.boundary(indices) - 1;
    if covered + 1 < first_loaded_seq || through <= covered {
        return input.summary.map(Cow::Borrowed);
    }
    let omitted: &[Message] = input.history;
    let extended = Summary::extend(input.summary, omitted, input.thread.first_seq, through, policy.characters);
    Some(Cow::Owned(extended))
}
