//! Objects that are meant by their position: "the second one", "the other one", "the one before".

use crate::cluster::ObjectSummary;
use crate::command::Verb;
use crate::conversation::{Conversation, Exchange, Step};
use crate::offline::words::{Pick, Reading};

use super::{Found, fitting, focus, listed, newly_listed, subjects, unique, was_deleted};

/// From the description of a workload, keeps only the pods, which are what it lists.
pub(super) fn without_owner(mut list: Vec<ObjectSummary>, has_kind: bool) -> Vec<ObjectSummary> {
    // If there are lists of several kinds, the first one counts.
    let first_kind = list.first().map(|object| object.kind.clone());
    if !has_kind && list.iter().filter(|object| Some(&object.kind) == first_kind.as_ref()).count() > 1 {
        list.retain(|object| Some(&object.kind) == first_kind.as_ref());
    }
    let is_description = list.split_first().is_some_and(|(head, rest)| {
        !rest.is_empty()
            && rest
                .iter()
                .all(|pod| pod.owner.as_ref().is_some_and(|(kind, name)| (kind, name) == (&head.kind, &head.name)))
    });
    if is_description {
        list.remove(0);
    }
    list
}

/// Returns one of the objects of the newest list.
pub(in crate::offline) fn picked(conversation: &Conversation, pick: Pick, reading: &Reading, verb: Verb) -> Found {
    // "The last one", after the logs of the first two: the last one of the list.
    let is_list = |exchange: &&Exchange| {
        let is_list = |step: &Step| step.command.verb == Verb::Get && step.command.name.is_none();
        !exchange.offered.is_empty() || exchange.steps.iter().any(is_list)
    };
    let newest_first = conversation.earlier.iter().rev();
    let others = newest_first.clone().filter(|exchange| !is_list(exchange));
    let ordered: Vec<&Exchange> = match pick {
        Pick::Other => newest_first.collect(),
        _ => newest_first.filter(is_list).chain(others).collect(),
    };
    let lists = ordered.into_iter().map(|exchange| unique(listed(exchange)));
    let of_kind = |objects: Vec<ObjectSummary>| -> Vec<ObjectSummary> {
        let kind = reading.kind.as_deref();
        objects.into_iter().filter(|object| kind.is_none_or(|kind| kind == object.kind)).collect()
    };
    let lists =
        lists.map(|list| without_owner(list, reading.kind.is_some())).map(of_kind).filter(|list| list.len() > 1);
    if pick == Pick::Before {
        return before(conversation, verb);
    }
    if pick == Pick::AskedFirst {
        let spoken = spoken_in_turn(conversation).map(of_kind).unwrap_or_default();
        return Found::of(spoken.first().and_then(|object| fitting(object, verb, None)).into_iter().collect());
    }
    if pick == Pick::Fresh {
        return newly_listed(conversation, verb);
    }
    if let Pick::Done(done) = pick {
        return last_of_command(conversation, done, verb);
    }
    if pick == Pick::Other {
        return other(conversation, lists, reading, verb);
    }
    // "The one we kept", after a deletion and a look at what is there.
    let is_one = |found: &Found| matches!(found, Found::One(_));
    if pick == Pick::Untouched && deleted_last(conversation).is_some() {
        let left = other(conversation, lists.clone(), reading, verb);
        if is_one(&left) {
            return left;
        }
    }
    // "The first one from the staging list": an older list counts, if the newest is of another namespace.
    let of_namespace = |list: &Vec<ObjectSummary>| {
        reading.namespace.as_ref().is_none_or(|namespace| list.iter().all(|object| object.namespace == *namespace))
    };
    let lists: Vec<Vec<ObjectSummary>> = lists.collect();
    let mut lists = lists.iter().filter(|list| of_namespace(list)).chain(&lists).cloned();
    // "And the third?", after a choice between two: the list before it has a third one.
    let is_long_enough = |list: &Vec<ObjectSummary>| match pick {
        Pick::At(at) => list.len() > at,
        Pick::Middle => list.len() % 2 == 1,
        _ => true,
    };
    let newest = lists.clone().next();
    let fitting_list = lists.find(is_long_enough).or(newest);
    // Without a list, objects count in the order in which they were spoken of.
    let Some(mut list) = fitting_list.or_else(|| spoken_in_turn(conversation)) else {
        return if pick == Pick::Previous { before(conversation, verb) } else { Found::None };
    };
    if reading.unhealthy && list.iter().any(|object| object.is_unhealthy) {
        list.retain(|object| object.is_unhealthy);
    }
    // "The second gpu node": of those that have the name.
    if let [name] = &reading.names[..] {
        let has_name = |object: &ObjectSummary| crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3);
        if list.iter().any(has_name) {
            list.retain(has_name);
        }
    }
    let found = match pick {
        Pick::At(at) => list.get(at).cloned(),
        Pick::Last => list.last().cloned(),
        Pick::First(count) | Pick::Newest(count) => {
            let skipped = if matches!(pick, Pick::First(_)) { 0 } else { list.len().saturating_sub(count) };
            let some = list.iter().skip(skipped).take(count);
            return Found::of(unique(some.filter_map(|object| fitting(object, verb, None)).collect()));
        }
        Pick::Middle => list.get(list.len() / 2).filter(|_| list.len() % 2 == 1).cloned(),
        Pick::Next | Pick::Previous => spoken_last(conversation, &list)
            .and_then(|last| list.iter().position(|object| object.is_same(&last)))
            .and_then(|at| if pick == Pick::Next { at.checked_add(1) } else { at.checked_sub(1) })
            .and_then(|at| list.get(at).cloned()),
        Pick::Untouched => return untouched(conversation, list, verb),
        Pick::Other | Pick::Before | Pick::AskedFirst | Pick::Fresh | Pick::Done(_) => None,
    };
    Found::of(found.iter().filter_map(|object| fitting(object, verb, None)).collect())
}

/// "The postgres one", "the one on 8.0.1": the objects of the newest list that run an image; `None` if the message says no such thing.
pub(in crate::offline) fn by_image(conversation: &Conversation, reading: &Reading, verb: Verb) -> Option<Found> {
    let words = &reading.words;
    let is_noun = |word: &String| matches!(&**word, "one" | "ones" | "pod" | "deployment");
    let program = words.windows(3).find(|three| three[0] == "the" && is_noun(&three[2])).map(|three| three[1].clone());
    let version = words.windows(4).find(|four| {
        four[0] == "the"
            && is_noun(&four[1])
            && matches!(&*four[2], "on" | "with" | "running" | "at")
            && four[3].contains('.')
    });
    let version = version.map(|four| four[3].clone()).filter(|_| verb != Verb::SetImage);
    let lists = conversation.earlier.iter().rev().map(|exchange| unique(listed(exchange)));
    let list = lists.filter(|list| list.len() > 1).find(|list| list.iter().any(|object| !object.image.is_empty()))?;
    // "The nginx deployment": a name of an object of the cluster is no image.
    let has_name = |word: &String| {
        let mut known = list.iter().chain(conversation.mentioned.iter().flatten());
        known.any(|object| crate::cluster::likeness(&object.name, word).is_some() || object.namespace == *word)
    };
    let runs = |object: &&ObjectSummary| {
        let (name, tag) = object.image.rsplit_once(':').unwrap_or((&object.image, ""));
        let is_program = |word: &String| {
            word.len() > 2 && !has_name(word) && name.split(|c: char| !c.is_alphanumeric()).any(|part| part == word)
        };
        version.as_ref().map_or_else(|| program.as_ref().is_some_and(is_program), |version| tag == version)
    };
    let found: Vec<ObjectSummary> = list.iter().filter(runs).filter_map(|object| fitting(object, verb, None)).collect();
    (!found.is_empty()).then(|| Found::of(found))
}

/// Returns the two objects of the newest list of two that contains an object, or the two that were spoken of; empty if there are none.
pub(in crate::offline) fn pair_with(
    conversation: &Conversation,
    object: &ObjectSummary,
    verb: Verb,
) -> Vec<ObjectSummary> {
    let lists = conversation
        .earlier
        .iter()
        .rev()
        .map(|exchange| unique(listed(exchange).iter().filter_map(|object| fitting(object, verb, None)).collect()));
    let mut pairs = lists.filter(|list: &Vec<ObjectSummary>| list.len() > 1);
    let pair = pairs.next().filter(|list| list.len() == 2 && list.iter().any(|other| other.is_same(object)));
    // "Restart both", after looks at one and then at another.
    let in_turn = || {
        let spoken = spoken_in_turn(conversation)?;
        let spoken = unique(spoken.iter().filter_map(|object| fitting(object, verb, None)).collect());
        Some(spoken).filter(|spoken| spoken.len() == 2)
    };
    pair.or_else(in_turn).unwrap_or_default()
}

/// Returns the objects of the newest list, if it contains an object.
pub(in crate::offline) fn list_with(
    conversation: &Conversation,
    object: &ObjectSummary,
    verb: Verb,
) -> Vec<ObjectSummary> {
    let lists = conversation.earlier.iter().rev().map(|exchange| without_owner(unique(listed(exchange)), false));
    let newest = lists.filter(|list| list.len() > 1).map(|list| {
        unique(list.iter().filter_map(|object| fitting(object, verb, None)).collect::<Vec<ObjectSummary>>())
    });
    newest.take(1).find(|list| list.iter().any(|other| other.is_same(object))).unwrap_or_default()
}

/// Returns the object of a list that was spoken of last, alone.
fn spoken_last(conversation: &Conversation, list: &[ObjectSummary]) -> Option<ObjectSummary> {
    let mut singles = conversation.earlier.iter().rev().map(subjects).filter(|subjects| subjects.len() == 1).flatten();
    singles.find(|object| list.iter().any(|listed| listed.is_same(object)))
}

/// Returns the objects of a list that were not spoken of since it was shown.
fn untouched(conversation: &Conversation, mut list: Vec<ObjectSummary>, verb: Verb) -> Found {
    let shows = |exchange: &Exchange| {
        let listed = listed(exchange);
        list.iter().all(|object| listed.iter().any(|other| object.is_same(other)))
    };
    let Some(at) = conversation.earlier.iter().position(shows) else { return Found::None };
    for exchange in &conversation.earlier[at + 1..] {
        let spoken = subjects(exchange);
        if spoken.len() < list.len() {
            list.retain(|object| !spoken.iter().any(|other| object.is_same(other)));
        }
    }
    Found::of(list.iter().filter_map(|object| fitting(object, verb, None)).collect())
}

/// Returns the objects that were spoken of one at a time, oldest first; `None` if there are fewer than two.
fn spoken_in_turn(conversation: &Conversation) -> Option<Vec<ObjectSummary>> {
    let recent = &conversation.earlier[conversation.earlier.len().saturating_sub(6)..];
    let singles = recent.iter().map(subjects).filter(|subjects| subjects.len() == 1).flatten().collect();
    Some(unique(singles)).filter(|objects| objects.len() > 1)
}

/// Returns the object that was spoken of before the one that was spoken of last.
fn before(conversation: &Conversation, verb: Verb) -> Found {
    let mut singles = conversation.earlier.iter().rev().map(subjects).filter(|subjects| subjects.len() == 1).flatten();
    let Some(last) = singles.next() else { return Found::None };
    let earlier = singles.find(|object| object.name != last.name || object.namespace != last.namespace);
    Found::of(earlier.iter().filter_map(|object| fitting(object, verb, None)).collect())
}

/// Returns the object to which a command was applied last.
fn last_of_command(conversation: &Conversation, done: Verb, verb: Verb) -> Found {
    let is_done = |exchange: &&Exchange| {
        let steps = exchange.steps.iter().map(|step| &step.command);
        let mut commands = steps.chain(exchange.requested.iter().map(|requested| &requested.command));
        commands.any(|command| command.verb == done && command.name.is_some())
    };
    let found = conversation.earlier.iter().rev().find(is_done).map(subjects).unwrap_or_default();
    Found::of(unique(found.iter().filter_map(|object| fitting(object, verb, None)).collect()))
}

/// Returns the objects that the conversation is about now: one, or several that were named one by one. Empty after a list.
pub(in crate::offline) fn spoken_of_now(conversation: &Conversation) -> Vec<ObjectSummary> {
    let names_all = |exchange: &Exchange| {
        let steps = exchange.steps.iter().filter(|step| step.command.verb != Verb::Find);
        let mut names = steps.map(|step| step.command.name.is_some());
        exchange.offered.is_empty() && names.next() == Some(true) && names.all(|is_named| is_named)
    };
    match focus(conversation, Verb::Describe, None, None) {
        Found::One(object) => vec![object],
        Found::Several(objects) => {
            let newest = conversation.earlier.iter().rev().find(|exchange| !subjects(exchange).is_empty());
            if newest.is_some_and(names_all) { objects } else { Vec::new() }
        }
        Found::None => Vec::new(),
    }
}

/// How many exchanges back a deletion counts for "the other".
const RECENT: usize = 5;

/// Returns the object that was deleted last, and the exchanges before that.
fn deleted_last(conversation: &Conversation) -> Option<(ObjectSummary, &[Exchange])> {
    let all = &conversation.earlier;
    let at = all.iter().rposition(|exchange| !exchange.requested.is_empty())?;
    let deletes = all[at].requested.iter().all(|requested| requested.command.verb == Verb::Delete);
    match &subjects(&all[at])[..] {
        [only] if deletes && at + RECENT >= all.len() => Some((only.clone(), &all[..at])),
        _ => None,
    }
}

/// Returns the other one of a list: not the object that was spoken of last, and not of the same workload.
fn other(
    conversation: &Conversation,
    lists: impl Iterator<Item = Vec<ObjectSummary>>,
    reading: &Reading,
    verb: Verb,
) -> Found {
    let mut currents = spoken_of_now(conversation);
    // "Now the other", after one was deleted and the list was read again: that of the list before the change.
    let mut lists: Vec<Vec<ObjectSummary>> = lists.collect();
    // "The other of the two".
    if reading.says("of the two")
        && let Some((deleted, before)) = deleted_last(conversation)
    {
        let before = before.iter().rev().map(|exchange| without_owner(unique(listed(exchange)), false));
        let pair =
            before.filter(|list| list.len() == 2).find(|list| list.iter().any(|object| object.is_same(&deleted)));
        let other = pair.into_iter().flatten().find(|object| !object.is_same(&deleted));
        if let Some(other) = other.and_then(|object| fitting(&object, verb, None)) {
            return Found::One(other);
        }
    }
    if currents.is_empty()
        && let Some((deleted, before)) = deleted_last(conversation)
        && lists.first().is_some_and(|list| list.iter().all(|object| object.is_like(&deleted)))
    {
        let before = before.iter().rev().map(|exchange| without_owner(unique(listed(exchange)), false));
        let before: Vec<Vec<ObjectSummary>> =
            before.filter(|list| list.len() > 1 && list.iter().any(|object| object.is_same(&deleted))).collect();
        if !before.is_empty() {
            (currents, lists) = (vec![deleted], before);
        }
    }
    let Some(current) = currents.first() else {
        let mut lists = lists.into_iter();
        return lists.next().map_or(Found::None, |list| {
            Found::of(unique(list.iter().filter_map(|object| fitting(object, verb, None)).collect()))
        });
    };
    let workload = |object: &ObjectSummary| object.owner.as_ref().map_or(&object.name, |(_, owner)| owner).clone();
    let is_same_as = |object: &ObjectSummary, current: &ObjectSummary| {
        let is_same_pod = object.name == current.name && object.namespace == current.namespace;
        let both_pods = object.kind == "pods" && current.kind == "pods";
        is_same_pod || !both_pods && object.namespace == current.namespace && workload(object) == workload(current)
    };
    let is_same = |object: &ObjectSummary| currents.iter().any(|current| is_same_as(object, current));
    for list in lists {
        let (own, mut others): (Vec<ObjectSummary>, Vec<ObjectSummary>) =
            list.into_iter().partition(|object| is_same(object));
        // "What about the other", after one of two was deleted: the one that is left.
        if let ([left], [deleted]) = (&own[..], &others[..])
            && was_deleted(conversation, deleted)
        {
            return Found::of(fitting(left, verb, None).into_iter().collect());
        }
        let has_name = |object: &ObjectSummary, name: &String| {
            crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3)
        };
        others.retain(|object| reading.names.iter().all(|name| has_name(object, name)));
        if let Some(state) = reading.state {
            others = state.filter(&others);
        } else if reading.unhealthy && others.iter().any(|object| object.is_unhealthy) {
            others.retain(|object| object.is_unhealthy);
        }
        let fitting = unique(others.iter().filter_map(|object| fitting(object, verb, None)).collect());
        if !fitting.is_empty() {
            return Found::of(fitting);
        }
    }
    // Two objects were spoken of one after the other.
    let mut spoken: Vec<ObjectSummary> = Vec::new();
    for exchange in conversation.earlier.iter().rev().take(6) {
        if let [only] = &subjects(exchange)[..]
            && !is_same(only)
            && let Some(object) = fitting(only, verb, reading.kind.as_deref())
        {
            spoken.push(object);
        }
    }
    let spoken = unique(spoken);
    if !spoken.is_empty() {
        return Found::of(spoken);
    }
    if currents.len() > 1 {
        return Found::None;
    }
    // The other pod of the same workload, or the other workload of the cluster that was mentioned.
    let siblings = conversation.mentioned.iter().flatten().filter(|object| {
        object.kind == current.kind && object.namespace == current.namespace && object.name != current.name
    });
    let siblings =
        siblings.filter(|object| if current.kind == "pods" { object.owner == current.owner } else { verb.is_read() });
    Found::of(unique(siblings.filter_map(|object| fitting(object, verb, None)).collect()))
}
