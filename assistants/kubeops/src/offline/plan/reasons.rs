//! Why something failed or did not happen, and who did or owns something.

use crate::command::{Command, Verb};
use crate::conversation::{Exchange, Requested, Step};
use crate::offline::answers;
use crate::offline::refer::{self, Found};

use super::{Next, Planner, reply};

impl Planner<'_> {
    /// "Why did that fail?", "what was the error?": the reason of the change or look that failed last.
    pub(super) fn why_failed(&self) -> Option<Next> {
        let reading = &self.reading;
        let asks = reading.has_any(&["why", "reason", "cause"])
            || [
                "how come",
                "what went wrong",
                "what was wrong",
                "what was the error",
                "what was the problem",
                "what error",
            ]
            .iter()
            .any(|phrase| reading.says(phrase));
        let is_past = reading.has_any(&["did", "didnt", "was", "went", "failed", "failure", "error", "just"]);
        let fails = reading.words.iter().any(|word| {
            ["fail", "error", "wrong", "problem", "timeout", "work", "broke"].iter().any(|stem| word.starts_with(stem))
        }) || ["go through", "time out", "timed out", "happen"].iter().any(|phrase| reading.says(phrase));
        if !asks || !is_past || !fails || reading.pick.is_some() {
            return None;
        }
        let has_effect = |exchange: &&Exchange| {
            !exchange.requested.is_empty() || exchange.steps.iter().any(|step| step.command.verb != Verb::Find)
        };
        let last = self.conversation.earlier.iter().rev().find(has_effect)?;
        let is_named = |command: &Command| {
            let name = command.name.as_deref().unwrap_or_default();
            reading.names.is_empty()
                || reading.names.iter().any(|own| crate::cluster::likeness(name, own).is_some_and(|fit| fit < 3))
        };
        let failed = last.steps.iter().rev().find(|step| step.error.is_some() && is_named(&step.command));
        if let Some(Step { error: Some(error), command, .. }) = failed {
            return Some(reply(format!("Because `{}` failed: {error}", command.line())));
        }
        let requested = last.requested.iter().rev().find(|requested| is_named(&requested.command))?;
        answers::fate(requested).map(|_| reply(answers::line_of_history(requested)))
    }

    /// "Why did it not go out?": what became of a request that was not carried out.
    pub(super) fn why_not(&self) -> Option<Next> {
        let reading = &self.reading;
        // "Why is nothing happening???"
        let is_impatient = [
            "nothing happening",
            "nothing happens",
            "nothing happened",
            "nothing changes",
            "nothing changed",
            "taking so long",
            "takes so long",
            "what are you waiting",
            "so slow",
            "still nothing",
        ]
        .iter()
        .any(|phrase| reading.says(phrase));
        if let Some(requested) =
            answers::pending(self.conversation).filter(|_| is_impatient && reading.names.is_empty())
        {
            return Some(reply(answers::waiting(requested)));
        }
        let asks = reading.has_any(&["why", "how"])
            && reading.has_any(&[
                "didnt", "wasnt", "not", "havent", "hasnt", "isnt", "denied", "rejected", "declined", "refused",
                "expired",
            ]);
        let all = self.conversation.earlier.iter().flat_map(|exchange| &exchange.requested);
        let newest = all.clone().next_back()?;
        let is_named = |requested: &&Requested| {
            let name = requested.command.name.as_deref().unwrap_or_default();
            reading.names.iter().any(|own| crate::cluster::likeness(name, own).is_some())
                || reading.namespace.is_some() && reading.namespace == requested.command.namespace
        };
        let mut all = all;
        let meant = all.rfind(is_named).or_else(|| reading.names.is_empty().then_some(newest))?;
        (asks && answers::fate(meant).is_some()).then(|| reply(answers::line_of_history(meant)))
    }

    /// "Who owns that pod?", "who deployed portal?" `None` for other messages.
    pub(super) fn who(&self) -> Option<Next> {
        // "Who owns it? Which person?"
        let asks_who = self.reading.words.first().is_some_and(|word| matches!(&**word, "who" | "whos" | "whose"));
        // "Who deployed portal?"
        let tells =
            self.reading.has_any(&["deployed", "changed", "updated", "pushed", "released", "created", "touched"]);
        if asks_who && tells && !self.reading.names.is_empty() && self.reading.act.is_none() {
            let is_named = |requested: &Requested| {
                let name = requested.command.name.as_deref().unwrap_or_default();
                self.reading.names.iter().any(|own| crate::cluster::likeness(name, own).is_some_and(|fit| fit < 3))
            };
            let mut requested = self.conversation.earlier.iter().flat_map(|exchange| &exchange.requested);
            let history = if requested.any(is_named) { self.history() } else { None };
            return Some(reply(history.unwrap_or_else(|| {
                "I cannot see who did that: the cluster keeps no names of people, and nothing of it was done in this conversation.".to_owned()
            })));
        }
        if asks_who
            && self.reading.verb.is_none_or(|verb| verb == Verb::Get)
            && self.reading.names.is_empty()
            && self.reading.act.is_none()
            && self.reading.verb.is_none_or(Verb::is_read)
        {
            // "Who owns that pod?"
            let is_about_person = self.reading.has_any(&["person", "team", "people", "human", "human", "contact"]);
            let owns = self.reading.has_any(&["owns", "owner", "manages", "controls", "created"]);
            if let Found::One(object) = refer::focus(self.conversation, Verb::Describe, None, None)
                && let Some((kind, owner)) = object.owner.as_ref().filter(|_| owns && !is_about_person)
            {
                let kind = crate::kinds::Kind::find(kind).map_or_else(|| kind.clone(), |kind| kind.singular);
                return Some(reply(format!("Pod {} belongs to {kind} {owner}.", object.name)));
            }
            return Some(reply(
                "The cluster does not say who: it has no names of people, only labels and annotations (“describe deployment NAME”).",
            ));
        }
        None
    }
}
