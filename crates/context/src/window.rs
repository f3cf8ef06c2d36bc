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
    /// Whether the first unit that does not fit ends the selection, so that the history has no gaps.
    pub(crate) is_contiguous: bool,
    /// For each message of the history that is not a candidate, the reason.
    pub(crate) why: Vec<Option<FateReason>>,
    /// Whether messages after the anchor are left out, so that the anchor has to move.
    pub(crate) overflows: bool,
}

/// Determines the candidates by policy. `keep_percent` shortens the window when the history is trimmed by a step.
pub(crate) fn candidates(
    input: &ContextInput<'_>,
    policy: &ContextPolicy,
    units: &[Unit],
    keep_percent: Option<u8>,
) -> Candidates {
    let history = input.history;
    let mut candidates = Candidates { is_contiguous: true, why: vec![None; history.len()], ..Candidates::default() };
    let window = policy.window.map(|window| shortened(window, keep_percent));
    let reach = match (policy.pruning, window) {
        (Some(pruning), Some(window)) => Some(pruning.consider.max(window)),
        (_, window) => window,
    };
    let start = reach.map_or(0, |reach| history.len().saturating_sub(reach));
    let anchor = input.anchor.filter(|_| matches!(policy.trimming, Trimming::Steps { .. })).unwrap_or(0);
    candidates.overflows = is_left_out(input, start, reach, anchor.max(input.thread.first_seq));
    let outside = |index: usize| match &history[index] {
        message if message.seq < anchor => Some(FateReason::BeforeAnchor),
        _ if index < start => Some(FateReason::OutsideWindow),
        _ => None,
    };
    let mut inside = Vec::new();
    for (index, unit) in units.iter().enumerate().rev() {
        let why = outside(unit.newest()).or(match outside(unit.oldest()) {
            Some(_) => Some(FateReason::PairBroken),
            None => unit.is_orphan.then_some(FateReason::PairBroken),
        });
        match why {
            None => inside.push(index),
            Some(why) => unit.members.iter().for_each(|&index| candidates.why[index] = Some(why)),
        }
    }
    candidates.order = match (policy.pruning, window) {
        (Some(pruning), Some(window)) => {
            candidates.is_contiguous = false;
            prune(input, units, &inside, pruning.newest, window, &mut candidates.why)
        }
        _ => inside,
    };
    candidates
}

/// Returns a percentage of a size, at least one.
pub(crate) fn shortened(size: usize, keep_percent: Option<u8>) -> usize {
    keep_percent.map_or(size, |percent| (size.saturating_mul(usize::from(percent)) / 100).max(1))
}

/// Whether any position from `from` on precedes the window.
fn is_left_out(input: &ContextInput<'_>, start: usize, reach: Option<usize>, from: u64) -> bool {
    let (Some(first), Some(reach)) = (input.history.get(start), reach) else { return false };
    // If fewer messages were loaded than requested, there are none before them: they were erased.
    let may_be_more = start > 0 || input.history.len() + input.unreadable.len() >= reach;
    may_be_more && from < first.seq
}

/// Selects by relevance: the newest messages always, then the most relevant ones, as many as the window permits.
fn prune(
    input: &ContextInput<'_>,
    units: &[Unit],
    inside: &[usize],
    newest: usize,
    window: usize,
    why: &mut [Option<FateReason>],
) -> Vec<usize> {
    let question = input.question.map(str::to_owned).or_else(|| newest_question(input.history)).unwrap_or_default();
    let scores = relevance::scores(&question, input.history);
    let score = |index: usize| units[index].members.iter().map(|&index| scores[index]).max().unwrap_or(0);
    let mut ranked: Vec<usize> = inside.to_vec();
    let always = newest.clamp(1, ranked.len().max(1)).min(ranked.len());
    // The sort is stable: of two equally relevant units, the newer one comes first.
    ranked[always..].sort_by_key(|&index| std::cmp::Reverse(score(index)));
    let (mut left, mut order) = (window, Vec::new());
    for index in ranked {
        let members = &units[index].members;
        if members.len() <= left {
            left -= members.len();
            order.push(index);
        } else {
            members.iter().for_each(|&index| why[index] = Some(FateReason::LessRelevant));
        }
    }
    order
}

fn newest_question(history: &[Message]) -> Option<String> {
    let newest = history.iter().rev().find(|message| message.content.role == Role::User);
    newest.map(|message| message.plain_text().into_owned())
}
