//! Determines which messages of the thread are candidates for the context, and their order of preference.

use threadkeep_core::{Message, Role};

use crate::relevance;
use crate::units::Unit;
use crate::{ContextInput, ContextPolicy, FateReason, Trimming};

/// The candidate messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    /// Indices of the candidate units, most preferred first. The unit of the newest message comes first.
    pub(crate) order: Vec<usize>,
    /// Whether selection ends at the first unit that does not fit, so that the history has no gaps.
    pub(crate) is_contiguous: bool,
    /// For each message of the history, why it is not a candidate; `None` for candidates.
    pub(crate) omission_reasons: Vec<Option<FateReason>>,
    /// Whether messages after the anchor are omitted, so the anchor has to move.
    pub(crate) overflows: bool,
}

/// Determines the candidates by policy. `keep_percent` shortens the window when a history that overflowed is trimmed.
pub(crate) fn candidates(
    input: &ContextInput<'_>,
    policy: &ContextPolicy,
    units: &[Unit],
    keep_percent: Option<u8>,
) -> Candidates {
    let history = input.history;
    let mut candidates =
        Candidates { is_contiguous: true, omission_reasons: vec![None; history.len()], ..Candidates::default() };
    let window = policy.window.map(|window| shortened(window, keep_percent));
    let reach = match (policy.pruning, window) {
        (Some(pruning), Some(window)) => Some(pruning.consider.max(window)),
        (_, window) => window,
    };
    let start = reach.map_or(0, |reach| history.len().saturating_sub(reach));
    let anchor = input.anchor.filter(|_| matches!(policy.trimming, Trimming::Steps { .. })).unwrap_or(0);
    candidates.overflows = omits_messages(input, start, reach, anchor.max(input.thread.first_seq));
    let outside = |index: usize| match &history[index] {
        message if message.seq < anchor => Some(FateReason::BeforeAnchor),
        _ if index < start => Some(FateReason::OutsideWindow),
        _ => None,
    };
    let mut inside = Vec::new();
    for (index, unit) in units.iter().enumerate().rev() {
        let reason = outside(unit.newest()).or(match outside(unit.oldest()) {
            Some(_) => Some(FateReason::PairBroken),
            None => unit.is_orphan.then_some(FateReason::PairBroken),
        });
        match reason {
            None => inside.push(index),
            Some(reason) => unit.members.iter().for_each(|&index| candidates.omission_reasons[index] = Some(reason)),
        }
    }
    candidates.order = match (policy.pruning, window) {
        (Some(pruning), Some(window)) => {
            candidates.is_contiguous = false;
            prune(input, units, &inside, pruning.newest, window, &mut candidates.omission_reasons)
        }
        _ => inside,
    };
    candidates
}

/// Returns a percentage of a size, but at least 1.
pub(crate) fn shortened(size: usize, keep_percent: Option<u8>) -> usize {
    keep_percent.map_or(size, |percent| (size.saturating_mul(usize::from(percent)) / 100).max(1))
}

/// Whether the window omits any position at or after `from`.
fn omits_messages(input: &ContextInput<'_>, start: usize, reach: Option<usize>, from: u64) -> bool {
    let (Some(first), Some(reach)) = (input.history.get(start), reach) else { return false };
    // If fewer messages were loaded than requested, no message precedes them: the earlier ones were erased.
    let may_have_earlier = start > 0 || input.history.len() + input.unreadable.len() >= reach;
    may_have_earlier && from < first.seq
}

/// Selects the newest messages, then the most relevant ones, up to the size of the window.
fn prune(
    input: &ContextInput<'_>,
    units: &[Unit],
    inside: &[usize],
    newest: usize,
    window: usize,
    reasons: &mut [Option<FateReason>],
) -> Vec<usize> {
    let question = input.question.map(str::to_owned).or_else(|| newest_question(input.history)).unwrap_or_default();
    let scores = relevance::scores(&question, input.history);
    let score = |index: usize| units[index].members.iter().map(|&index| scores[index]).max().unwrap_or(0);
    let mut ranked: Vec<usize> = inside.to_vec();
    let always = newest.clamp(1, ranked.len().max(1)).min(ranked.len());
    // The sort is stable: of two equally relevant units, the newer one comes first.
    ranked[always..].sort_by_key(|&index| std::cmp::Reverse(score(index)));
    let (mut remaining, mut order) = (window, Vec::new());
    for index in ranked {
        let members = &units[index].members;
        if members.len() <= remaining {
            remaining -= members.len();
            order.push(index);
        } else {
            members.iter().for_each(|&index| reasons[index] = Some(FateReason::LessRelevant));
        }
    }
    order
}

fn newest_question(history: &[Message]) -> Option<String> {
    let newest = history.iter().rev().find(|message| message.content.role == Role::User);
    newest.map(|message| message.plain_text().into_owned())
}
