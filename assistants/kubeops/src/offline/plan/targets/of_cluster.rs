//! Objects that no earlier answer shows, so the cluster is read to find them.

use crate::cluster::ObjectSummary;
use crate::command::Verb;
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Reading, State};

use super::super::{Next, Planner, reply};
use super::Targets;

impl Planner<'_> {
    /// "Its deployment", about a pod that no workload owns.
    pub(super) fn has_no_owner(&self) -> Option<String> {
        let reading = &self.reading;
        let kind = reading.kind.as_deref().filter(|kind| crate::kinds::WORKLOADS.contains(kind))?;
        let is_its = reading
            .words
            .windows(2)
            .any(|pair| pair[0] == "its" && crate::kinds::kind_word(&pair[1]).is_some_and(|own| own.plural == kind));
        let Found::One(pod) = refer::focus(self.conversation, Verb::Describe, None, None) else { return None };
        let is_alone = pod.kind == "pods" && pod.owner.is_none() && !pod.state.is_empty();
        (is_its && is_alone && reading.names.is_empty())
            .then(|| format!("Pod {} has no owner, so there is no such deployment. Which one do you mean?", pod.name))
    }

    /// "Delete the crashing pod", before any list was shown: reads the pods with problems.
    pub(in crate::offline::plan) fn in_state_of_cluster(&self, state: State, verb: Verb) -> Option<Targets> {
        let is_problem = !matches!(state, State::Healthy | State::Completed | State::Cordoned | State::NotReady)
            && !matches!(state, State::MostReplicas | State::LeastReplicas | State::Most | State::Least);
        if let State::Replicas(_) = state {
            return self.with_replicas(state, verb);
        }
        if !is_problem || !matches!(self.reading.kind.as_deref(), None | Some("pods")) {
            return None;
        }
        let read = self.conversation.steps.iter().find(|step| step.command.verb == Verb::Get);
        let Some(read) = read else {
            let unhealthy = !state.is_superlative()
                && !matches!(state, State::MoreRestarts(_) | State::Restarted(_) | State::Count(_));
            let reading = Reading { kind: Some("pods".to_owned()), unhealthy, ..self.reading.clone() };
            let list = Planner { reading, ..*self }.list_command(Verb::Get);
            return Some(Targets::Then(Next::Run(vec![list])));
        };
        let objects = read.outcome.as_ref().map_or(&[][..], |outcome| &outcome.objects);
        let fitting = state
            .filter(objects)
            .iter()
            .filter_map(|object| refer::fitting(object, verb, self.reading.kind.as_deref()))
            .collect();
        Some(self.found(Found::of(fitting), verb))
    }

    /// "The one with 4 replicas", if no list of the conversation has one: reads the workloads of the namespace.
    pub(in crate::offline::plan) fn with_replicas(&self, state: State, verb: Verb) -> Option<Targets> {
        let kind = self.reading.kind.clone().unwrap_or_else(|| "deployments".to_owned());
        let Some(read) = self.conversation.steps.iter().find(|step| step.command.verb == Verb::Get) else {
            let reading = Reading { kind: Some(kind), unhealthy: false, names: Vec::new(), ..self.reading.clone() };
            return Some(Targets::Then(Next::Run(vec![Planner { reading, ..*self }.list_command(Verb::Get)])));
        };
        let objects = read.outcome.as_ref().map_or(&[][..], |outcome| &outcome.objects);
        let fitting = state.filter(objects).iter().filter_map(|object| refer::fitting(object, verb, None)).collect();
        Some(match Found::of(fitting) {
            Found::None => Targets::Then(reply(answers::ask_what(verb))),
            found => self.found(found, verb),
        })
    }

    /// "And the other pod in there", before a list showed it: reads the objects of the kind.
    pub(in crate::offline::plan) fn other_of_cluster(&self, verb: Verb) -> Option<Targets> {
        let currents = refer::spoken_of_now(self.conversation);
        let current = currents.first()?;
        let kind = self.reading.kind.clone().unwrap_or_else(|| current.kind.clone());
        let Some(read) = self.conversation.steps.iter().find(|step| step.command.verb == Verb::Get) else {
            let reading = Reading {
                kind: Some(kind),
                namespace: Some(current.namespace.clone()),
                names: Vec::new(),
                unhealthy: false,
                ..self.reading.clone()
            };
            let list = Planner { reading, ..*self }.list_command(Verb::Get);
            return Some(Targets::Then(Next::Run(vec![list])));
        };
        let objects = read.outcome.as_ref().map_or(&[][..], |outcome| &outcome.objects);
        let is_meant = |object: &&ObjectSummary| {
            let is_named = |name: &String| crate::cluster::likeness(&object.name, name).is_some_and(|fit| fit < 3);
            currents.iter().all(|current| object.name != current.name) && self.reading.names.iter().all(is_named)
        };
        let others = objects.iter().filter(is_meant).filter_map(|object| refer::fitting(object, verb, None)).collect();
        Some(self.found(Found::of(others), verb))
    }

    /// "Describe its pod": the pods of the workload that was spoken of.
    pub(in crate::offline::plan) fn pods_of_focus(&self, verb: Verb) -> Found {
        let reading = &self.reading;
        let is_meant = reading.kind.as_deref() == Some("pods")
            && !reading.is_plural
            && verb != Verb::Get
            && (reading.says("its pod") || reading.says("its only pod"));
        let focus = refer::focus(self.conversation, Verb::Describe, None, None);
        let Found::One(workload) = focus else { return Found::None };
        let is_part = |object: &&ObjectSummary| {
            let is_owner = |(kind, name): &(String, String)| (kind, name) == (&workload.kind, &workload.name);
            object.namespace == workload.namespace && object.owner.as_ref().is_some_and(is_owner)
        };
        let known = self.conversation.mentioned.iter().flatten().filter(|_| is_meant);
        Found::of(known.filter(is_part).filter_map(|pod| refer::fitting(pod, verb, Some("pods"))).collect())
    }

    /// "The analytics deployment": a namespace as the name, if nothing else is called so, for the only object of the kind there.
    pub(in crate::offline::plan) fn of_place(&self, verb: Verb) -> Option<Targets> {
        let reading = &self.reading;
        let [name] = &reading.names[..] else { return None };
        let kind = reading.kind.as_deref().filter(|_| reading.namespace.is_none())?;
        let is_place = self.conversation.namespaces.contains(name);
        if !is_place || refer::known(self.conversation, name, verb, reading) != Found::None {
            return None;
        }
        let there = Reading {
            names: Vec::new(),
            namespace: Some(name.clone()),
            kind: Some(kind.to_owned()),
            unhealthy: false,
            ..reading.clone()
        };
        Some(Planner { reading: there, ..*self }.only_one(verb))
    }

    /// "Describe the one in netops-dr": the object of the same name in the namespace that the message names.
    pub(in crate::offline::plan) fn twin_in_place(&self, verb: Verb) -> Option<ObjectSummary> {
        let reading = &self.reading;
        let place = reading.namespace.as_ref().filter(|_| reading.says("the one in") || reading.says("that one in"))?;
        let Found::One(object) = refer::focus(self.conversation, Verb::Describe, None, None) else { return None };
        let there = Reading { kind: Some(object.kind.clone()), ..reading.clone() };
        match refer::known(self.conversation, &object.name, verb, &there) {
            Found::One(twin) if twin.namespace == *place => Some(twin),
            _ => None,
        }
    }

    /// Uses the only object of a kind in a namespace.
    pub(in crate::offline::plan) fn only_one(&self, verb: Verb) -> Targets {
        let read = self.conversation.steps.iter().find(|step| step.command.verb == Verb::Get);
        let Some(read) = read else { return Targets::Then(Next::Run(vec![self.list_command(Verb::Get)])) };
        let objects = read.outcome.as_ref().map(|outcome| outcome.objects.clone()).unwrap_or_default();
        self.found(Found::of(objects), verb)
    }
}
