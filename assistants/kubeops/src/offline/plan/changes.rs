//! Commands with their objects and values.

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Lexicon, Reading, Replicas, read};

use super::images::{inverse, named_container, with_version};
use super::targets::Targets;
use super::{Next, Planner, reply};

impl Planner<'_> {
    pub(super) fn of_verb(&self, verb: Verb) -> Next {
        if verb == Verb::Scale
            && let Some(reading) = self.as_another()
        {
            return Planner { reading, ..*self }.of_verb(verb);
        }
        if verb == Verb::Scale && self.reading.replicas.is_none() && !self.is_relative() {
            let is_negative = |word: &String| word.strip_prefix('-').is_some_and(|rest| rest.parse::<u32>().is_ok());
            if self.reading.words.iter().any(is_negative) {
                return reply("A number of replicas cannot be negative, so I requested nothing. To how many replicas?");
            }
            return reply("To how many replicas?");
        }
        if verb == Verb::Scale && self.multiplies_limit() {
            return reply(
                "Do you mean the limit or the replicas? Please say the amount, for example 512Mi of memory. To how much?",
            );
        }
        if verb == Verb::SetResources && self.reading.limits.is_empty() && self.reading.requests.is_empty() {
            return reply("Please say the amount, for example 512Mi of memory or 500m of CPU. To how much?");
        }
        if verb == Verb::SetImage && self.reading.image.is_none() && self.reading.version.is_none() {
            return reply("Which image?");
        }
        // "Carry on" means a rollout only if one was paused here.
        if verb == Verb::RolloutResume
            && !self.reading.has_any(&["resume", "unpause", "rollout", "unfreeze"])
            && !self.has_paused()
        {
            return reply(answers::NOT_UNDERSTOOD);
        }
        if verb == Verb::RolloutUndo
            && let Some(next) = self.undo_of_another_change()
        {
            return next;
        }
        // "Is api using a lot of memory?": the usage of the pods of its namespace.
        if verb == Verb::Top && self.reading.kind.as_deref() != Some("nodes") && !self.reading.names.is_empty() {
            let named = refer::known(self.conversation, &self.reading.names[0], Verb::Describe, &self.reading);
            let namespace = match named {
                Found::One(object) => Some(object.namespace),
                Found::Several(objects) => objects.first().map(|object| object.namespace.clone()),
                Found::None => None,
            };
            if let Some(namespace) = namespace.filter(|namespace| !namespace.is_empty()) {
                let pods = Some("pods".to_owned());
                return Next::Run(vec![Command { kind: pods, namespace: Some(namespace), ..Command::new(verb) }]);
            }
        }
        let objects = match self.targets(verb) {
            Targets::Objects(objects) => objects,
            // "How many fetchers are there": the pods, and their workload.
            Targets::List if verb == Verb::Get && self.reading.names_several && self.reading.names.len() == 1 => {
                let mut commands = vec![self.list_command(verb)];
                if let Found::One(object) =
                    refer::known(self.conversation, &self.reading.names[0], Verb::RolloutStatus, &self.reading)
                {
                    commands[0].namespace = Some(object.namespace.clone());
                    commands[0].all_namespaces = false;
                    commands.push(self.command(Verb::Get, &object));
                }
                return Next::Run(commands);
            }
            // Only objects that are named can be described.
            Targets::List => {
                let verb = if verb == Verb::Describe { Verb::Get } else { verb };
                return Next::Run(vec![self.list_command(verb)]);
            }
            Targets::Then(next) => return next,
        };
        // What was deleted cannot be shown: the list says what is there instead.
        if matches!(verb, Verb::Get | Verb::Describe)
            && let [object] = &objects[..]
            && refer::was_deleted(self.conversation, object)
        {
            let namespace = (!object.namespace.is_empty()).then(|| object.namespace.clone());
            let list = Command { kind: Some(object.kind.clone()), namespace, ..Command::new(Verb::Get) };
            return match self.run_or_answer(vec![list]) {
                Next::Reply(text) => reply(format!("{} is gone: it was deleted.\n{text}", object.name)),
                run @ Next::Run(_) => run,
            };
        }
        if verb == Verb::Scale
            && let Some(next) = self.read_replicas(&objects)
        {
            return next;
        }
        if verb == Verb::SetImage
            && let Some(next) = self.read_images(&objects)
        {
            return next;
        }
        Next::Run(objects.iter().map(|object| self.command(verb, object)).collect())
    }

    /// Reads the current images, if only a version is wanted: "roll out 1.9.0".
    pub(super) fn read_images(&self, objects: &[ObjectSummary]) -> Option<Next> {
        let is_read = self.conversation.steps.iter().any(|step| step.command.verb == Verb::Get);
        if self.reading.image.is_some() || is_read {
            return None;
        }
        Some(Next::Run(objects.iter().map(|object| self.command(Verb::Get, object)).collect()))
    }

    /// Returns the image with the wanted version.
    pub(super) fn image_of(&self, object: &ObjectSummary) -> Option<String> {
        if self.reading.image.is_some() {
            return self.reading.image.clone();
        }
        let outcomes = self.conversation.steps.iter().filter_map(|step| step.outcome.as_ref());
        let mut read = outcomes.flat_map(|outcome| &outcome.objects).filter(|read| read.name == object.name);
        let current = read.next_back()?.image.clone();
        Some(with_version(&current, self.reading.version.as_deref()?))
    }

    /// "Undo that", "put both back to what they were": reverts the changes of this conversation that a rollback does not undo.
    pub(super) fn undo_of_another_change(&self) -> Option<Next> {
        let reading = &self.reading;
        let is_meant = reading.names.is_empty() && reading.kind.is_none();
        // "Bring node-b back".
        if let [name] = &reading.names[..]
            && let Found::One(node) = refer::known(self.conversation, name, Verb::Uncordon, reading)
        {
            return Some(Next::Run(vec![self.command(Verb::Uncordon, &node)]));
        }
        let is_rollback = reading.revision.is_some()
            || ["roll back", "rollback", "revision", "rollout undo"].iter().any(|phrase| reading.says(phrase));
        if is_rollback && !is_meant {
            return None;
        }
        let steps = self.conversation.earlier.iter().rev().flat_map(|exchange| exchange.steps.iter().rev());
        let done: Vec<&Command> = steps
            .filter(|step| !step.command.verb.is_read() && step.outcome.is_some())
            .map(|step| &step.command)
            .filter(|command| self.is_of_message(command))
            .collect();
        if reading.each || reading.has("both") {
            let mut undone: Vec<&Command> = Vec::new();
            for command in &done {
                let is_known = undone.iter().any(|other| {
                    (&other.kind, &other.name, &other.namespace) == (&command.kind, &command.name, &command.namespace)
                });
                if !is_known {
                    undone.push(command);
                }
            }
            let most = if reading.has("both") { 2 } else { 3 };
            let inverses: Vec<Command> = undone.into_iter().take(most).filter_map(inverse).collect();
            if inverses.len() > 1 {
                return Some(Next::Run(inverses.into_iter().rev().collect()));
            }
        }
        let (_, requested, step) = answers::last_change(self.conversation)?;
        let last = step.map(|step| &step.command).or(requested.map(|requested| &requested.command))?;
        let is_rollout = matches!(
            last.verb,
            Verb::SetImage | Verb::SetResources | Verb::SetEnv | Verb::RolloutRestart | Verb::RolloutUndo | Verb::Apply
        );
        let was_done = step.is_some_and(|step| step.outcome.is_some());
        if is_meant
            && was_done
            && self.is_of_message(last)
            && let Some(inverse) = inverse(last)
        {
            return Some(Next::Run(vec![inverse]));
        }
        // "Us was a mistake, put it back to what it was".
        if !is_rollback && let Some(inverse) = done.first().and_then(|command| inverse(command)) {
            return Some(Next::Run(vec![inverse]));
        }
        let text =
            format!("The last change was `{}`, which a rollback does not undo. What do you want instead?", last.line());
        (is_meant && !is_rollout && !is_rollback).then(|| reply(text))
    }

    /// "Scale it to the same number as web", "scale the one in east to as many as west has": with the number of replicas of another
    /// object, or of the same one in another namespace. `None` for other messages.
    fn as_another(&self) -> Option<Reading> {
        let reading = &self.reading;
        let words = &reading.words;
        let is_same = reading.has("same") && reading.has_any(&["number", "count", "amount", "size", "replicas"]);
        let at = words.iter().rposition(|word| word == "as").filter(|_| reading.replicas.is_none())?;
        let is_filler = |word: &&String| {
            matches!(&***word, "many" | "big" | "the" | "its" | "replicas" | "copies" | "in" | "instances")
        };
        let other = words[at + 1..].iter().find(|word| !is_filler(word))?;
        if !is_same && !reading.says("as many") && !reading.says("as big") {
            return None;
        }
        // "As many as the statefulset has": the one that was spoken of.
        let of_kind = crate::kinds::kind_word(other).map(|kind| kind.plural);
        let named = match of_kind.map(|kind| refer::focus(self.conversation, Verb::Describe, Some(&kind), None)) {
            Some(Found::One(object)) => object.name,
            Some(_) => return None,
            None => other.clone(),
        };
        let is_place = self.conversation.namespaces.contains(other);
        let without = Reading {
            names: reading.names.iter().filter(|name| *name != other).cloned().collect(),
            namespace: reading.namespace.clone().filter(|namespace| namespace != other),
            words: words[..at].to_vec(),
            kind: reading.kind.clone().filter(|_| named == *other),
            ..reading.clone()
        };
        let kind = without.kind.as_deref();
        let place = words[..at].iter().find(|word| self.conversation.namespaces.contains(word)).cloned();
        let focus = || match refer::focus(self.conversation, Verb::Scale, kind, None) {
            Found::One(object) => Some((object.name, Some(object.namespace).filter(|own| own != other))),
            Found::Several(twins) if twins.iter().all(|twin| twin.name == twins[0].name) => {
                Some((twins[0].name.clone(), None))
            }
            _ => None,
        };
        let (name, focus_place) = without.names.first().map(|name| (name.clone(), None)).or_else(focus)?;
        let shown = self.conversation.earlier.iter().rev().flat_map(refer::shown_objects);
        let mut known = shown.chain(self.conversation.mentioned.iter().flatten());
        let replicas = known.find(|object| {
            let is_meant =
                if is_place { object.name == name && object.namespace == *other } else { object.name == named };
            is_meant && object.replicas.is_some()
        })?;
        let count = u32::try_from(replicas.replicas?).ok()?;
        if !is_place && name == named {
            return None;
        }
        let names = if is_place || !without.names.is_empty() { vec![name] } else { without.names.clone() };
        let pronoun = names.is_empty();
        Some(Reading {
            replicas: Some(Replicas::To(count)),
            names,
            pronoun,
            namespace: place.or(focus_place).or(without.namespace.clone()),
            pick: None,
            ..without
        })
    }

    /// "Double it", after a question about a limit: not the number of replicas.
    fn multiplies_limit(&self) -> bool {
        let is_multiple = matches!(self.reading.replicas, Some(Replicas::Times(_) | Replicas::Half));
        let names_replicas = self.reading.has_any(&["replicas", "copies", "instances", "scale", "pods"]);
        let said = self.conversation.earlier.last().map(|last| read(&last.said, &Lexicon::of(self.conversation)));
        let asked_limit = said.is_some_and(|said| {
            said.has_any(&["limit", "limits", "memory", "mem", "ram", "cpu", "request", "requests"])
        });
        is_multiple && !names_replicas && asked_limit
    }

    /// Whether a command is about what the message names, if it names something.
    fn is_of_message(&self, command: &Command) -> bool {
        let reading = &self.reading;
        let name = command.name.as_deref().unwrap_or_default();
        let is_named = reading.names.is_empty()
            || reading.names.iter().any(|own| crate::cluster::likeness(name, own).is_some_and(|fit| fit < 3));
        is_named && (reading.namespace.is_none() || reading.namespace == command.namespace)
    }

    fn has_paused(&self) -> bool {
        let steps = self.conversation.earlier.iter().flat_map(|exchange| &exchange.steps);
        steps.filter(|step| step.outcome.is_some()).any(|step| step.command.verb == Verb::RolloutPause)
    }

    pub(super) fn is_relative(&self) -> bool {
        self.reading.has_any(&["up", "down"])
    }

    /// Reads the current number of replicas, if the wanted one depends on it.
    pub(super) fn read_replicas(&self, objects: &[ObjectSummary]) -> Option<Next> {
        match self.reading.replicas {
            Some(Replicas::To(_)) => return None,
            // The conversation shows the number.
            Some(Replicas::Same(_) | Replicas::Before)
                if objects.iter().all(|object| self.replicas_of(object).is_some()) =>
            {
                return None;
            }
            None | Some(Replicas::Same(_) | Replicas::Before) => return Some(reply("To how many replicas?")),
            Some(Replicas::By(_) | Replicas::Times(_) | Replicas::Half) => {}
        }
        let is_read = self.conversation.steps.iter().any(|step| step.command.verb == Verb::Get);
        if is_read {
            return None;
        }
        let get = |object: &ObjectSummary| self.command(Verb::Get, object);
        Some(Next::Run(objects.iter().map(get).collect()))
    }

    pub(super) fn command(&self, verb: Verb, object: &ObjectSummary) -> Command {
        let reading = &self.reading;
        let namespace = (!object.namespace.is_empty()).then(|| object.namespace.clone());
        let base = Command::new(verb).on(&object.kind, &object.name, namespace.as_deref());
        match verb {
            Verb::Logs => Command {
                tail: reading
                    .tail
                    .map(|tail| tail.clamp(1, crate::command::MAX_TAIL))
                    .or_else(|| self.same_logs()?.tail),
                previous: reading.previous || self.same_logs().is_some_and(|logs| logs.previous),
                since_seconds: reading.since_seconds,
                container: reading.container.clone().or_else(|| named_container(object, &reading.words)),
                ..base
            },
            Verb::Scale => Command { replicas: self.replicas_of(object), ..base },
            Verb::SetImage => Command { image: self.image_of(object), container: reading.container.clone(), ..base },
            Verb::SetResources => Command {
                limits: reading.limits.clone(),
                requests: reading.requests.clone(),
                container: reading.container.clone(),
                ..base
            },
            Verb::SetEnv | Verb::Label | Verb::Annotate => Command { values: reading.values.clone(), ..base },
            Verb::RolloutUndo => Command { revision: reading.revision, ..base },
            Verb::Exec => Command { program: reading.program.clone(), container: reading.container.clone(), ..base },
            Verb::Get => Command { as_yaml: reading.as_yaml, ..base },
            _ => base,
        }
    }

    /// "Same for the other pod", "and those of the other", after logs: the command, whose options count again.
    fn same_logs(&self) -> Option<Command> {
        // "And the one in between?"
        let continues = self.reading.verb.is_none() && self.reading.has("and") && self.is_after_logs();
        let is_same =
            continues || self.reading.has_any(&["same", "likewise", "ditto"]) || self.reading.says("those of");
        refer::last_reads(self.conversation).into_iter().find(|read| is_same && read.verb == Verb::Logs)
    }

    fn is_after_logs(&self) -> bool {
        let last = self.conversation.earlier.last();
        last.is_some_and(|last| last.steps.iter().any(|step| step.command.verb == Verb::Logs))
    }

    pub(super) fn replicas_of(&self, object: &ObjectSummary) -> Option<u32> {
        let current = || {
            let outcomes = self.conversation.steps.iter().filter_map(|step| step.outcome.as_ref());
            let objects = outcomes.flat_map(|outcome| &outcome.objects).filter(|read| read.name == object.name);
            objects.filter_map(|read| read.replicas).next_back().and_then(|count| u32::try_from(count).ok())
        };
        match self.reading.replicas? {
            Replicas::To(number) => Some(number),
            relative @ (Replicas::By(_) | Replicas::Times(_) | Replicas::Half) => relative.of(current()?),
            same @ Replicas::Same(_) => same.of(self.replicas_requested_last()?),
            Replicas::Before => self.replicas_before(object),
        }
    }

    /// Returns the number of replicas that the newest request for a scaling asked for.
    fn replicas_requested_last(&self) -> Option<u32> {
        let is_scale = |command: &&Command| command.verb == Verb::Scale;
        let newest_first = self.conversation.earlier.iter().rev().flat_map(|exchange| {
            let requested = exchange.requested.iter().rev().map(|requested| &requested.command);
            requested.chain(exchange.steps.iter().rev().map(|step| &step.command))
        });
        newest_first.filter(is_scale).find_map(|command| command.replicas)
    }

    /// Returns the number of replicas that an object had before the last change that was carried out, if that was a scaling.
    fn replicas_before(&self, object: &ObjectSummary) -> Option<u32> {
        let is_of_object = |command: &Command| {
            command.name.as_ref() == Some(&object.name)
                && command.namespace.clone().unwrap_or_default() == object.namespace
        };
        let steps = self.conversation.earlier.iter().rev().flat_map(|exchange| exchange.steps.iter().rev());
        let mut scaled = steps
            .filter(|step| step.command.verb == Verb::Scale && step.outcome.is_some() && is_of_object(&step.command));
        inverse(&scaled.next()?.command)?.replicas
    }

    pub(super) fn list_command(&self, verb: Verb) -> Command {
        let reading = &self.reading;
        let kind = reading.kind.clone().or_else(|| (verb != Verb::Events).then(|| "pods".to_owned()));
        let namespace = reading
            .namespace
            .clone()
            .or_else(|| refer::last_namespace(self.conversation))
            .filter(|_| !reading.all_namespaces);
        let all = reading.all_namespaces || (namespace.is_none() && reading.unhealthy);
        // "List its pods".
        let of_it =
            ["its pods", "their pods", "its replicas", "its instances"].iter().any(|phrase| reading.says(phrase));
        let owner = match refer::focus(self.conversation, Verb::RolloutStatus, None, None) {
            Found::One(owner) if of_it && reading.names.is_empty() && verb == Verb::Get => Some(owner),
            _ => None,
        };
        let namespace = owner.as_ref().map(|owner| owner.namespace.clone()).or(namespace);
        // "Any failing pods" asks for the failing ones; "pods with their problems" does not exist.
        let unhealthy = verb == Verb::Get && reading.unhealthy;
        Command {
            kind,
            namespace: namespace
                .or_else(|| (!all).then(|| self.conversation.default_namespace.clone()))
                .filter(|name| !name.is_empty()),
            all_namespaces: all,
            unhealthy,
            selector: reading.selector.clone(),
            like: owner
                .map(|owner| owner.name)
                .or_else(|| reading.names.first().filter(|_| verb == Verb::Get).cloned()),
            ..Command::new(verb)
        }
    }
}
