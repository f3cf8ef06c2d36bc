//! Completes what a message says from the conversation, before its request is planned.

use crate::command::Verb;
use crate::conversation::Conversation;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Lexicon, Reading, State, read};

/// "Describe orders there": in the namespace that the conversation is about, if it has such an object.
pub(super) fn with_place_spoken_of(reading: Reading, conversation: &Conversation) -> Reading {
    let is_plain = reading.namespace.is_none() && reading.names.len() == 1 && reading.verb.is_some();
    if !is_plain || !reading.has("there") || reading.asks() || reading.act.is_some() {
        return reading;
    }
    let there = Reading { namespace: refer::last_namespace(conversation), ..reading.clone() };
    let verb = reading.verb.unwrap_or(Verb::Describe);
    match refer::known(conversation, &reading.names[0], verb, &there) {
        Found::None => reading,
        _ => there,
    }
}

/// "Background jobs are slow, that's the worker I believe?": a kind that is far from the name belongs to something else, if no object of the
/// kind has the name.
pub(super) fn with_kind_of_name(reading: Reading, conversation: &Conversation) -> Reading {
    let [name] = &reading.names[..] else { return reading };
    let at = |fits: &dyn Fn(&String) -> bool| reading.words.iter().position(fits);
    let kind_at = at(&|word| crate::kinds::kind_word(word).is_some_and(|kind| Some(kind.plural) == reading.kind));
    let (Some(kind_at), Some(name_at)) = (kind_at, at(&|word| word == name)) else { return reading };
    let is_read = reading.verb.is_none_or(Verb::is_read);
    let open = Reading { kind: None, is_plural: false, ..reading.clone() };
    let is_far = kind_at.abs_diff(name_at) > 3;
    let is_of_kind = refer::known(conversation, name, Verb::Describe, &reading) != Found::None;
    let is_known = refer::known(conversation, name, Verb::Describe, &open) != Found::None;
    if is_read && is_far && !is_of_kind && is_known { open } else { reading }
}

/// "Now empty it", directly after a node was spoken of: a drain.
pub(super) fn with_node_emptied(reading: Reading, conversation: &Conversation) -> Reading {
    let empties = ["empty it", "empty that one", "empty that node", "clear it", "clear it out", "clear that node"]
        .iter()
        .any(|phrase| reading.says(phrase));
    let is_plain =
        reading.verb.is_none_or(|verb| verb == Verb::Get) && reading.names.is_empty() && reading.act.is_none();
    let last = conversation.earlier.iter().rev().map(refer::subjects).find(|subjects| !subjects.is_empty());
    let is_node = last.is_some_and(|subjects| subjects.len() == 1 && subjects[0].kind == "nodes");
    if !empties || !is_plain || !is_node || reading.asks() || reading.forbids() {
        return reading;
    }
    Reading { verb: Some(Verb::Drain), pronoun: true, kind: None, ..reading }
}

/// "The web ones", after a list of pods: those of the list's kind that have the name.
pub(super) fn of_listed_kind(reading: Reading, conversation: &Conversation) -> Reading {
    let [name] = &reading.names[..] else { return reading };
    let is_meant = reading.verb.is_none_or(|verb| verb == Verb::Get)
        && reading.kind.is_none()
        && reading.act.is_none()
        && (reading.says(&format!("{name} ones")) || reading.says(&format!("{name}s ones")));
    let listed = conversation.earlier.iter().rev().map(refer::listed).find(|list| list.len() > 1);
    let Some(kind) = listed.filter(|_| is_meant).and_then(|list| list.first().map(|object| object.kind.clone())) else {
        return reading;
    };
    Reading { verb: Some(Verb::Get), kind: Some(kind), is_plural: true, pronoun: false, each: false, ..reading }
}

/// "And the most?" after "which has the fewest replicas?", and of the names of a superlative, those that exist.
pub(super) fn with_other_extreme(mut reading: Reading, conversation: &Conversation) -> Reading {
    if reading.state.is_some_and(State::is_superlative) && reading.names.len() > 1 {
        let known = |name: &String| refer::known(conversation, name, Verb::Describe, &reading) != Found::None;
        let names: Vec<String> = reading.names.iter().filter(|name| known(name)).cloned().collect();
        return Reading { names, ..reading };
    }
    let is_most = reading.has_any(&["most", "highest", "maximum"]);
    let is_least = reading.has_any(&["least", "fewest", "lowest", "minimum"]);
    let is_plain = reading.names.is_empty() && reading.state.is_none() && reading.words.len() <= 5;
    let said = conversation.earlier.last().map(|last| read(&last.said, &Lexicon::of(conversation)));
    let Some(before) = said.filter(|_| is_plain && is_most != is_least) else { return reading };
    reading.state = match before.state {
        Some(State::MostRestarted | State::LeastRestarted) if is_most => Some(State::MostRestarted),
        Some(State::MostRestarted | State::LeastRestarted) => Some(State::LeastRestarted),
        Some(State::MostReplicas | State::LeastReplicas) if is_most => Some(State::MostReplicas),
        Some(State::MostReplicas | State::LeastReplicas) => Some(State::LeastReplicas),
        _ => return reading,
    };
    Reading { verb: Some(Verb::Get), act: None, kind: before.kind, ..reading }
}
