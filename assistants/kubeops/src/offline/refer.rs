//! What words refer to: objects of earlier answers and requests.

use crate::cluster::{Outcome, Shown};
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Exchange, Step};
use crate::kinds::{Kind, SCALABLE, WORKLOADS};

use super::words::{Pick, Reading};

/// The result of looking for an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Found {
    One(Shown),
    Several(Vec<Shown>),
    None,
}

impl Found {
    pub(super) fn of(mut objects: Vec<Shown>) -> Self {
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
pub(super) fn fitting(object: &Shown, verb: Verb, kind: Option<&str>) -> Option<Shown> {
    let is_named = |object: &Shown| kind.is_none_or(|kind| kind == object.kind);
    let fits = |object: &Shown| kinds_of(verb).is_none_or(|kinds| kinds.contains(&&*object.kind));
    if fits(object) && is_named(object) {
        return Some(object.clone());
    }
    let (owner_kind, owner) = object.owner.clone()?;
    let of_owner = Shown { kind: owner_kind, name: owner, namespace: object.namespace.clone(), ..Shown::default() };
    // "Restart the nginx pod" names the pod, and means its workload.
    let may_stand_for_owner = is_named(&of_owner) || kind == Some("pods");
    (fits(&of_owner) && !fits(object) && may_stand_for_owner || fits(&of_owner) && kind == Some(&*of_owner.kind))
        .then_some(of_owner)
}

fn unique(objects: Vec<Shown>) -> Vec<Shown> {
    let mut found: Vec<Shown> = Vec::new();
    for object in objects {
        let is_known = found.iter().any(|known| {
            (&known.kind, &known.name, &known.namespace) == (&object.kind, &object.name, &object.namespace)
        });
        if !is_known {
            found.push(object);
        }
    }
    found
}

/// Returns the object of a command.
fn of_command(command: &Command, objects: &[Shown]) -> Option<Shown> {
    let name = command.name.clone()?;
    let kind = Kind::find(command.kind.as_deref()?)?.plural;
    let found = objects.iter().find(|object| object.name == name && object.kind == kind);
    let namespace = command.namespace.clone().unwrap_or_default();
    Some(found.cloned().unwrap_or(Shown { kind, name, namespace, ..Shown::default() }))
}

fn outcome_of(step: &Step) -> Option<&Outcome> {
    step.outcome.as_ref()
}

/// Returns the objects that an exchange was about: those that it named, or else those that it listed.
pub(super) fn subjects(exchange: &Exchange) -> Vec<Shown> {
    let requested: Vec<Shown> =
        exchange.requested.iter().filter_map(|requested| of_command(&requested.command, &[])).collect();
    if !requested.is_empty() {
        return unique(requested);
    }
    let steps = exchange.steps.iter().filter(|step| step.command.verb != Verb::Find);
    let named: Vec<Shown> = steps
        .filter_map(|step| {
            let outcome = outcome_of(step);
            let command = outcome.map_or(&step.command, |outcome| &outcome.command);
            of_command(command, outcome.map_or(&[], |outcome| &outcome.objects))
        })
        .collect();
    if !named.is_empty() {
        return unique(named);
    }
    unique(listed(exchange))
}

/// Returns the objects that an exchange listed, in the order of the list. Results of a search count only if the user was asked
/// about them; otherwise no one saw them.
pub(super) fn listed(exchange: &Exchange) -> Vec<Shown> {
    if !exchange.offered.is_empty() {
        return exchange.offered.clone();
    }
    let steps = exchange.steps.iter().filter(|step| (step.command.verb == Verb::Find) == exchange.asked);
    steps.filter_map(outcome_of).flat_map(|outcome| outcome.objects.clone()).collect()
}

/// Returns all objects that the results of an exchange have.
pub(super) fn shown(exchange: &Exchange) -> impl Iterator<Item = &Shown> {
    exchange.steps.iter().filter_map(outcome_of).flat_map(|outcome| &outcome.objects)
}

/// Returns the object that "it" stands for: that of the newest exchange that was about objects to which the verb applies.
pub(super) fn focus(conversation: &Conversation, verb: Verb, kind: Option<&str>, namespace: Option<&str>) -> Found {
    for exchange in conversation.earlier.iter().rev() {
        let subjects =
            subjects(exchange).into_iter().filter(|object| namespace.is_none_or(|name| object.namespace == name));
        let fitting: Vec<Shown> = unique(subjects.filter_map(|object| fitting(&object, verb, kind)).collect());
        if !fitting.is_empty() {
            return Found::of(fitting);
        }
    }
    Found::None
}

/// Returns one of the objects of the newest list.
pub(super) fn picked(conversation: &Conversation, pick: Pick, reading: &Reading, verb: Verb) -> Found {
    let lists = conversation.earlier.iter().rev().map(|exchange| unique(listed(exchange)));
    let of_kind = |objects: Vec<Shown>| -> Vec<Shown> {
        let kind = reading.kind.as_deref();
        objects.into_iter().filter(|object| kind.is_none_or(|kind| kind == object.kind)).collect()
    };
    let Some(mut list) = lists.map(of_kind).find(|list| list.len() > 1) else { return Found::None };
    if reading.unhealthy && list.iter().any(|object| object.is_unhealthy) {
        list.retain(|object| object.is_unhealthy);
    }
    let found = match pick {
        Pick::At(at) => list.get(at).cloned(),
        Pick::Last => list.last().cloned(),
        Pick::Other => {
            let Found::One(current) = focus(conversation, Verb::Describe, None, None) else {
                return Found::Several(list);
            };
            let others: Vec<Shown> = list.into_iter().filter(|object| object.name != current.name).collect();
            return Found::of(others.iter().filter_map(|object| fitting(object, verb, None)).collect());
        }
    };
    Found::of(found.iter().filter_map(|object| fitting(object, verb, None)).collect())
}

/// Returns the objects of the newest list that are not healthy: "the crashing one".
pub(super) fn unhealthy(conversation: &Conversation, reading: &Reading, verb: Verb) -> Found {
    let fits = |object: &Shown| {
        object.is_unhealthy
            && reading.kind.as_ref().is_none_or(|kind| object.kind == *kind)
            && reading.namespace.as_ref().is_none_or(|namespace| object.namespace == *namespace)
    };
    let lists = conversation.earlier.iter().rev().map(|exchange| unique(listed(exchange)));
    let unhealthy = lists.map(|list| list.into_iter().filter(&fits).collect::<Vec<_>>()).find(|list| !list.is_empty());
    let fitting = unhealthy.iter().flatten().filter_map(|object| fitting(object, verb, None)).collect();
    Found::of(unique(fitting))
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
    let fits = |object: &Shown| {
        reading.namespace.as_ref().is_none_or(|namespace| object.namespace == *namespace || object.namespace.is_empty())
    };
    let exact = |exchange: &Exchange| -> Vec<Shown> {
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
fn owner_named(pods: &[Shown], name: &str) -> Option<Shown> {
    let first = pods.first().filter(|_| pods.len() > 1)?;
    let (kind, owner) = first.owner.clone().filter(|(_, owner)| owner == name)?;
    let is_same = |pod: &Shown| pod.owner == first.owner && pod.namespace == first.namespace;
    let owner = Shown { kind, name: owner, namespace: first.namespace.clone(), ..Shown::default() };
    pods.iter().all(is_same).then_some(owner)
}

/// Returns the workloads of the conversation that a part of a name fits, if there are several: "kafka" fits `kafka-consumer` and
/// `kafka-producer`. "The kafka pod" means the one that was spoken of last.
fn workloads_like(
    conversation: &Conversation,
    name: &str,
    verb: Verb,
    reading: &Reading,
    found: &Shown,
) -> Option<Vec<Shown>> {
    let workload = |object: &Shown| match &object.owner {
        Some((kind, name)) => {
            Shown { kind: kind.clone(), name: name.clone(), namespace: object.namespace.clone(), ..Shown::default() }
        }
        None => object.clone(),
    };
    let has_article =
        reading.words.windows(2).any(|pair| pair[1] == *name && matches!(&*pair[0], "the" | "that" | "this" | "same"));
    if has_article || reading.kind.is_some() || found.name == name || workload(found).name == name {
        return None;
    }
    let all = conversation.earlier.iter().flat_map(shown).filter(|object| object.namespace == found.namespace);
    let fitting = best_fitting(all, name, verb, None);
    let mut workloads: Vec<Shown> = Vec::new();
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
    objects: impl Iterator<Item = &'a Shown>,
    name: &str,
    verb: Verb,
    kind: Option<&str>,
) -> Vec<Shown> {
    let mut fits: Vec<(u8, Shown)> = Vec::new();
    for object in objects {
        let own = crate::cluster::likeness(&object.name, name);
        let owner = object.owner.as_ref().and_then(|(_, owner)| crate::cluster::likeness(owner, name));
        let Some(fitting) = fitting(object, verb, kind) else { continue };
        // The name of an owner counts if the owner is meant.
        let likeness = if fitting.name == object.name {
            own
        } else {
            own.max(owner).and(crate::cluster::likeness(&fitting.name, name)).or(own)
        };
        // A change needs a word of the name, not any part of it.
        if let Some(likeness) = likeness.filter(|likeness| verb.is_read() || *likeness < 3) {
            fits.push((likeness, fitting));
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
        let requested = exchange.requested.iter().filter_map(|requested| requested.command.namespace.clone());
        let read = exchange.steps.iter().rev().filter_map(|step| {
            let command = step.outcome.as_ref().map_or(&step.command, |outcome| &outcome.command);
            command.namespace.clone()
        });
        requested.chain(read).next()
    })
}

/// Returns the newest commands that read, without searches.
pub(super) fn last_reads(conversation: &Conversation) -> Vec<Command> {
    let reads = |exchange: &Exchange| -> Vec<Command> {
        let steps = exchange.steps.iter().filter(|step| step.command.verb.is_read() && step.command.verb != Verb::Find);
        steps.map(|step| step.outcome.as_ref().map_or(&step.command, |outcome| &outcome.command).clone()).collect()
    };
    conversation.earlier.iter().rev().map(reads).find(|reads| !reads.is_empty()).unwrap_or_default()
}
