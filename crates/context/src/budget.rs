//! Taking as much as the budget has room for, measured on the final rendering.

use std::borrow::Cow;
use std::collections::BTreeSet;

use threadkeep_core::{Message, ThreadId, TokenCount, TokenCounter};

use crate::assemble::{Plan, show};
use crate::chat::shown;
use crate::count_tokens;
use crate::enrichment::{collect, enrich};
use crate::layout::{Chosen, RecalledLine, recalled_line};
use crate::quote::one_line;
use crate::{ContextError, PreferenceLine, Rendering, Summary, Trimming, transcript};

/// Tokens that a part takes beside its words, roughly; the final rendering is counted exactly.
const SEAM: TokenCount = TokenCount(2);

/// What was taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fitting<'a> {
    pub(crate) chosen: Chosen<'a>,
    /// Units in the order they were taken.
    pub(crate) units: Vec<usize>,
    /// The places of their messages, ascending.
    pub(crate) taken: Vec<usize>,
    pub(crate) summary: Option<Cow<'a, Summary>>,
    pub(crate) question_was_cut: bool,
    /// Characters that the newest unit was cut to.
    newest_room: Option<usize>,
}

/// Takes what fits.
///
/// # Errors
/// `BudgetTooSmall` where not even the smallest context fits.
pub(crate) fn fit<'a>(plan: &Plan<'a>, counter: &dyn TokenCounter) -> Result<Fitting<'a>, ContextError> {
    let budget = Budget { limit: plan.policy.budget, rendering: plan.policy.rendering, counter };
    let mut fitting = Fitting::required(plan, &budget)?;
    fitting.add_notes(plan, &budget);
    fitting.fill(plan, &budget);
    Ok(fitting)
}

struct Budget<'c> {
    limit: Option<TokenCount>,
    rendering: Rendering,
    counter: &'c dyn TokenCounter,
}

impl Budget<'_> {
    fn count(&self, chosen: &Chosen<'_>) -> TokenCount {
        count_tokens(&chosen.render(self.rendering), self.counter)
    }

    fn fits(&self, chosen: &Chosen<'_>) -> bool {
        self.limit.is_none_or(|limit| self.count(chosen) <= limit)
    }

    fn left(&self, chosen: &Chosen<'_>) -> TokenCount {
        self.limit.map_or(TokenCount(u64::MAX), |limit| limit.saturating_sub(self.count(chosen)))
    }
}

fn share(of: TokenCount, percent: u8) -> TokenCount {
    if of.0 == u64::MAX { of } else { TokenCount(of.0.saturating_mul(u64::from(percent)) / 100) }
}

impl<'a> Fitting<'a> {
    /// The smallest context: the system prompt and what is to be answered, cut if it must be.
    fn required(plan: &Plan<'a>, budget: &Budget<'_>) -> Result<Self, ContextError> {
        let system_prompt = plan.policy.system_prompt.clone().unwrap_or_default();
        let mut fitting = Self { chosen: Chosen { system_prompt, ..Chosen::default() }, ..Self::default() };
        fitting.take(plan, plan.newest_unit().into_iter().collect());
        fitting.cut_newest(plan, None);
        if budget.fits(&fitting.chosen) {
            return Ok(fitting);
        }
        fitting.cut_newest(plan, Some(0));
        if !budget.fits(&fitting.chosen) {
            let budget_set = budget.limit.unwrap_or_default();
            return Err(ContextError::BudgetTooSmall { budget: budget_set, needed: budget.count(&fitting.chosen) });
        }
        // The greatest room that fits: `fits` always does, `exceeds` never. Doubling from small keeps the cost to that of
        // the budget, however long the message is.
        let (mut fits, mut exceeds, mut doubled) = (0, plan.newest_characters(), 64);
        while exceeds > fits + 1 {
            let room = if doubled < exceeds { doubled } else { fits + (exceeds - fits) / 2 };
            fitting.cut_newest(plan, Some(room));
            if budget.fits(&fitting.chosen) {
                fits = room
            } else {
                exceeds = room
            }
            doubled = doubled.saturating_mul(2);
        }
        fitting.cut_newest(plan, Some(fits));
        Ok(fitting)
    }

    fn cut_newest(&mut self, plan: &Plan<'a>, room: Option<usize>) {
        self.newest_room = room;
        self.chosen.history = show(plan, &self.taken, room);
        let cut = plan.question.zip(room).and_then(|(question, room)| crate::cut::cut_marked(question, room));
        self.question_was_cut = cut.is_some();
        self.chosen.question = cut.or_else(|| plan.question.map(str::to_owned));
    }

    /// Adds what is small and said about the whole conversation.
    fn add_notes(&mut self, plan: &Plan<'a>, budget: &Budget<'_>) {
        if let Some(enrichment) = plan.input.enrichment {
            let mentions = collect(plan.input.history, &enrichment.extractors);
            self.chosen.enrichment = enrich("", &mentions, &enrichment.sentences);
            if !budget.fits(&self.chosen) {
                self.chosen.enrichment.clear();
            }
        }
        if plan.policy.preferences {
            let mut lines = plan.input.preferences;
            self.chosen.preferences = preferences_text(lines);
            while !lines.is_empty() && !budget.fits(&self.chosen) {
                lines = &lines[..lines.len() / 2];
                self.chosen.preferences = preferences_text(lines);
            }
        }
    }

    /// Adds the history, recalled messages, and a summary of what falls out.
    fn fill(&mut self, plan: &Plan<'a>, budget: &Budget<'_>) {
        let left = budget.left(&self.chosen);
        let summary_limit =
            plan.policy.summary.map(|policy| share(budget.limit.unwrap_or(TokenCount(u64::MAX)), policy.share_percent));
        self.take_greedily(plan, budget, left);
        self.renew_summary(plan, budget, summary_limit);
        // Without a bound everything has its place already.
        if let (Some(text), Some(_)) = (&self.chosen.summary, budget.limit) {
            let needed = budget.counter.count(text) + SEAM;
            self.take_greedily(plan, budget, left.saturating_sub(needed));
            self.renew_summary(plan, budget, summary_limit);
        }
        while !budget.fits(&self.chosen) {
            if !self.give_way(plan) {
                break;
            }
            if self.chosen.summary.is_some() {
                self.renew_summary(plan, budget, summary_limit);
            }
        }
    }

    /// Takes the history as far as it leaves the recalled messages their share; those that it does not show, up to that
    /// share; more of the history with what is left; and more recalled messages with the rest.
    fn take_greedily(&mut self, plan: &Plan<'a>, budget: &Budget<'_>, left: TokenCount) {
        let keep_percent = match plan.policy.trimming {
            Trimming::Steps { keep_percent } if plan.is_shortened => keep_percent,
            _ => 100,
        };
        if plan.input.recalled.is_empty() {
            let shown = self.greedy_units(plan, budget, share(left, keep_percent));
            return self.take(plan, shown.units);
        }
        let promised = share(left, plan.policy.recall.share_percent);
        let shown = self.greedy_units(plan, budget, share(left.saturating_sub(promised), keep_percent));
        let mut found = recalled_lines(plan, budget, promised, Vec::new(), &shown.units);
        let shown = loop {
            let spent = found.iter().map(|line| line.cost).sum();
            let shown = self.greedy_units(plan, budget, share(left.saturating_sub(spent), keep_percent));
            // What the longer history shows by itself leaves its room to more of it.
            let count = found.len();
            let mut seen = places_shown(plan, &shown.units);
            found.retain(|line| seen.insert(place(plan, line.rank)));
            if found.len() == count {
                break shown;
            }
        };
        let rest = left.saturating_sub(shown.cost);
        self.chosen.recalled = recalled_lines(plan, budget, rest, found, &shown.units);
        self.take(plan, shown.units);
    }

    /// The newest unit, then those that fit, in order.
    fn greedy_units(&self, plan: &Plan<'a>, budget: &Budget<'_>, room: TokenCount) -> Taken {
        let newest = plan.newest_unit();
        let mut taken = Taken { units: newest.into_iter().collect(), cost: TokenCount::ZERO };
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
            if budget.limit.is_some() && taken.cost + cost + frame > room {
                if plan.candidates.is_contiguous {
                    break;
                }
                continue;
            }
            taken.cost += cost + frame;
            frame = TokenCount::ZERO;
            taken.units.push(unit);
        }
        taken
    }

    fn take(&mut self, plan: &Plan<'a>, units: Vec<usize>) {
        let mut taken: Vec<usize> = plan.members(&units).collect();
        taken.sort_unstable();
        self.chosen.history = show(plan, &taken, self.newest_room);
        (self.units, self.taken) = (units, taken);
    }

    /// Makes the summary of what is not shown. One that has nothing to say is still kept, with the positions it covers.
    fn renew_summary(&mut self, plan: &Plan<'a>, budget: &Budget<'_>, limit: Option<TokenCount>) {
        let Some(limit) = limit else { return };
        self.summary = renewed(plan, &self.taken);
        let limit = budget.limit.map(|_| limit);
        // What is shown needs no summary, whatever was summarised while less was shown.
        let boundary = plan.boundary(&self.taken);
        self.chosen.summary =
            self.summary.as_ref().and_then(|summary| summary.text_before(boundary, limit, budget.counter));
    }

    /// Takes away what is worth least: the unit taken last, then the last recalled message, then notes.
    fn give_way(&mut self, plan: &Plan<'a>) -> bool {
        let required = usize::from(plan.newest_unit().is_some());
        if self.units.len() > required {
            let mut units = std::mem::take(&mut self.units);
            units.pop();
            self.take(plan, units);
            return true;
        }
        self.chosen.recalled.pop().is_some()
            || self.chosen.summary.take().is_some()
            || self.chosen.preferences.take().is_some()
            || !std::mem::take(&mut self.chosen.enrichment).is_empty()
    }

    /// Whether candidates are left out.
    pub(crate) fn overflows(&self, plan: &Plan<'_>) -> bool {
        self.units.len() < plan.candidates.order.len()
    }

    /// The positions that what stands in the context as a summary covers; none when there is none.
    pub(crate) fn covered(&self) -> std::ops::Range<u64> {
        match (&self.chosen.summary, &self.summary) {
            (Some(_), Some(summary)) => summary.first_seq.max(1)..summary.through_seq + 1,
            _ => 1..1,
        }
    }

    /// Whether a message was cut because the newest had to be.
    pub(crate) fn newest_was_cut(&self, plan: &Plan<'_>, index: usize) -> bool {
        let is_newest = plan.newest_unit().is_some_and(|unit| plan.units[unit].members.contains(&index));
        is_newest && self.newest_room.is_some()
    }

    /// Where the history begins, where that is to be remembered.
    pub(crate) fn anchor(&self, plan: &Plan<'_>) -> Option<u64> {
        let Trimming::Steps { .. } = plan.policy.trimming else { return None };
        let first = self.taken.first().map(|&index| plan.input.history[index].seq);
        if plan.is_shortened { first } else { plan.input.anchor.or(first) }
    }
}

impl Plan<'_> {
    /// An upper bound of the characters of what is to be answered.
    fn newest_characters(&self) -> usize {
        let newest = self.newest_unit().map_or(&[][..], |unit| &self.units[unit].members[..]);
        let parts = newest.iter().flat_map(|&index| &self.input.history[index].content.parts);
        let of_parts: usize = parts.map(|part| serde_json::to_string(part).map_or(0, |text| text.len())).sum();
        of_parts + self.question.map_or(0, str::len)
    }
}

fn message_cost(plan: &Plan<'_>, index: usize, budget: &Budget<'_>) -> TokenCount {
    let message = shown(&plan.input.history[index], plan.policy.message_characters);
    crate::report::message_tokens(&message, plan.policy.rendering, budget.counter) + SEAM
}

/// Units in the order they were taken, and what they take.
struct Taken {
    units: Vec<usize>,
    cost: TokenCount,
}

/// The thread of a message, where it is another one, and its position there.
type Place = (Option<ThreadId>, u64);

fn place(plan: &Plan<'_>, rank: usize) -> Place {
    let recalled = &plan.input.recalled[rank];
    (recalled.thread, recalled.message.seq)
}

/// The places of what units show; and that of the question, where it is a message: nothing is said by recalling it.
fn places_shown(plan: &Plan<'_>, units: &[usize]) -> BTreeSet<Place> {
    let shown = plan.members(units).map(|index| plan.input.history[index].seq);
    shown.chain(plan.asked_seq()).map(|seq| (None, seq)).collect()
}

/// Recalled messages that fit, best first, those already `found` before others; without those of this thread that are
/// shown in the history, and each once.
fn recalled_lines(
    plan: &Plan<'_>,
    budget: &Budget<'_>,
    room: TokenCount,
    found: Vec<RecalledLine>,
    shown: &[usize],
) -> Vec<RecalledLine> {
    let policy = plan.policy.recall;
    let mut seen = places_shown(plan, shown);
    let mut lines: Vec<RecalledLine> = found.into_iter().filter(|line| seen.insert(place(plan, line.rank))).collect();
    let mut left = room.saturating_sub(lines.iter().map(|line| line.cost).sum());
    for (rank, recalled) in plan.input.recalled.iter().enumerate() {
        if lines.len() >= policy.messages {
            break;
        }
        if seen.contains(&place(plan, rank)) {
            continue;
        }
        let Some(text) = recalled_line(recalled, policy.message_characters) else { continue };
        let cost = budget.counter.count(&text) + SEAM;
        if budget.limit.is_none() || cost <= left {
            left = left.saturating_sub(cost);
            seen.insert(place(plan, rank));
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

/// The summary with all that lies before what is shown without a hole. Where messages between it and the history were not
/// loaded it stays as it is: it must not claim what it has not seen.
fn renewed<'a>(plan: &Plan<'a>, taken: &[usize]) -> Option<Cow<'a, Summary>> {
    let (input, policy) = (&plan.input, plan.policy.summary?);
    let loaded_from = input.loaded_from();
    let covered = input.summary.map_or(0, |summary| summary.through_seq).max(input.thread.first_seq.saturating_sub(1));
    let through = plan.boundary(taken) - 1;
    if covered + 1 < loaded_from || through <= covered {
        return input.summary.map(Cow::Borrowed);
    }
    let fallen: &[Message] = input.history;
    let extended = Summary::extend(input.summary, fallen, input.thread.first_seq, through, policy.characters);
    Some(Cow::Owned(extended))
}
