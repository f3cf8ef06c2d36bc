//! What an exchange was about, and what "it" stands for.

use crate::cluster::{ObjectSummary, Outcome};
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange, Step};
use crate::kinds::{Kind, WORKLOADS};
use crate::offline::words::{Act, Lexicon, Pick, Reading, State, read, words_of};

use super::{Found, fitting, known, picked, unique};

/// Returns the object of a command.
fn of_command(command: &Command, objects: &[ObjectSummary]) -> Option<ObjectSummary> {
    let name = command.name.clone()?;
    let kind = Kind::find(command.kind.as_deref()?)?.plural;
    let found = objects.iter().find(|object| object.name == name && object.kind == kind);
    let namespace = command.namespace.clone().unwrap_or_default();
    Some(found.cloned().unwrap_or(ObjectSummary { kind, name, namespace, ..ObjectSummary::default() }))
}

fn outcome_of(step: &Step) -> Option<&Outcome> {
    step.outcome.as_ref()
}

/// Returns the objects that an exchange was about: those that it named, or else those that it listed.
pub(in crate::offline) fn subjects(exchange: &Exchange) -> Vec<ObjectSummary> {
    let requested: Vec<ObjectSummary> =
        exchange.requested.iter().filter_map(|requested| of_command(&requested.command, &[])).collect();
    if !requested.is_empty() {
        return unique(requested);
    }
    let is_place = |object: &ObjectSummary| object.kind == "namespaces" && !speaks_of_namespace(exchange);
    let steps = exchange.steps.iter().filter(|step| step.command.verb != Verb::Find);
    let named: Vec<ObjectSummary> = steps
        .filter_map(|step| {
            let outcome = outcome_of(step);
            let command = outcome.map_or(&step.command, |outcome| &outcome.command);
            of_command(command, outcome.map_or(&[], |outcome| &outcome.objects))
        })
        .collect();
    let named: Vec<ObjectSummary> = named.into_iter().filter(|object| !is_place(object)).collect();
    if !named.is_empty() {
        return unique(named);
    }
    unique(listed(exchange))
}

/// Whether a message has the word for a namespace as an object: "describe namespace staging". Otherwise a namespace is only a place.
fn speaks_of_namespace(exchange: &Exchange) -> bool {
    let said = exchange.said.to_lowercase();
    said.split(|c: char| !c.is_alphanumeric()).any(|word| matches!(word, "namespace" | "ns"))
}

/// Returns the objects that an exchange listed, in the order of the list. Results of a search count only if the user was asked
/// about them; otherwise no one saw them.
pub(in crate::offline) fn listed(exchange: &Exchange) -> Vec<ObjectSummary> {
    if !exchange.offered.is_empty() {
        return exchange.offered.clone();
    }
    let steps = exchange.steps.iter().filter(|step| (step.command.verb == Verb::Find) == exchange.asked);
    steps.filter_map(outcome_of).flat_map(|outcome| outcome.objects.clone()).collect()
}

/// Returns all objects in the results of an exchange.
pub(in crate::offline) fn shown_objects(exchange: &Exchange) -> impl Iterator<Item = &ObjectSummary> {
    exchange.steps.iter().filter_map(outcome_of).flat_map(|outcome| &outcome.objects)
}

/// Returns the names of the objects that the conversation was about last, and of their workloads.
pub(crate) fn spoken_of(conversation: &Conversation) -> Vec<String> {
    let last = conversation.earlier.iter().rev().map(subjects).find(|subjects| !subjects.is_empty());
    let objects = last.filter(|objects| objects.len() <= 3).unwrap_or_default();
    let names = objects.into_iter().flat_map(|object| {
        let node = Some(object.node).filter(|node| !node.is_empty());
        [Some(object.name), object.owner.map(|(_, owner)| owner), node]
    });
    let names = names.flatten();
    // A message without effect, such as `kubectl edit`, is about the object that it names.
    let spoken = conversation.earlier.iter().rev().take_while(|last| is_without_effect(last)).take(3);
    names.chain(spoken.flat_map(|last| words_of(&last.said))).collect()
}

fn is_without_effect(exchange: &Exchange) -> bool {
    // A search that failed showed nothing.
    let has_failed = |step: &Step| step.command.verb == Verb::Find && step.error.is_some();
    exchange.steps.iter().all(has_failed) && exchange.requested.is_empty() && !exchange.asked
}

/// Returns the objects that a message without any effect named: "I might delete checkout in staging tomorrow".
fn spoken_objects(conversation: &Conversation, exchange: &Exchange) -> Vec<ObjectSummary> {
    let reading = read(&exchange.said, &Lexicon::of(conversation)).without_what_is_excluded();
    // "Is there another one, for redis?" asks for an object of the kind that was spoken of.
    let asks_for_another = reading.says("another one") || reading.says("there one");
    let is_about_cluster =
        matches!(reading.act, None | Some(Act::Refused(_) | Act::Spoken | Act::Same)) && !asks_for_another;
    let [name] = &reading.names[..] else { return Vec::new() };
    match known(conversation, name, Verb::Describe, &reading) {
        Found::One(object) if is_about_cluster => vec![object],
        _ => Vec::new(),
    }
}

/// "Which of the two runs the older image?": the object that the answer named, and the other one.
fn compared(conversation: &Conversation, exchange: &Exchange) -> Option<(ObjectSummary, ObjectSummary)> {
    let said = read(&exchange.said, &Lexicon::of(conversation));
    let at = conversation.earlier.iter().position(|other| std::ptr::eq(other, exchange))?;
    let before = &conversation.earlier[..at];
    by_version(before, &said).or_else(|| by_creation(before, &said)).filter(|_| said.act == Some(Act::Compare))
}

/// Returns the object with the older or newer version that a question means, and the other one: of the newest list of two, or of the
/// last two objects that were spoken of.
pub(in crate::offline) fn by_version(
    earlier: &[Exchange],
    question: &Reading,
) -> Option<(ObjectSummary, ObjectSummary)> {
    let is_older = question.has_any(&["older", "oldest", "behind", "outdated"]);
    let is_newer = question.has_any(&["newer", "newest", "ahead"]);
    if is_older == is_newer {
        return None;
    }
    let count = if question.has("three") { 3 } else { 2 };
    let complete = |object: ObjectSummary| super::completed_from(earlier.iter().rev().flat_map(shown_objects), object);
    let spoken: Vec<Vec<ObjectSummary>> = earlier
        .iter()
        .rev()
        .map(|exchange| subjects(exchange).into_iter().map(complete).collect::<Vec<ObjectSummary>>())
        .filter(|subjects| !subjects.is_empty())
        .collect();
    let is_named = |object: &ObjectSummary| {
        question.names.iter().all(|name| crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3))
    };
    let newest = spoken.first()?.clone();
    let singles: Vec<ObjectSummary> =
        unique(spoken.iter().filter(|subjects| subjects.len() == 1).flatten().cloned().collect());
    let singles = singles.into_iter().take(count).collect();
    // "Which env has the newer api?", after a list of each: the only program that runs in several versions.
    let recent = unique(spoken.iter().take(RECENT).flatten().filter(|object| is_named(object)).cloned().collect());
    let candidates = [newest, singles].into_iter().filter(|list: &Vec<ObjectSummary>| list.len() == count);
    let of_programs = by_program(recent, count);
    candidates.chain(of_programs).find_map(|list| ordered_by_version(list, is_newer))
}

/// Returns the pod of the newest list that was created first or last, as a question means it, and the next one.
pub(in crate::offline) fn by_creation(
    earlier: &[Exchange],
    question: &Reading,
) -> Option<(ObjectSummary, ObjectSummary)> {
    let is_older = question.has_any(&["older", "oldest", "eldest"]) || question.says("longest");
    let is_newer = question.has_any(&["newer", "newest", "younger", "youngest"]);
    if is_older == is_newer {
        return None;
    }
    let is_named = |object: &ObjectSummary| {
        question.names.iter().all(|name| crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3))
    };
    let complete = |object: ObjectSummary| super::completed_from(earlier.iter().rev().flat_map(shown_objects), object);
    let lists = earlier.iter().rev().map(|exchange| {
        let list = unique(listed(exchange)).into_iter().map(complete);
        let list = super::picks::without_owner(list.filter(is_named).collect(), false);
        list.into_iter().collect::<Vec<ObjectSummary>>()
    });
    let mut list = lists.into_iter().find(|list| list.len() > 1)?;
    if list.iter().any(|object| object.created.is_empty()) {
        return None;
    }
    list.sort_by(|one, other| one.created.cmp(&other.created));
    if is_newer {
        list.reverse();
    }
    let [meant, other, ..] = &list[..] else { return None };
    (meant.created != other.created).then(|| (meant.clone(), other.clone()))
}

/// How many exchanges back objects count whose versions are compared.
const RECENT: usize = 4;

/// Returns the objects of the only program that so many of them run in different versions; `None` if there are several.
fn by_program(mut objects: Vec<ObjectSummary>, count: usize) -> Option<Vec<ObjectSummary>> {
    // The pods of a workload have its version.
    let is_workload = |object: &ObjectSummary| WORKLOADS.contains(&&*object.kind);
    if objects.iter().any(is_workload) {
        objects.retain(is_workload);
    }
    let program = |object: &ObjectSummary| object.image.rsplit_once(':').map(|(program, _)| program.to_owned());
    let mut programs: Vec<String> = objects.iter().filter_map(program).collect();
    programs.sort();
    programs.dedup();
    let mut groups = programs.into_iter().filter_map(|own| {
        let group: Vec<ObjectSummary> =
            objects.iter().filter(|object| program(object).as_ref() == Some(&own)).cloned().collect();
        let differs = group.iter().any(|object| version_numbers(&object.image) != version_numbers(&group[0].image));
        (group.len() == count && differs).then_some(group)
    });
    groups.next().filter(|_| groups.next().is_none())
}

/// Returns the object with the oldest or newest version, and the next one; `None` if they run different programs or the same version.
fn ordered_by_version(mut objects: Vec<ObjectSummary>, is_newer: bool) -> Option<(ObjectSummary, ObjectSummary)> {
    let program = |object: &ObjectSummary| object.image.rsplit_once(':').map(|(program, _)| program.to_owned());
    let first = program(objects.first()?)?;
    if objects.iter().any(|object| program(object).as_ref() != Some(&first)) {
        return None;
    }
    objects.sort_by_key(|object| version_numbers(&object.image));
    if is_newer {
        objects.reverse();
    }
    let [meant, other, ..] = &objects[..] else { return None };
    (version_numbers(&meant.image) != version_numbers(&other.image)).then(|| (meant.clone(), other.clone()))
}

/// Returns the numbers of an image's version: `[5, 8, 2]` of `tracker:5.8.2`.
fn version_numbers(image: &str) -> Vec<u64> {
    let version = image.rsplit(':').next().unwrap_or_default();
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

/// Whether a message says that an object is not meant: "not checkout, that one is fine".
fn is_ruled_out(conversation: &Conversation, exchange: &Exchange, object: &ObjectSummary) -> bool {
    if !exchange.requested.is_empty() || !exchange.said.to_lowercase().split_whitespace().any(|word| word == "not") {
        return false;
    }
    let reading = read(&exchange.said, &Lexicon::of(conversation));
    let meant = reading.without_what_is_excluded().names;
    reading.names.iter().any(|name| *name == object.name && !meant.contains(name))
}

/// Returns the object that "it" stands for: that of the newest exchange that was about objects to which the verb applies.
pub(in crate::offline) fn focus(
    conversation: &Conversation,
    verb: Verb,
    kind: Option<&str>,
    namespace: Option<&str>,
) -> Found {
    for exchange in conversation.earlier.iter().rev() {
        // "Scale the deployment", after a comparison of two: either may be meant.
        if kind.is_some()
            && !verb.is_read()
            && is_without_effect(exchange)
            && let Some((meant, other)) = compared(conversation, exchange)
        {
            return Found::of([meant, other].iter().filter_map(|object| fitting(object, verb, kind)).collect());
        }
        let subjects = match is_without_effect(exchange) {
            true => compared(conversation, exchange)
                .map_or_else(|| spoken_objects(conversation, exchange), |(meant, _)| vec![meant]),
            false => subjects(exchange),
        };
        let subjects: Vec<ObjectSummary> =
            subjects.into_iter().map(|object| with_owner(conversation, object)).collect();
        // A list of namespaces names places.
        let is_place = |object: &ObjectSummary| {
            object.kind == "namespaces" && kind != Some("namespaces") && !speaks_of_namespace(exchange)
        };
        let subjects: Vec<ObjectSummary> = subjects
            .into_iter()
            .filter(|object| !is_place(object) && namespace.is_none_or(|name| object.namespace == name))
            .filter(|object| verb.is_read() || !is_ruled_out(conversation, exchange, object))
            .collect();
        let fitting: Vec<ObjectSummary> =
            unique(subjects.iter().filter_map(|object| fitting(object, verb, kind)).collect());
        if !fitting.is_empty() {
            let found = narrowed(conversation, exchange, fitting, verb);
            // "Restart the deployment", after a look at one, and then a list of the pods of several.
            let is_owner = kind.is_some_and(|kind| kind != "pods" && subjects.iter().all(|object| object.kind != kind));
            let spoken = kind.filter(|_| is_owner && found.len() > 1 && !verb.is_read());
            let older = spoken.and_then(|kind| one_of_kind(conversation, exchange, kind, &found));
            return Found::of(older.map_or(found, |object| vec![object]));
        }
        // A change without a kind is about what was spoken of last, or else nothing: an older object is not guessed.
        if !verb.is_read() && kind.is_none() && !subjects.is_empty() {
            return Found::None;
        }
    }
    Found::None
}

/// Completes a pod of a request with its owner, which an earlier answer or the cluster shows.
pub(super) fn with_owner(conversation: &Conversation, object: ObjectSummary) -> ObjectSummary {
    if object.kind != "pods" || object.owner.is_some() && !object.node.is_empty() {
        return object;
    }
    let shown =
        conversation.earlier.iter().rev().flat_map(shown_objects).chain(conversation.mentioned.iter().flatten());
    let mut same = shown
        .filter(|other| other.kind == object.kind && other.name == object.name && other.namespace == object.namespace);
    let Some(shown) = same.find(|other| other.owner.is_some() || !other.node.is_empty()) else { return object };
    let node = if object.node.is_empty() { shown.node.clone() } else { object.node };
    ObjectSummary { owner: object.owner.or_else(|| shown.owner.clone()), node, ..object }
}

/// Returns the object of a kind that was spoken of alone before an exchange, if it is one of `candidates`.
fn one_of_kind(
    conversation: &Conversation,
    exchange: &Exchange,
    kind: &str,
    candidates: &[ObjectSummary],
) -> Option<ObjectSummary> {
    let at = conversation.earlier.iter().position(|other| std::ptr::eq(other, exchange))?;
    let recent = conversation.earlier[..at].iter().rev().take(4).map(subjects);
    // A pod stands for the workload that owns it.
    let of_kind = |object: ObjectSummary| match with_owner(conversation, object.clone()).owner {
        _ if object.kind == kind => Some(object),
        Some((owner_kind, name)) if owner_kind == kind => Some(ObjectSummary { kind: owner_kind, name, ..object }),
        _ => None,
    };
    let alone = recent.filter(|objects| objects.len() == 1).flatten().find_map(of_kind)?;
    let is_same = |other: &&ObjectSummary| other.name == alone.name && other.namespace == alone.namespace;
    candidates.iter().find(is_same).cloned()
}

/// Of several objects of an answer, the one that the question was about: the only one that restarted, that has a problem, or that is
/// new; of a workload and its pods, the workload, if the verb only reads.
fn narrowed(
    conversation: &Conversation,
    exchange: &Exchange,
    objects: Vec<ObjectSummary>,
    verb: Verb,
) -> Vec<ObjectSummary> {
    if objects.len() < 2 {
        return objects;
    }
    let workloads: Vec<&ObjectSummary> = objects.iter().filter(|object| WORKLOADS.contains(&&*object.kind)).collect();
    if let [workload] = workloads[..] {
        let is_part = |object: &ObjectSummary| {
            object == workload
                || object.kind == "pods" && object.owner.as_ref().is_some_and(|(_, owner)| *owner == workload.name)
        };
        if verb.is_read() && objects.iter().all(is_part) {
            return vec![workload.clone()];
        }
    }
    let question = read(&exchange.said, &Lexicon::of(conversation));
    // "Compare web in staging and production", answered by the lists of both.
    let is_named = |object: &&ObjectSummary| {
        question.names.iter().any(|name| crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3))
    };
    let named: Vec<ObjectSummary> = objects.iter().filter(is_named).cloned().collect();
    if exchange.offered.is_empty() && !named.is_empty() && named.len() < objects.len() && !question.names.is_empty() {
        return named;
    }
    // "Which deployment has the fewest replicas?"
    if let Some(state) = question.state.filter(|state| state.is_superlative()) {
        let found = state.filter(&objects);
        return if found.len() == 1 { found } else { objects };
    }
    // "Which of them never restarted?"
    if let Some(state) = question.state.filter(|_| question.has("which")) {
        let found = state.filter(&objects);
        if found.len() == 1 {
            return found;
        }
    }
    // "How often has the second restarted?"
    if let Some(pick) = question.pick
        && let Found::One(asked) = picked_before(conversation, exchange, pick, &question)
        && objects.contains(&asked)
    {
        return vec![asked];
    }
    // "What other deployments are there next to it?": those that were not spoken of before.
    if question.has_any(&["else", "another"]) || question.has_any(&["other", "others"]) && question.is_plural {
        let at = conversation.earlier.iter().position(|other| std::ptr::eq(other, exchange)).unwrap_or(0);
        let before = conversation.earlier[..at].iter().map(subjects).filter(|subjects| subjects.len() == 1);
        let before: Vec<ObjectSummary> = before.flatten().collect();
        let is_known = |object: &&ObjectSummary| {
            !before.iter().any(|known| known.name == object.name && known.namespace == object.namespace)
        };
        let others: Vec<ObjectSummary> = objects.iter().filter(is_known).cloned().collect();
        if others.len() == 1 {
            return others;
        }
    }
    // "Is one of them not fully up?"
    let asks_of_all = question.is_question
        && question.has_any(&["all", "everything", "everyone"])
        && question.has_any(&["ok", "okay", "healthy", "fine", "alright", "up", "good", "running", "ready"]);
    let is_problem =
        question.unhealthy || asks_of_all || question.state.is_some_and(|state| state.filter(&objects).len() == 1);
    if is_problem && objects.iter().all(|object| object.kind != "pods") {
        let found = question.state.unwrap_or(State::Unhealthy).filter(&objects);
        if found.len() == 1 {
            return found;
        }
    }
    let said = exchange.said.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let only = |fits: &dyn Fn(&ObjectSummary) -> bool| {
        let found: Vec<&ObjectSummary> =
            objects.iter().filter(|object| object.kind == "pods" && fits(object)).collect();
        match found[..] {
            [one] => Some(vec![one.clone()]),
            _ => None,
        }
    };
    // "Pods in game, and how many restarts?" asks for no single one, so a change does not mean it.
    let asks_for_one = verb.is_read()
        || question.has_any(&["which", "any", "anything", "anyone", "one"])
        || question.is_question && !question.is_plural;
    let found = if says(&["restart"]) && asks_for_one {
        only(&|object| object.restarts.is_some_and(|restarts| restarts > 0))
    } else if says(&[
        "crash",
        "broken",
        "fail",
        "wrong",
        "problem",
        "unhealthy",
        "down",
        "pending",
        "sick",
        "red",
        "stuck",
        "odd",
    ]) || asks_of_all
    {
        only(&|object| object.is_unhealthy)
    } else if says(&["new", "come back", "came back", "is it back", "recreated", "replacement"]) {
        let is_before = |other: &&Exchange| !std::ptr::eq(*other, exchange);
        let before: Vec<&ObjectSummary> =
            conversation.earlier.iter().filter(is_before).flat_map(shown_objects).collect();
        only(&|object| !before.iter().any(|known| known.name == object.name && known.namespace == object.namespace))
    } else {
        None
    };
    found.unwrap_or(objects)
}

/// Returns the object that a question of an earlier exchange picked from a list before it.
fn picked_before(conversation: &Conversation, exchange: &Exchange, pick: Pick, question: &Reading) -> Found {
    let mut before = conversation.clone();
    before.earlier.truncate(conversation.earlier.iter().position(|other| std::ptr::eq(other, exchange)).unwrap_or(0));
    picked(&before, pick, question, Verb::Describe)
}

/// Returns the workload of the newest exchange about one that fits: "move it to api:3.2.0" means one that runs `api`.
pub(in crate::offline) fn running(
    conversation: &Conversation,
    runs: &dyn Fn(&ObjectSummary) -> bool,
    namespace: Option<&str>,
) -> Found {
    for exchange in conversation.earlier.iter().rev() {
        let objects =
            subjects(exchange).into_iter().filter(|object| namespace.is_none_or(|name| object.namespace == name));
        let workloads = unique(objects.filter_map(|object| fitting(&object, Verb::SetImage, None)).collect());
        let is_list = workloads.len() > 1;
        let found: Vec<ObjectSummary> = workloads.into_iter().filter(|object| runs(object)).collect();
        // An older list is not what was spoken of.
        if !found.is_empty() && is_list {
            return Found::None;
        }
        if !found.is_empty() {
            return Found::of(found);
        }
    }
    Found::None
}

/// "Not the deployment, only the pod": the only object of another kind that belongs to the object of a command, or that it belongs to.
pub(in crate::offline) fn related(conversation: &Conversation, command: &Command, kind: &str) -> Option<ObjectSummary> {
    let shown = conversation.earlier.iter().rev().flat_map(shown_objects);
    let all: Vec<&ObjectSummary> = shown.chain(conversation.mentioned.iter().flatten()).collect();
    let namespace = command.namespace.clone().unwrap_or_default();
    let here = || all.iter().filter(|object| object.namespace == namespace);
    let own_kind = command.kind.as_ref()?;
    let name = command.name.as_ref()?;
    let owner =
        here().find(|object| object.name == *name && object.kind == *own_kind).and_then(|object| object.owner.clone());
    if let Some((owner_kind, owner)) = owner.filter(|(owner_kind, _)| owner_kind == kind) {
        return Some(ObjectSummary { kind: owner_kind, name: owner, namespace, ..ObjectSummary::default() });
    }
    let is_part = |object: &&&ObjectSummary| {
        object.kind == kind && object.owner.as_ref().is_some_and(|owner| (&owner.0, &owner.1) == (own_kind, name))
    };
    let is_namesake = |object: &&&ObjectSummary| object.kind == kind && object.name == *name;
    let mut found: Vec<&ObjectSummary> = here().filter(is_part).copied().collect();
    if found.is_empty() {
        found = here().filter(is_namesake).copied().collect();
    }
    let first = *found.first()?;
    found.iter().all(|object| object.name == first.name).then(|| first.clone())
}
