//! Assembles a context from its input.

use std::borrow::Cow;

use serde::Serialize;
use threadkeep_core::{Message, Role, TokenCounter};

use crate::budget::{FittedContext, fit};
use crate::chat::{HistoryEntry, history_entry, mark_waiting};
use crate::sources::ConversationSources;
use crate::units::{Unit, units};
use crate::window::{Candidates, candidates};
use crate::{ChatMessage, ContextError, ContextInput, ContextPolicy, Report, Summary, Trimming};

/// The context that a model receives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Context {
    /// The rendered messages.
    pub messages: Vec<ChatMessage>,
    /// The summary, extended by messages that no longer fit. Store it if it differs from the previous one.
    pub summary: Option<Summary>,
    /// The position of the first message in the history. With trimming in steps, pass it to the next assembly.
    pub anchor: Option<u64>,
    /// The sources that earlier answers cited.
    pub sources: ConversationSources,
    /// What happened to every message, and the tokens of each part.
    pub report: Report,
}

impl Context {
    /// Returns the text of the last message, which is the transcript with [`crate::Rendering::Transcript`].
    #[must_use]
    pub fn newest_text(&self) -> String {
        let parts = self.messages.last().map_or(&[][..], |message| &message.parts);
        parts.iter().filter_map(threadkeep_core::Part::text).collect::<Vec<_>>().join("\n")
    }
}

/// Assembles a context. Equal inputs produce equal bytes.
///
/// Adds parts in this order while they fit the budget:
/// 1. the system prompt and the newest message, which is truncated if necessary;
/// 2. enrichment;
/// 3. preferences;
/// 4. the summary, up to its share of the budget;
/// 5. the newest history, except for the share that is reserved for recalled messages;
/// 6. recalled messages, up to their share;
/// 7. more history, then more recalled messages.
///
/// Tool calls and their results are included together or not at all. A call without a result is rendered as waiting.
///
/// # Errors
/// `Invalid` for an invalid policy, `BudgetTooSmall` if not even the smallest context fits.
pub fn assemble(
    input: &ContextInput<'_>,
    policy: &ContextPolicy,
    counter: &dyn TokenCounter,
) -> Result<Context, ContextError> {
    policy.check()?;
    let mut plan = Plan::new(input, policy);
    let mut fitted = fit(&plan, counter)?;
    if !plan.is_shortened && fitted.overflows(&plan) && plan.shorten() {
        fitted = fit(&plan, counter)?;
    }
    Ok(finish(&plan, fitted, counter))
}

/// The candidates to select from.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    pub(crate) input: ContextInput<'a>,
    pub(crate) policy: &'a ContextPolicy,
    pub(crate) units: Vec<Unit>,
    pub(crate) candidates: Candidates,
    /// The question, unless it is also the newest message of the history.
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

    /// If the policy trims in steps, replaces the candidates by those of a shortened window. Returns whether the
    /// candidates are shortened.
    pub(crate) fn shorten(&mut self) -> bool {
        if let Trimming::Steps { keep_percent } = self.policy.trimming {
            self.candidates = candidates(&self.input, self.policy, &self.units, Some(keep_percent));
            self.is_shortened = true;
        }
        self.is_shortened
    }

    /// Returns the unit of the newest message, if that message is the question.
    pub(crate) fn newest_unit(&self) -> Option<usize> {
        let newest = self.input.history.len().checked_sub(1)?;
        let first = *self.candidates.order.first()?;
        (self.question.is_none() && self.units[first].members.contains(&newest)).then_some(first)
    }

    /// Returns the position of the question, if it is a message of the history: the newest user message.
    pub(crate) fn question_seq(&self) -> Option<u64> {
        let mut questions = self.input.history.iter().rev().filter(|message| message.content.role == Role::User);
        questions.next().filter(|_| self.question.is_none()).map(|message| message.seq)
    }

    pub(crate) fn members<'p>(&'p self, units: &'p [usize]) -> impl Iterator<Item = usize> + 'p {
        units.iter().flat_map(|&unit| self.units[unit].members.iter().copied())
    }

    /// Returns the first position from which `indices` (ascending) contain every message of the history.
    pub(crate) fn boundary(&self, indices: &[usize]) -> u64 {
        let mut boundary = self.input.thread.last_seq + 1;
        for (index, message) in self.input.history.iter().enumerate().rev() {
            if indices.binary_search(&index).is_err() {
                break;
            }
            boundary = message.seq;
        }
        boundary
    }
}

/// Whether the newest message of a history is `question`.
fn is_stored(history: &[Message], question: &str) -> bool {
    let newest = history.last();
    newest.is_some_and(|newest| newest.content.role == Role::User && newest.plain_text() == question)
}

fn finish(plan: &Plan<'_>, fitted: FittedContext<'_>, counter: &dyn TokenCounter) -> Context {
    let policy = plan.policy;
    let messages = fitted.parts.render(policy.rendering);
    let anchor = fitted.anchor(plan);
    let report = crate::report::write(plan, &fitted, &messages, anchor, counter);
    Context {
        messages,
        summary: fitted.summary.map(Cow::into_owned),
        anchor,
        sources: ConversationSources::of(plan.input.history, policy.max_sources),
        report,
    }
}

/// Prepares the selected messages for rendering, in the order of their positions.
pub(crate) fn history_entries<'a>(
    plan: &Plan<'a>,
    indices: &[usize],
    newest_characters: Option<usize>,
) -> Vec<HistoryEntry<'a>> {
    let newest: Vec<usize> = plan.newest_unit().map_or_else(Vec::new, |unit| plan.units[unit].members.clone());
    let last = plan.input.history.len().wrapping_sub(1);
    let mut remaining = newest_characters;
    let mut history: Vec<_> = indices
        .iter()
        .map(|&index| {
            // The newest message is exempt from the limit per message.
            let is_newest = index == last && newest.contains(&index);
            let characters = plan.policy.message_characters.filter(|_| !is_newest);
            let mut message = history_entry(&plan.input.history[index], characters);
            if let (Some(remaining), true) = (&mut remaining, newest.contains(&index)) {
                message.is_cut |= crate::cut::cut_all(message.parts.to_mut(), remaining);
            }
            message
        })
        .collect();
    mark_waiting(&mut history);
    history
}
