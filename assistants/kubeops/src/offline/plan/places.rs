//! Objects that are meant by their namespace or as new ones, and namespaces that are meant themselves.

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::offline::answers;
use crate::offline::refer::{self, Found};

use super::targets::Targets;
use super::{Next, Planner, reply};

impl Planner<'_> {
    /// "Describe the new one", before or after the list that shows it.
    pub(super) fn fresh(&self, verb: Verb) -> Targets {
        let known = refer::newly_listed(self.conversation, verb);
        if known != Found::None {
            return self.found(known, verb);
        }
        let Some((_, _, Some(change))) = answers::last_change(self.conversation) else {
            return Targets::Then(reply(answers::ask_what(verb)));
        };
        let list = Command {
            kind: Some("pods".to_owned()),
            namespace: change.command.namespace.clone(),
            ..Command::new(Verb::Get)
        };
        let read = self.conversation.steps.iter().find(|step| step.command.verb == Verb::Get);
        let Some(read) = read else { return Targets::Then(Next::Run(vec![list])) };
        let listed = read.outcome.as_ref().map_or(&[][..], |outcome| &outcome.objects);
        let new = refer::fresh(self.conversation, listed, &self.conversation.earlier);
        let fitting = new.iter().filter_map(|object| refer::fitting(object, verb, None)).collect();
        self.found(Found::of(fitting), verb)
    }

    /// "Delete tmp-load-2, that namespace is junk".
    pub(super) fn namespace_itself(&self, verb: Verb) -> Option<Targets> {
        let reading = &self.reading;
        let applies = matches!(verb, Verb::Delete | Verb::Label | Verb::Annotate | Verb::Describe)
            && reading.kind.as_deref() == Some("namespaces");
        // "Tmp-load still there?"
        let asks = verb == Verb::Get
            && reading.kind.is_none()
            && reading.names.is_empty()
            && !reading.pronoun
            && !reading.has("in")
            && reading.asks_for_state();
        let name = reading.namespace.clone().filter(|_| applies || asks)?;
        let is_other = reading.names.iter().any(|own| self.conversation.namespaces.contains(own));
        let namespace = ObjectSummary { kind: "namespaces".to_owned(), name, ..ObjectSummary::default() };
        (!is_other).then(|| Targets::Objects(vec![namespace]))
    }

    /// "Whats in monitoring": everything in a namespace, which its pods stand for.
    pub(super) fn asks_for_namespace(&self) -> bool {
        let reading = &self.reading;
        // "Thumbnails are missing, can you look at media?"
        let looks = ["look at", "look into", "a look in", "check on", "check out", "look in", "look around"]
            .iter()
            .any(|phrase| reading.says(phrase));
        let first = reading.words.iter().find(|word| {
            !matches!(
                &***word,
                "so" | "and"
                    | "oh"
                    | "ah"
                    | "right"
                    | "well"
                    | "hm"
                    | "hmm"
                    | "cool"
                    | "great"
                    | "good"
                    | "nice"
                    | "thanks"
                    | "thx"
                    | "alright"
                    | "okay"
                    | "then"
                    | "but"
                    | "ok"
                    | "now"
                    | "hola"
                    | "hi"
                    | "hey"
                    | "yo"
                    | "can"
                    | "could"
                    | "u"
                    | "you"
                    | "me"
                    | "please"
                    | "pls"
            )
        });
        reading.namespace.is_some()
            && reading.kind.is_none()
            && reading.names.is_empty()
            && !reading.pronoun
            && reading.pick.is_none()
            && (looks
                || first.is_some_and(|word| {
                    matches!(&**word, "what" | "whats" | "which" | "list" | "show" | "anything" | "everything")
                }))
    }

    /// "Scale the prod one": the object that was spoken of, in another namespace.
    pub(super) fn elsewhere(&self, verb: Verb) -> Option<Targets> {
        let namespace = self.reading.namespace.as_deref().filter(|_| self.reading.pronoun && !self.reading.each)?;
        let Found::One(spoken_of) = refer::focus(self.conversation, verb, self.reading.kind.as_deref(), None) else {
            return None;
        };
        if spoken_of.namespace == namespace || spoken_of.namespace.is_empty() {
            return None;
        }
        let there = ObjectSummary { namespace: namespace.to_owned(), ..spoken_of.clone() };
        // "Delete it, the staging one is enough": the other one may be meant.
        if !verb.is_read() && self.reading.remarks_on_namespace() {
            return Some(Targets::Then(reply(answers::ask_which(&[spoken_of, there]))));
        }
        Some(Targets::Objects(vec![there]))
    }

    /// "Delete the lab namespace": the object is the namespace itself, not one in it.
    pub(super) fn named_namespace(&self, verb: Verb) -> Option<Targets> {
        let reading = &self.reading;
        let is_named = reading.kind.is_none() && !reading.pronoun && reading.has_any(&["namespace", "ns"]);
        let name = reading.namespace.clone().filter(|_| is_named && verb != Verb::Get && verb != Verb::Events)?;
        let namespace = ObjectSummary { kind: "namespaces".to_owned(), name, ..ObjectSummary::default() };
        Some(match refer::kinds_of(verb) {
            None => Targets::Objects(vec![namespace]),
            Some(_) => Targets::Then(reply(answers::ask_what(verb))),
        })
    }

    /// Prefers the objects of the namespace that the conversation is about, and of several kinds the workload.
    pub(super) fn in_namespace(&self, objects: Vec<ObjectSummary>) -> Vec<ObjectSummary> {
        refer::in_last_namespace(self.conversation, &self.reading, objects)
    }

    /// Whether an object is not in the namespace of the message.
    pub(super) fn is_not_there(&self, object: &ObjectSummary) -> bool {
        self.reading.namespace.as_ref().is_some_and(|place| object.namespace != *place)
    }

    /// Returns the object of the same kind and name in the namespace of the message.
    pub(super) fn twin_there(&self, object: &ObjectSummary) -> Option<ObjectSummary> {
        let shown = self.conversation.earlier.iter().rev().flat_map(refer::shown_objects);
        let mut known = shown.chain(self.conversation.mentioned.iter().flatten());
        let is_twin = |other: &&ObjectSummary| {
            other.kind == object.kind
                && other.name == object.name
                && Some(&other.namespace) == self.reading.namespace.as_ref()
        };
        known.find(is_twin).cloned()
    }
}
