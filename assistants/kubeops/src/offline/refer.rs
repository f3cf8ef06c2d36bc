//! What words refer to: objects of earlier answers and requests.

mod described;
mod picks;
mod places;
mod subjects;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange};
use crate::kinds::{SCALABLE, WORKLOADS};

use super::words::{Reading, State};
pub(super) use described::{described, fit_of};
pub(super) use picks::{by_image, list_with, pair_with, picked, spoken_of_now};
pub(super) use places::{fresh, in_several_places, newly_listed, was_deleted};
pub(crate) use subjects::spoken_of;
pub(super) use subjects::{by_creation, by_version, focus, listed, related, running, shown_objects, subjects};

/// The result of looking for an object.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "it is matched immediately, and never collected")]
pub(super) enum Found {
    One(ObjectSummary),
    Several(Vec<ObjectSummary>),
    None,
}

impl Found {
    pub(super) fn of(mut objects: Vec<ObjectSummary>) -> Self {
        match objects.len() {
            0 => Self::None,
            1 => Self::One(objects.remove(0)),
            _ => Self::Several(objects),
        }
    }
}

/// Returns the kinds that a verb applies to; `None` for all.
pub(super) fn kinds_of(verb: Verb) -> Option<&'static [&'static str]> {
    match verb {
        Verb::Scale => Some(&SCALABLE),
        Verb::RolloutRestart | Verb::SetImage | Verb::SetResources | Verb::SetEnv | Verb::RolloutStatus => {
            Some(&WORKLOADS)
        }
        Verb::RolloutUndo | Verb::RolloutPause | Verb::RolloutResume | Verb::RolloutHistory => Some(&["deployments"]),
        Verb::Logs => Some(&["pods", "deployments", "statefulsets", "daemonsets", "replicasets", "jobs"]),
        Verb::Cordon | Verb::Uncordon | Verb::Drain => Some(&["nodes"]),
        Verb::Top => Some(&["pods", "nodes"]),
        Verb::Exec => Some(&["pods"]),
        _ => None,
    }
}

/// Returns the object that a verb would apply to: of a pod, the workload that owns it, if the verb needs one. `None` if the verb
/// does not apply.
pub(super) fn fitting(object: &ObjectSummary, verb: Verb, kind: Option<&str>) -> Option<ObjectSummary> {
    let is_named = |object: &ObjectSummary| kind.is_none_or(|kind| kind == object.kind);
    let fits = |object: &ObjectSummary| kinds_of(verb).is_none_or(|kinds| kinds.contains(&&*object.kind));
    if fits(object) && is_named(object) {
        return Some(object.clone());
    }
    // "Which node is it on?", and then "cordon it".
    if kinds_of(verb) == Some(&["nodes"]) && kind.is_none_or(|kind| kind == "nodes") && !object.node.is_empty() {
        return Some(ObjectSummary { kind: "nodes".to_owned(), name: object.node.clone(), ..ObjectSummary::default() });
    }
    let (owner_kind, owner) = object.owner.clone()?;
    let of_owner = ObjectSummary {
        kind: owner_kind,
        name: owner,
        namespace: object.namespace.clone(),
        image: object.image.clone(),
        ..ObjectSummary::default()
    };
    // "Restart the nginx pod" names the pod, and means its workload.
    let may_stand_for_owner = is_named(&of_owner) || kind == Some("pods");
    (fits(&of_owner) && !fits(object) && may_stand_for_owner || fits(&of_owner) && kind == Some(&*of_owner.kind))
        .then_some(of_owner)
}

fn unique(objects: Vec<ObjectSummary>) -> Vec<ObjectSummary> {
    let mut found: Vec<ObjectSummary> = Vec::new();
    for object in objects {
        let is_known = found.iter().any(|known| known.is_same(&object));
        if !is_known {
            found.push(object);
        }
    }
    found
}

/// Returns the objects of the newest list that are not healthy: "the crashing one".
pub(super) fn unhealthy(conversation: &Conversation, reading: &Reading, verb: Verb) -> Found {
    let fits = |object: &ObjectSummary| {
        object.is_unhealthy
            && (verb.is_read() || !was_deleted(conversation, object))
            && reading.kind.as_ref().is_none_or(|kind| object.kind == *kind)
            && reading.namespace.as_ref().is_none_or(|namespace| object.namespace == *namespace)
    };
    let lists = conversation.earlier.iter().rev().map(|exchange| unique(listed(exchange)));
    let unhealthy = lists.map(|list| list.into_iter().filter(&fits).collect::<Vec<_>>()).find(|list| !list.is_empty());
    let fitting = unhealthy.iter().flatten().filter_map(|object| fitting(object, verb, None)).collect();
    Found::of(unique(fitting))
}

/// Looks for a name among the objects of the conversation, and then among those of the cluster.
pub(super) fn known(conversation: &Conversation, name: &str, verb: Verb, reading: &Reading) -> Found {
    let found = named(conversation, name, verb, reading);
    let spoken: &[ObjectSummary] = match &found {
        Found::None => return mentioned(conversation, name, verb, reading),
        Found::One(object) => std::slice::from_ref(object),
        Found::Several(objects) => objects,
    };
    // "And the plain checkout?" after `checkout-worker`: beside it, there is an object that has exactly this name.
    let is_beside = |object: &&ObjectSummary| {
        object.name == name && spoken.iter().all(|other| other.name != name && other.namespace == object.namespace)
    };
    let exact = conversation.mentioned.iter().flatten().filter(is_beside);
    let is_part = |other: &ObjectSummary| other.owner.as_ref().is_some_and(|(_, owner)| owner == name);
    let exact: Vec<ObjectSummary> =
        unique(exact.filter_map(|object| fitting(object, verb, reading.kind.as_deref())).collect());
    match exact.len() {
        1 if !spoken.iter().any(is_part) => Found::of(exact),
        _ => found,
    }
}

/// Looks for a name among the objects of the cluster that the message may mean. Those of the namespace that the conversation is about
/// come first.
pub(super) fn mentioned(conversation: &Conversation, name: &str, verb: Verb, reading: &Reading) -> Found {
    let all = conversation.mentioned.iter().flatten().filter(|object| {
        reading.namespace.as_ref().is_none_or(|namespace| object.namespace == *namespace || object.namespace.is_empty())
    });
    let best = best_fitting(all, name, verb, reading.kind.as_deref());
    let found = in_last_namespace(conversation, reading, best);
    // Of a workload and its pods or service, the workload is meant.
    match owner_named(&found, name).filter(|_| reading.kind.is_none()) {
        Some(owner) => Found::One(owner),
        None => Found::of(prefer_workloads(found, verb, reading)),
    }
}

/// Prefers the objects of the namespace that the conversation is about.
pub(super) fn in_last_namespace(
    conversation: &Conversation,
    reading: &Reading,
    objects: Vec<ObjectSummary>,
) -> Vec<ObjectSummary> {
    if objects.len() < 2 || reading.namespace.is_some() {
        return objects;
    }
    let Some(namespace) = last_namespace(conversation) else { return objects };
    let here: Vec<ObjectSummary> = objects.iter().filter(|object| object.namespace == namespace).cloned().collect();
    if here.is_empty() { objects } else { here }
}

/// Keeps, of the objects that match part of a name, the workloads and not their pods, if no kind is named and the verb applies to both.
fn prefer_workloads(objects: Vec<ObjectSummary>, verb: Verb, reading: &Reading) -> Vec<ObjectSummary> {
    if reading.kind.is_some() || !verb.is_read() || objects.len() < 2 {
        return objects;
    }
    let workloads: Vec<ObjectSummary> =
        objects.iter().filter(|object| WORKLOADS.contains(&&*object.kind)).cloned().collect();
    let is_covered = |object: &ObjectSummary| {
        WORKLOADS.contains(&&*object.kind)
            || workloads.iter().any(|workload| {
                workload.namespace == object.namespace
                    && (object.owner.as_ref().is_some_and(|(_, owner)| *owner == workload.name)
                        || object.kind != "pods" && object.name == workload.name)
            })
    };
    if workloads.is_empty() || !objects.iter().all(is_covered) { objects } else { workloads }
}

/// Completes an object from a question with what earlier answers showed of it.
pub(super) fn completed(conversation: &Conversation, object: ObjectSummary) -> ObjectSummary {
    completed_from(
        conversation.earlier.iter().rev().flat_map(shown_objects).chain(conversation.mentioned.iter().flatten()),
        object,
    )
}

/// Completes an object of which only the name is known with the first one of these that says more.
fn completed_from<'a>(mut all: impl Iterator<Item = &'a ObjectSummary>, object: ObjectSummary) -> ObjectSummary {
    let says_more = |object: &ObjectSummary| object.restarts.is_some() || object.replicas.is_some();
    if !object.state.is_empty() || says_more(&object) {
        return object;
    }
    all.find(|other| other.is_same(&object) && says_more(other)).cloned().unwrap_or(object)
}

/// Returns the objects in a state from the newest answer that contains any.
pub(super) fn in_state(conversation: &Conversation, state: State, reading: &Reading, verb: Verb) -> Found {
    // Pods show that they crash. A deployment that is not ready counts only if no pod does.
    match select_in_state(conversation, &|objects| state.filter_exactly(objects), state, reading, verb) {
        Found::None => select_in_state(conversation, &|objects| state.filter(objects), state, reading, verb),
        found => found,
    }
}

/// Returns the objects that a filter selects from the newest answer in which it finds any.
fn select_in_state(
    conversation: &Conversation,
    filter: &dyn Fn(&[ObjectSummary]) -> Vec<ObjectSummary>,
    state: State,
    reading: &Reading,
    verb: Verb,
) -> Found {
    let mut of_all: Vec<ObjectSummary> = Vec::new();
    // "The pending ones", after a description of one: those of the list.
    let is_single = |exchange: &&Exchange| reading.each && unique(listed(exchange)).len() == 1;
    let all = conversation.earlier.iter().rev();
    for exchange in all.clone().filter(|exchange| !is_single(exchange)).chain(all.filter(is_single)) {
        let objects: Vec<ObjectSummary> = unique(listed(exchange))
            .into_iter()
            .map(|object| completed(conversation, object))
            .filter(|object| verb.is_read() || !was_deleted(conversation, object))
            .filter(|object| reading.kind.as_ref().is_none_or(|kind| object.kind == *kind || *kind != "pods"))
            .filter(|object| reading.namespace.as_ref().is_none_or(|namespace| object.namespace == *namespace))
            .collect();
        // The pods of an answer stand for it, not their workload.
        let pods: Vec<ObjectSummary> = objects.iter().filter(|object| object.kind == "pods").cloned().collect();
        let compared = if pods.is_empty() { &objects } else { &pods };
        // One object alone does not have the most restarts of several.
        if state.is_superlative() && compared.len() < 2 {
            continue;
        }
        let found = filter(compared);
        let kind = reading.kind.as_deref();
        let fitting: Vec<ObjectSummary> =
            unique(found.iter().filter_map(|object| fitting(object, verb, kind)).collect());
        if reading.asks_of_all() {
            of_all.extend(fitting);
        } else if !fitting.is_empty() {
            return Found::of(fitting);
        }
    }
    Found::of(unique(of_all))
}

/// Looks for a name among the objects of the conversation. The newest exchange that has one decides.
pub(super) fn named(conversation: &Conversation, name: &str, verb: Verb, reading: &Reading) -> Found {
    if let Some(exact) = exactly_named(conversation, name, verb, reading) {
        return exact;
    }
    for exchange in conversation.earlier.iter().rev() {
        let mut objects = subjects(exchange);
        objects.extend(listed(exchange));
        let in_namespace = objects.iter().filter(|object| {
            reading
                .namespace
                .as_ref()
                .is_none_or(|namespace| object.namespace == *namespace || object.namespace.is_empty())
        });
        let best = best_fitting(in_namespace, name, verb, reading.kind.as_deref());
        if let [only] = &best[..]
            && let Some(workloads) = workloads_like(conversation, name, verb, reading, only)
        {
            return Found::Several(workloads);
        }
        if let Some(owner) = owner_named(&best, name).filter(|_| verb.is_read() && reading.kind.is_none()) {
            return Found::One(owner);
        }
        if !best.is_empty() {
            return Found::of(best);
        }
    }
    Found::None
}

/// Returns the object that has exactly this name, even if a newer exchange has one whose name only begins with it: "telemetry" is not
/// `telemetry-archive`.
fn exactly_named(conversation: &Conversation, name: &str, verb: Verb, reading: &Reading) -> Option<Found> {
    let fits = |object: &ObjectSummary| {
        reading.namespace.as_ref().is_none_or(|namespace| object.namespace == *namespace || object.namespace.is_empty())
    };
    let exact = |exchange: &Exchange| -> Vec<ObjectSummary> {
        let mut objects = subjects(exchange);
        objects.extend(listed(exchange));
        let fitting = objects
            .iter()
            .filter(|object| fits(object))
            .filter_map(|object| fitting(object, verb, reading.kind.as_deref()));
        unique(fitting.filter(|object| object.name == name).collect())
    };
    let found = conversation.earlier.iter().rev().map(exact).find(|found| !found.is_empty())?;
    Some(Found::of(found))
}

/// Returns the workload that owns all of several pods, if it has this name.
fn owner_named(pods: &[ObjectSummary], name: &str) -> Option<ObjectSummary> {
    let first = pods.first().filter(|_| pods.len() > 1)?;
    let (kind, owner) = first.owner.clone().filter(|(_, owner)| owner == name)?;
    let is_same = |pod: &ObjectSummary| pod.owner == first.owner && pod.namespace == first.namespace;
    let owner = ObjectSummary { kind, name: owner, namespace: first.namespace.clone(), ..ObjectSummary::default() };
    pods.iter().all(is_same).then_some(owner)
}

/// Returns the workloads of the conversation whose names contain `name`, if there are several: "kafka" matches `kafka-consumer` and
/// `kafka-producer`. "The kafka pod" means the one that was spoken of last.
fn workloads_like(
    conversation: &Conversation,
    name: &str,
    verb: Verb,
    reading: &Reading,
    found: &ObjectSummary,
) -> Option<Vec<ObjectSummary>> {
    let workload = |object: &ObjectSummary| match &object.owner {
        Some((kind, name)) => ObjectSummary {
            kind: kind.clone(),
            name: name.clone(),
            namespace: object.namespace.clone(),
            ..ObjectSummary::default()
        },
        None => object.clone(),
    };
    let has_article =
        reading.words.windows(2).any(|pair| pair[1] == *name && matches!(&*pair[0], "the" | "that" | "this" | "same"));
    if has_article || reading.kind.is_some() || found.name == name || workload(found).name == name {
        return None;
    }
    let mentioned = conversation.mentioned.iter().flatten();
    let all = conversation.earlier.iter().flat_map(shown_objects).chain(mentioned);
    let all = all.filter(|object| object.namespace == found.namespace);
    let fitting = best_fitting(all, name, verb, None);
    let mut workloads: Vec<ObjectSummary> = Vec::new();
    for object in fitting {
        let of_object = workload(&object);
        if !workloads.iter().any(|known| known.name == of_object.name) {
            workloads.push(of_object);
        }
    }
    (workloads.len() > 1).then_some(workloads)
}

/// Returns the objects whose names fit best and to which the verb applies.
pub(super) fn best_fitting<'a>(
    objects: impl Iterator<Item = &'a ObjectSummary>,
    name: &str,
    verb: Verb,
    kind: Option<&str>,
) -> Vec<ObjectSummary> {
    let mut fits: Vec<(u8, ObjectSummary)> = Vec::new();
    for object in objects {
        let own = crate::cluster::likeness(&object.name, name);
        let owner = object.owner.as_ref().and_then(|(_, owner)| crate::cluster::likeness(owner, name));
        let Some(fitting) = fitting(object, verb, kind) else { continue };
        // The name of an owner counts if the owner is meant.
        let likeness = if fitting.name == object.name {
            own
        } else if fitting.kind == "nodes" {
            crate::cluster::likeness(&fitting.name, name)
        } else {
            own.max(owner).and(crate::cluster::likeness(&fitting.name, name)).or(own)
        };
        // For a change, whole words of the name must match, not any part of it.
        if let Some(likeness) = likeness.filter(|likeness| verb.is_read() || *likeness < 3) {
            // The pods of `gateway` fit "gateway" better than those of `gateway-mqtt`.
            let is_of_other = object.kind == "pods" && owner.is_some_and(|owner| owner > 0);
            fits.push((likeness * 2 + u8::from(is_of_other), fitting));
        }
    }
    let best = fits.iter().map(|(likeness, _)| *likeness).min();
    unique(fits.into_iter().filter(|(likeness, _)| Some(*likeness) == best).map(|(_, object)| object).collect())
}

/// Returns the namespace that the conversation was about last.
pub(super) fn last_namespace(conversation: &Conversation) -> Option<String> {
    conversation.earlier.iter().rev().find_map(|exchange| {
        // "For the next questions always use namespace staging".
        let said: Vec<String> = exchange.said.to_lowercase().split_whitespace().map(str::to_owned).collect();
        // "I look after growth": a statement with a namespace.
        if exchange.steps.is_empty() && exchange.requested.is_empty() && !exchange.asked {
            let clean = |word: &String| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '-').to_owned();
            let words: Vec<String> = said.iter().map(clean).collect();
            let mut named = conversation.namespaces.iter().filter(|name| *name != "default" && words.contains(name));
            if let (Some(only), None) = (named.next(), named.next()) {
                return Some(only.clone());
            }
        }
        let chooses =
            said.iter().any(|word| matches!(&**word, "use" | "stay" | "stick" | "switch" | "work" | "assume"));
        if chooses
            && exchange.steps.is_empty()
            && exchange.requested.is_empty()
            && said.iter().any(|word| word == "namespace")
        {
            let known = conversation.namespaces.iter().find(|name| said.contains(name)).cloned();
            if known.is_some() {
                return known;
            }
        }
        // "What pods are in there?" after a request for a namespace itself.
        let of_command = |command: &Command| match command.kind.as_deref() {
            Some("namespaces") => command.name.clone(),
            _ => command.namespace.clone(),
        };
        let requested = exchange.requested.iter().filter_map(|requested| of_command(&requested.command));
        let read = exchange.steps.iter().rev().filter_map(|step| {
            let command = step.outcome.as_ref().map_or(&step.command, |outcome| &outcome.command);
            of_command(command)
        });
        requested.chain(read).next()
    })
}

/// Returns the lists of the most recent exchange that has any.
pub(super) fn last_lists(conversation: &Conversation) -> Vec<Command> {
    let lists = |exchange: &Exchange| -> Vec<Command> {
        let is_list = |command: &Command| command.verb == Verb::Get && command.name.is_none();
        let steps = exchange.steps.iter().filter(|step| is_list(&step.command));
        steps.map(|step| step.outcome.as_ref().map_or(&step.command, |outcome| &outcome.command).clone()).collect()
    };
    conversation.earlier.iter().rev().map(lists).find(|lists| !lists.is_empty()).unwrap_or_default()
}

/// Returns the most recent read commands, without searches.
pub(super) fn last_reads(conversation: &Conversation) -> Vec<Command> {
    let reads = |exchange: &Exchange| -> Vec<Command> {
        let steps = exchange.steps.iter().filter(|step| step.command.verb.is_read() && step.command.verb != Verb::Find);
        steps.map(|step| step.outcome.as_ref().map_or(&step.command, |outcome| &outcome.command).clone()).collect()
    };
    conversation.earlier.iter().rev().map(reads).find(|reads| !reads.is_empty()).unwrap_or_default()
}
