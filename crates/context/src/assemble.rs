//! From what was loaded to what a model sees.

use std::borrow::Cow;

use serde::Serialize;
use threadkeep_core::{Message, Role, TokenCounter};

use crate::budget::{Fitting, fit};
use crate::chat::{mark_waiting, shown};
use crate::sources::SourceMemory;
use crate::units::{Unit, units};
use crate::window::{Candidates, candidates};
use crate::{ChatMessage, ContextError, ContextInput, ContextPolicy, Report, Summary, Trimming};

/// What a model sees of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Context {
    /// The final rendering.
    pub messages: Vec<ChatMessage>,
    /// The summary, renewed with what fell out; what to store in place of the old one where it differs.
    pub summary: Option<Summary>,
    /// Where the history begins, to be given back next time when the policy trims in steps.
    pub anchor: Option<u64>,
    /// What earlier answers stood on.
    pub sources: SourceMemory,
    /// What became of every message, and what took how many tokens.
    pub report: Report,
}

impl Context {
    /// The text of the last message: with [`crate::Rendering::Transcript`] the transcript.
    #[must_use]
    pub fn newest_text(&self) -> String {
        let parts = self.messages.last().map_or(&[][..], |message| &message.parts);
        parts.iter().filter_map(threadkeep_core::Part::text).collect::<Vec<_>>().join("\n")
    }
}

/// Assembles a context: the same inputs give the same bytes.
///
/// In this order what there is room for is taken: system prompt and newest message (cut with a mark if it must be),
/// enrichment, preferences, the summary up to its share, the history from its newest message on as far as it leaves the
/// recalled messages their share, those, then more of the history, then more recalled messages. Tool calls and their results are taken whole or not at all; a call without a
/// result is shown as waiting.
///
/// # Errors
/// `Invalid` for a policy that makes no sense, `BudgetTooSmall` where not even the smallest context fits.
pub fn assemble(
    input: &ContextInput<'_>,
    policy: &ContextPolicy,
    counter: &dyn TokenCounter,
) -> Result<Context, ContextError> {
    policy.check()?;
    let mut plan = Plan::new(input, policy);
    let mut fitting = fit(&plan, counter)?;
    if !plan.is_shortened && fitting.overflows(&plan) && plan.shorten() {
        fitting = fit(&plan, counter)?;
    }
    Ok(finish(&plan, fitting, counter))
}

/// What there is to choose from.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) input: ContextInput<'a>,
    pub(crate) policy: &'a ContextPolicy,
    pub(crate) units: Vec<Unit>,
    pub(crate) candidates: Candidates,
    /// The question, unless it is the newest message of the history.
    pub(crate) question: Option<&'a str>,
    pub(crate) is_shortened: bool,
}

impl<'a> Plan<'a> {
    fn new(input: &ContextInput<'a>, policy: &'a ContextPolicy) -> Self {
        let units = units(input.history);
        let all = candidates(input, policy, &units, None);
        let mut plan = Self {
            input: *input,
            policy,
            units,
            candidates: all,
            question: input.question.filter(|question| !is_stored(input.history, question)),
            is_shortened: false,
        };
        if plan.candidates.overflows {
            plan.shorten();
        }
        plan
    }

    /// Takes the candidates of a shortened window, where the policy trims in steps.
    pub(crate) fn shorten(&mut self) -> bool {
        if let Trimming::Steps { keep_percent } = self.policy.trimming {
            self.candidates = candidates(&self.input, self.policy, &self.units, Some(keep_percent));
            self.is_shortened = true;
        }
        self.is_shortened
    }

    /// The unit of the newest message, where that is what is to be answered.
    pub(crate) fn newest_unit(&self) -> Option<usize> {
        let newest = self.input.history.len().checked_sub(1)?;
        let first = *self.candidates.order.first()?;
        (self.question.is_none() && self.units[first].members.contains(&newest)).then_some(first)
    }

    /// The position of what is asked, where it is a message of the history: the newest that a user said.
    pub(crate) fn asked_seq(&self) -> Option<u64> {
        let mut said = self.input.history.iter().rev().filter(|message| message.content.role == Role::User);
        said.next().filter(|_| self.question.is_none()).map(|message| message.seq)
    }

    pub(crate) fn members<'p>(&'p self, units: &'p [usize]) -> impl Iterator<Item = usize> + 'p {
        units.iter().flat_map(|&unit| self.units[unit].members.iter().copied())
    }

    /// The first position from which on every message of the history is among `taken` (ascending places).
    pub(crate) fn boundary(&self, taken: &[usize]) -> u64 {
        let mut boundary = self.input.thread.last_seq + 1;
        for (index, message) in self.input.history.iter().enumerate().rev() {
            if taken.binary_search(&index).is_err() {
                break;
            }
            boundary = message.seq;
        }
        boundary
    }
}

/// Whether the newest message of a history is this question.
fn is_stored(history: &[Message], question: &str) -> bool {
    let newest = history.last();
    newest.is_some_and(|newest| newest.content.role == Role::User && newest.plain_text() == question)
}

fn finish(plan: &Plan<'_>, fitting: Fitting<'_>, counter: &dyn TokenCounter) -> Context {
    let policy = plan.policy;
    let messages = fitting.chosen.render(policy.rendering);
    let anchor = fitting.anchor(plan);
    let report = crate::report::write(plan, &fitting, &messages, anchor, counter);
    Context {
        messages,
        summary: fitting.summary.map(Cow::into_owned),
        anchor,
        sources: SourceMemory::of(plan.input.history, policy.max_sources),
        report,
    }
}

/// The history as it is shown: taken messages in the order of positions.
pub(crate) fn show<'a>(plan: &Plan<'a>, taken: &[usize], newest_room: Option<usize>) -> Vec<crate::chat::Shown<'a>> {
    let newest: Vec<usize> = plan.newest_unit().map_or_else(Vec::new, |unit| plan.units[unit].members.clone());
    let last = plan.input.history.len().wrapping_sub(1);
    let mut room = newest_room;
    let mut history: Vec<_> = taken
        .iter()
        .map(|&index| {
            // What is to be answered now is shown whole as long as it fits.
            let is_newest = index == last && newest.contains(&index);
            let characters = plan.policy.message_characters.filter(|_| !is_newest);
            let mut message = shown(&plan.input.history[index], characters);
            if let (Some(room), true) = (&mut room, newest.contains(&index)) {
                message.is_cut |= crate::cut::cut_all(message.parts.to_mut(), room);
            }
            message
        })
        .collect();
    mark_waiting(&mut history);
    history
}
