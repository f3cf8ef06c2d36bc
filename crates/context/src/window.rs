//! Which messages of the thread may be shown at all, and in which order they are taken.

use threadkeep_core::{Message, Role};

use crate::relevance;
use crate::units::Unit;
use crate::{ContextInput, ContextPolicy, Trimming, Why};

/// What is chosen from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    /// Units (their places in the list of all), those to be taken first first. The newest message's own comes before all.
    pub(crate) order: Vec<usize>,
    /// Whether one that does not fit ends the taking, so that what is shown has no holes.
    pub(crate) is_contiguous: bool,
    /// Why each message of the history that is no candidate is none.
    pub(crate) why: Vec<Option<Why>>,
    /// Whether messages from the anchor on are left out, so that it has to move.
    pub(crate) overflows: bool,
}

/// Takes the candidates by policy; of `keep_percent` of the window where the history is shortened by a step.
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
        message if message.seq < anchor => Some(Why::BeforeAnchor),
        _ if index < start => Some(Why::OutsideWindow),
        _ => None,
    };
    let mut inside = Vec::new();
    for (place, unit) in units.iter().enumerate().rev() {
        let why = outside(unit.newest()).or(match outside(unit.oldest()) {
            Some(_) => Some(Why::PairBroken),
            None => unit.is_orphan.then_some(Why::PairBroken),
        });
        match why {
            None => inside.push(place),
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

/// A share of a size, at least one.
pub(crate) fn shortened(size: usize, keep_percent: Option<u8>) -> usize {
    keep_percent.map_or(size, |percent| (size.saturating_mul(usize::from(percent)) / 100).max(1))
}

/// Whether a position from `from` on lies before what the window shows.
fn is_left_out(input: &ContextInput<'_>, start: usize, reach: Option<usize>, from: u64) -> bool {
    let (Some(first), Some(reach)) = (input.history.get(start), reach) else { return false };
    // Where less was loaded than asked for there is no more: what is missing before it was erased.
    let may_be_more = start > 0 || input.history.len() + input.unreadable.len() >= reach;
    may_be_more && from < first.seq
}

/// Chooses by relevance: the newest always, then those that bear most on the question, as many as the window takes.
fn prune(
    input: &ContextInput<'_>,
    units: &[Unit],
    inside: &[usize],
    newest: usize,
    window: usize,
    why: &mut [Option<Why>],
) -> Vec<usize> {
    let asked = input.question.map(str::to_owned).or_else(|| newest_question(input.history)).unwrap_or_default();
    let scores = relevance::scores(&asked, input.history);
    let score = |place: usize| units[place].members.iter().map(|&index| scores[index]).max().unwrap_or(0);
    let mut ranked: Vec<usize> = inside.to_vec();
    let always = newest.clamp(1, ranked.len().max(1)).min(ranked.len());
    // Sorting is stable, so of two alike the newer one comes first.
    ranked[always..].sort_by_key(|&place| std::cmp::Reverse(score(place)));
    let (mut left, mut order) = (window, Vec::new());
    for place in ranked {
        let members = &units[place].members;
        if members.len() <= left {
            left -= members.len();
            order.push(place);
        } else {
            members.iter().for_each(|&index| why[index] = Some(Why::LessRelevant));
        }
    }
    order
}

fn newest_question(history: &[Message]) -> Option<String> {
    let newest = history.iter().rev().find(|message| message.content.role == Role::User);
    newest.map(|message| message.plain_text().into_owned())
}
