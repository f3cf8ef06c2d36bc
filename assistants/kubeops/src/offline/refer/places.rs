//! Objects of one name in several namespaces, and objects that the conversation did not show before.

use crate::cluster::ObjectSummary;
use crate::command::Verb;
use crate::conversation::{Conversation, Exchange, Step};

use super::{Found, fitting, listed, shown_objects, subjects, unique};

/// How many exchanges back lists count for the question which namespace is meant.
const RECENT: usize = 6;

/// Returns the objects of one kind and name that the last lists showed in several namespaces, if nothing since then says which one is
/// meant. Returns at most one if there is no such doubt.
pub(in crate::offline) fn in_several_places(
    conversation: &Conversation,
    object: &ObjectSummary,
    verb: Verb,
) -> Vec<ObjectSummary> {
    let is_twin = |other: &ObjectSummary| other.kind == object.kind && other.name == object.name;
    let mut found: Vec<ObjectSummary> = Vec::new();
    for exchange in conversation.earlier.iter().rev().take(RECENT) {
        let spoken = subjects(exchange);
        // A message about one object says which one is meant.
        let names_one = !exchange.requested.is_empty()
            || exchange.steps.iter().any(|step| step.command.name.is_some() && step.command.verb != Verb::Find);
        if names_one && spoken.iter().filter_map(|other| fitting(other, verb, None)).any(|other| is_twin(&other)) {
            break;
        }
        if !names_one && exchange.offered.is_empty() {
            found.extend(
                listed(exchange).iter().filter_map(|other| fitting(other, verb, None)).filter(|other| is_twin(other)),
            );
        }
    }
    unique(found)
}

/// Whether an object was deleted in this conversation, and not shown since.
pub(in crate::offline) fn was_deleted(conversation: &Conversation, object: &ObjectSummary) -> bool {
    for exchange in conversation.earlier.iter().rev() {
        let deletes = |step: &Step| {
            let command = &step.command;
            command.verb == Verb::Delete
                && step.outcome.is_some()
                && command.name.as_ref() == Some(&object.name)
                && command.namespace.clone().unwrap_or_default() == object.namespace
        };
        if exchange.steps.iter().any(deletes) {
            return true;
        }
        if shown_objects(exchange).any(|shown| shown.name == object.name && shown.namespace == object.namespace) {
            return false;
        }
    }
    false
}

/// Returns the objects of the newest list that no earlier answer showed: "describe the new one". Of several, those of the workload that the
/// conversation was about count first.
pub(in crate::offline) fn fresh(
    conversation: &Conversation,
    list: &[ObjectSummary],
    before: &[Exchange],
) -> Vec<ObjectSummary> {
    let earlier: Vec<&ObjectSummary> = before.iter().flat_map(shown_objects).collect();
    let new: Vec<ObjectSummary> =
        list.iter().filter(|object| !earlier.iter().any(|known| known.is_same(object))).cloned().collect();
    let changed = conversation.earlier.iter().rev().flat_map(|exchange| &exchange.requested).next();
    let Some(name) = changed.and_then(|requested| requested.command.name.clone()) else { return unique(new) };
    // The owner of the pod that was deleted, or the workload that was restarted.
    let owner = earlier.iter().find(|object| object.name == name).and_then(|object| object.owner.clone());
    let owner = owner.map_or(name, |(_, owner)| owner);
    let of_owner: Vec<ObjectSummary> =
        new.iter().filter(|object| object.owner.as_ref().is_some_and(|(_, own)| *own == owner)).cloned().collect();
    unique(if of_owner.is_empty() { new } else { of_owner })
}

/// Returns the objects of the newest list that were not shown before; [`Found::None`] if there is no such list.
pub(in crate::offline) fn newly_listed(conversation: &Conversation, verb: Verb) -> Found {
    let all = &conversation.earlier;
    for at in (0..all.len()).rev() {
        // A change since the list makes what it showed old.
        if all[at].steps.iter().any(|step| !step.command.verb.is_read() && step.outcome.is_some()) {
            return Found::None;
        }
        let list: Vec<ObjectSummary> = listed(&all[at]).into_iter().filter(|object| object.kind == "pods").collect();
        let shows_earlier = all[..at].iter().flat_map(shown_objects).any(|object| object.kind == "pods");
        if list.is_empty() || !shows_earlier {
            continue;
        }
        let new = fresh(conversation, &list, &all[..at]);
        let fitting: Vec<ObjectSummary> = new.iter().filter_map(|object| fitting(object, verb, None)).collect();
        if !fitting.is_empty() {
            return Found::of(unique(fitting));
        }
    }
    Found::None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::Outcome;
    use crate::command::Command;

    fn pod(name: &str, namespace: &str) -> ObjectSummary {
        let owner = Some(("deployments".to_owned(), "ingest".to_owned()));
        ObjectSummary {
            kind: "pods".to_owned(),
            name: name.to_owned(),
            namespace: namespace.to_owned(),
            owner,
            ..ObjectSummary::default()
        }
    }

    fn list(objects: Vec<ObjectSummary>) -> Exchange {
        let command = Command { kind: Some("pods".to_owned()), ..Command::new(Verb::Get) };
        let outcome = Outcome { command: command.clone(), text: String::new(), objects };
        Exchange {
            said: "pods".to_owned(),
            steps: vec![Step { command, outcome: Some(outcome), error: None }],
            ..Exchange::default()
        }
    }

    #[test]
    fn lists_of_two_namespaces_leave_a_doubt_until_one_is_named() {
        let owner = ObjectSummary {
            kind: "deployments".to_owned(),
            name: "ingest".to_owned(),
            namespace: "blue".to_owned(),
            ..ObjectSummary::default()
        };
        let mut conversation = Conversation {
            earlier: vec![list(vec![pod("ingest-1", "green")]), list(vec![pod("ingest-2", "blue")])],
            ..Conversation::default()
        };
        let places = |conversation: &Conversation| in_several_places(conversation, &owner, Verb::RolloutRestart).len();
        assert_eq!(places(&conversation), 2);
        let mut described = list(vec![pod("ingest-2", "blue")]);
        described.steps[0].command = Command::new(Verb::Describe).on("pods", "ingest-2", Some("blue"));
        let command = described.steps[0].command.clone();
        if let Some(outcome) = &mut described.steps[0].outcome {
            outcome.command = command;
        }
        conversation.earlier.push(described);
        assert_eq!(places(&conversation), 0);
    }

    #[test]
    fn the_new_pod_is_the_one_that_was_not_listed_before() {
        let conversation = Conversation {
            earlier: vec![
                list(vec![pod("ingest-1", "blue")]),
                list(vec![pod("ingest-1", "blue"), pod("ingest-7", "blue")]),
            ],
            ..Conversation::default()
        };
        let Found::One(new) = newly_listed(&conversation, Verb::Describe) else { panic!("one pod is new") };
        assert_eq!(new.name, "ingest-7");
    }
}
