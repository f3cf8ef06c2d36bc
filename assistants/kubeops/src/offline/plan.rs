//! What to do next for a message: commands, or an answer.

use crate::cluster::Shown;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Step};
use crate::kinds::{Kind, is_plural};

use super::answers;
use super::refer::{self, Found};
use super::words::{Act, Pick, Reading, Replicas, read};

/// The most objects that "all of them" may stand for in a change.
const MAX_EACH: usize = 5;
/// The most words of a change that names no object, such as "raise the memory limit to 512Mi".
const MAX_WORDS_OF_REMARK: usize = 8;
/// The most names of a message that are looked for.
const MAX_NAMES: usize = 3;

/// The next step of a turn.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Next {
    Run(Vec<Command>),
    Reply(String),
}

fn reply(text: impl Into<String>) -> Next {
    Next::Reply(text.into())
}

/// Returns the next step for a message.
pub(super) fn next(message: &str, conversation: &Conversation) -> Next {
    let planner = Planner { conversation, reading: completed(read_request(message), conversation) };
    match planner.wanted() {
        Next::Run(commands) => planner.run_or_answer(commands),
        answer => answer,
    }
}

/// Reads the request of a message: of several sentences, the last that is one.
fn read_request(message: &str) -> Reading {
    let sentences: Vec<&str> = message.split_inclusive(['.', '?', '!', ';']).collect();
    // A dot within a name or an image does not end a sentence.
    let ends_words = sentences.iter().skip(1).all(|sentence| sentence.starts_with(char::is_whitespace));
    if !ends_words || sentences.len() > 8 || message.contains("```") {
        return read(message);
    }
    let is_request = |reading: &Reading| {
        reading.verb.is_some() && (reading.kind.is_some() || !reading.names.is_empty() || reading.pronoun)
    };
    sentences.iter().rev().map(|sentence| read(sentence)).find(is_request).unwrap_or_else(|| read(message))
}

/// Completes a message that answers a question of the assistant with what the user had asked before.
fn completed(reading: Reading, conversation: &Conversation) -> Reading {
    let Some(last) = conversation.earlier.last().filter(|last| last.asked) else { return reading };
    let names_verb = reading.verb.is_some_and(|verb| verb != Verb::Get)
        || (reading.verb.is_some() && !reading.is_implied && reading.words.len() > 3);
    let is_other = reading.act.is_some_and(|act| !matches!(act, Act::Same | Act::Consent));
    if names_verb || is_other {
        return reading;
    }
    let mut before = read(&last.said);
    if before.verb.is_none() {
        return reading;
    }
    before.act = None;
    if reading.kind.is_some() {
        before.kind.clone_from(&reading.kind);
        before.is_plural = false;
    }
    if !reading.names.is_empty() {
        before.names.clone_from(&reading.names);
        before.pronoun = false;
    }
    if reading.namespace.is_some() {
        before.namespace.clone_from(&reading.namespace);
    }
    if reading.pick.is_some() {
        before.pick = reading.pick;
    }
    // "The 2" and "2" choose the second of the candidates, unless a number of replicas was asked for.
    if let (Some(Replicas::To(number @ 1..)), Some(_) | None) = (reading.replicas, before.replicas) {
        if before.verb == Some(Verb::Scale) && before.replicas.is_none() {
            before.replicas = reading.replicas;
        } else {
            before.pick = Some(Pick::At(number as usize - 1));
        }
    }
    before.image = reading.image.or(before.image);
    before.container = reading.container.or(before.container);
    before
}

struct Planner<'a> {
    conversation: &'a Conversation,
    reading: Reading,
}

/// The objects of a command, or what has to be done to find them.
enum Targets {
    Objects(Vec<Shown>),
    /// All objects of a kind.
    List,
    Then(Next),
}

impl Planner<'_> {
    /// Runs the commands, or answers from their results if they were run in this turn.
    fn run_or_answer(&self, commands: Vec<Command>) -> Next {
        let done: Vec<&Step> = self
            .conversation
            .steps
            .iter()
            .filter(|step| {
                step.command.verb != Verb::Find && commands.iter().any(|command| command.verb == step.command.verb)
            })
            .collect();
        if done.is_empty() {
            return Next::Run(commands);
        }
        let text = answers::of_steps(&done);
        match self.gone() {
            Some(note) => reply(format!("{note}\n{text}")),
            None => reply(text),
        }
    }

    /// Says whether the object that was deleted is gone, as the list of this turn shows.
    fn gone(&self) -> Option<String> {
        if self.reading.act != Some(Act::Outcome) {
            return None;
        }
        let (_, _, change) = answers::last_change(self.conversation)?;
        let command = &change.filter(|step| step.command.verb == Verb::Delete)?.command;
        let name = command.name.as_ref()?;
        let listed = self.conversation.steps.iter().filter_map(|step| step.outcome.as_ref());
        let is_there = listed.flat_map(|outcome| &outcome.objects).any(|object| object.name == *name);
        Some(if is_there { format!("{name} is still there.") } else { format!("Yes, {name} is gone: it was deleted.") })
    }

    fn wanted(&self) -> Next {
        if let Some(act) = self.reading.act {
            return self.of_act(act);
        }
        if self.is_diagnosis() {
            return self.diagnose();
        }
        let Some(verb) = self.reading.verb else { return self.without_verb() };
        if verb == Verb::Apply {
            return match &self.reading.manifest {
                Some(manifest) => Next::Run(vec![Command {
                    manifest: Some(manifest.clone()),
                    namespace: self.reading.namespace.clone(),
                    ..Command::new(verb)
                }]),
                None => reply(
                    "Please paste the manifest of one object in a block of code, with its kind and name. What do you want to apply?",
                ),
            };
        }
        if verb == Verb::Get && !self.is_specific() {
            return self.without_verb();
        }
        self.of_verb(verb)
    }

    /// Whether a message without a kind asks for an object, and does not only have words such as "check" and "what".
    fn is_specific(&self) -> bool {
        let reading = &self.reading;
        let looks_like_name = |name: &String| name.contains('-') || name.chars().any(|c| c.is_ascii_digit());
        reading.kind.is_some()
            || reading.namespace.is_some()
            || reading.names.is_empty()
            || reading.words.len() <= 4
            || reading.names.iter().any(looks_like_name)
            || reading.has_any(&["status", "state", "health", "healthy", "running", "ready", "up"])
            || reading.names.iter().any(|name| refer::named(self.conversation, name, Verb::Get, reading) != Found::None)
    }

    fn of_act(&self, act: Act) -> Next {
        match act {
            Act::Greeting => reply(answers::GREETING),
            Act::Thanks => reply(answers::THANKS),
            Act::Capabilities => reply(answers::CAPABILITIES),
            Act::SecretValue => reply(answers::SECRET_VALUE),
            Act::Refused(reason) => reply(format!("I do not do that from a chat: {reason}.")),
            Act::Consent => match answers::pending(self.conversation) {
                Some(requested) => reply(answers::waiting(requested)),
                None => reply("There is no request that waits for an approval."),
            },
            Act::Refusal => match answers::pending(self.conversation) {
                Some(requested) => reply(format!(
                    "Nothing was changed. The request `{}` still waits: react with ❌ to deny it.",
                    requested.command.line()
                )),
                None => reply("All right, nothing was changed."),
            },
            Act::Outcome => self.outcome(),
            Act::Repeat => match refer::last_reads(self.conversation) {
                reads if reads.is_empty() => reply("There is nothing to repeat yet."),
                reads => Next::Run(reads),
            },
            Act::Same => self.same(),
            Act::Compare => match answers::compare(self.conversation) {
                Some((text, _)) => reply(text),
                None => reply("To compare, list the same kind in two namespaces first. Which ones do you mean?"),
            },
            Act::Align => self.align(),
            Act::Why => self.why(),
        }
    }

    fn without_verb(&self) -> Next {
        let reading = &self.reading;
        if let Some(requested) = answers::pending(self.conversation) {
            let kind = requested.command.kind.as_deref();
            let is_same = reading.kind.as_deref().is_some_and(|own| Some(own) == kind)
                || reading.names.iter().any(|name| requested.command.name.as_ref() == Some(name));
            if is_same {
                return reply(answers::waiting(requested));
            }
        }
        if reading.pick.is_some() || (reading.kind.is_some() && !reading.names.is_empty()) {
            return self.of_verb(Verb::Describe);
        }
        if reading.kind.is_some() && reading.is_plural {
            return self.of_verb(Verb::Get);
        }
        let is_known = |name: &String| refer::named(self.conversation, name, Verb::Describe, reading) != Found::None;
        if reading.words.len() <= 6 && reading.names.iter().any(is_known) {
            return self.of_verb(Verb::Describe);
        }
        reply(answers::NOT_UNDERSTOOD)
    }

    fn of_verb(&self, verb: Verb) -> Next {
        if verb == Verb::Scale && self.reading.replicas.is_none() && !self.is_relative() {
            return reply("To how many replicas?");
        }
        if verb == Verb::SetImage && self.reading.image.is_none() {
            return reply("Which image?");
        }
        if verb == Verb::RolloutUndo
            && let Some(next) = self.undo_of_another_change()
        {
            return next;
        }
        let objects = match self.targets(verb) {
            Targets::Objects(objects) => objects,
            Targets::List => return Next::Run(vec![self.list_command(verb)]),
            Targets::Then(next) => return next,
        };
        if verb == Verb::Scale
            && let Some(next) = self.read_replicas(&objects)
        {
            return next;
        }
        Next::Run(objects.iter().map(|object| self.command(verb, object)).collect())
    }

    /// "Undo that" after a change that a rollback does not undo.
    fn undo_of_another_change(&self) -> Option<Next> {
        let (_, requested, step) = answers::last_change(self.conversation)?;
        let last = step.map(|step| &step.command).or(requested.map(|requested| &requested.command))?;
        let is_rollout = matches!(
            last.verb,
            Verb::SetImage | Verb::SetResources | Verb::SetEnv | Verb::RolloutRestart | Verb::RolloutUndo | Verb::Apply
        );
        let text =
            format!("The last change was `{}`, which a rollback does not undo. What do you want instead?", last.line());
        (self.reading.names.is_empty() && self.reading.kind.is_none() && !is_rollout).then(|| reply(text))
    }

    fn is_relative(&self) -> bool {
        self.reading.has_any(&["up", "down"])
    }

    /// Reads the current number of replicas, if the wanted one depends on it.
    fn read_replicas(&self, objects: &[Shown]) -> Option<Next> {
        if matches!(self.reading.replicas, Some(Replicas::To(_))) {
            return None;
        }
        if self.reading.replicas.is_none() {
            return Some(reply("To how many replicas?"));
        }
        let is_read = self.conversation.steps.iter().any(|step| step.command.verb == Verb::Get);
        if is_read {
            return None;
        }
        let get = |object: &Shown| self.command(Verb::Get, object);
        Some(Next::Run(objects.iter().map(get).collect()))
    }

    fn command(&self, verb: Verb, object: &Shown) -> Command {
        let reading = &self.reading;
        let namespace = (!object.namespace.is_empty()).then(|| object.namespace.clone());
        let base = Command::new(verb).on(&object.kind, &object.name, namespace.as_deref());
        match verb {
            Verb::Logs => Command {
                tail: reading.tail.map(|tail| tail.clamp(1, crate::command::MAX_TAIL)),
                previous: reading.previous,
                since_seconds: reading.since_seconds,
                container: reading.container.clone(),
                ..base
            },
            Verb::Scale => Command { replicas: self.replicas_of(object), ..base },
            Verb::SetImage => Command { image: reading.image.clone(), container: reading.container.clone(), ..base },
            Verb::SetResources => Command {
                limits: reading.limits.clone(),
                requests: reading.requests.clone(),
                container: reading.container.clone(),
                ..base
            },
            Verb::SetEnv | Verb::Label | Verb::Annotate => Command { values: reading.values.clone(), ..base },
            Verb::RolloutUndo => Command { revision: reading.revision, ..base },
            _ => base,
        }
    }

    fn replicas_of(&self, object: &Shown) -> Option<u32> {
        let current = || {
            let outcomes = self.conversation.steps.iter().filter_map(|step| step.outcome.as_ref());
            let objects = outcomes.flat_map(|outcome| &outcome.objects).filter(|read| read.name == object.name);
            objects.filter_map(|read| read.replicas).next_back().and_then(|count| u32::try_from(count).ok())
        };
        match self.reading.replicas? {
            Replicas::To(number) => Some(number),
            Replicas::By(number) => u32::try_from((i64::from(current()?) + number).max(0)).ok(),
            Replicas::Times(times) => current()?.checked_mul(times),
            Replicas::Half => Some(current()? / 2),
        }
    }

    fn list_command(&self, verb: Verb) -> Command {
        let reading = &self.reading;
        let kind = reading.kind.clone().or_else(|| (verb != Verb::Events).then(|| "pods".to_owned()));
        let namespace = reading
            .namespace
            .clone()
            .or_else(|| refer::last_namespace(self.conversation))
            .filter(|_| !reading.all_namespaces);
        let all = reading.all_namespaces || (namespace.is_none() && reading.unhealthy);
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
            like: reading.names.first().filter(|_| verb == Verb::Get).cloned(),
            ..Command::new(verb)
        }
    }

    /// Finds the objects of a command.
    fn targets(&self, verb: Verb) -> Targets {
        let reading = &self.reading;
        if let Some(pick) = reading.pick {
            return self.found(refer::picked(self.conversation, pick, reading, verb), verb);
        }
        if self.is_list(verb) {
            return Targets::List;
        }
        if !reading.names.is_empty() {
            return self.by_names(verb);
        }
        if let Some(namespace) = self.named_namespace(verb) {
            return namespace;
        }
        let is_change = !verb.is_read();
        let is_sweeping = reading.has_any(&["all", "every", "everything", "anything"]) && !reading.each;
        if is_change && (is_sweeping || reading.is_plural && !reading.pronoun) {
            let kind = reading.kind.as_deref().unwrap_or("objects");
            return Targets::Then(reply(format!(
                "One request changes one object, named exactly. Which of the {kind} do you mean?"
            )));
        }
        if is_change && !reading.pronoun && reading.kind.is_none() && reading.words.len() > MAX_WORDS_OF_REMARK {
            return Targets::Then(reply(answers::ask_what(verb)));
        }
        if reading.each {
            return self.each(verb);
        }
        let found = refer::focus(self.conversation, verb, reading.kind.as_deref(), reading.namespace.as_deref());
        if found == Found::None && reading.kind.is_some() && !is_change {
            return Targets::List;
        }
        if found == Found::None && reading.kind.is_some() && reading.namespace.is_some() {
            return self.only_one(verb);
        }
        self.found(found, verb)
    }

    /// "Delete the lab namespace": the object is the namespace itself, not one in it.
    fn named_namespace(&self, verb: Verb) -> Option<Targets> {
        let reading = &self.reading;
        let is_named = reading.kind.is_none() && !reading.pronoun && reading.has_any(&["namespace", "ns"]);
        let name = reading.namespace.clone().filter(|_| is_named && verb != Verb::Get && verb != Verb::Events)?;
        let namespace = Shown { kind: "namespaces".to_owned(), name, ..Shown::default() };
        Some(match refer::kinds_of(verb) {
            None => Targets::Objects(vec![namespace]),
            Some(_) => Targets::Then(reply(answers::ask_what(verb))),
        })
    }

    /// Whether a message asks for a list: it names a kind and no object, or a selector.
    fn is_list(&self, verb: Verb) -> bool {
        let reading = &self.reading;
        let lists = matches!(verb, Verb::Get | Verb::Events | Verb::Top);
        if !lists || reading.pronoun && !reading.is_plural {
            return false;
        }
        let has_the = reading.words.windows(2).any(|pair| {
            matches!(&*pair[0], "the" | "that" | "this") && Kind::find(&pair[1]).is_some() && !is_plural(&pair[1])
        });
        let refers = has_the && !reading.unhealthy && !matches!(reading.kind.as_deref(), Some("namespaces" | "events"));
        match (verb, reading.names.is_empty()) {
            (Verb::Get, true) => reading.kind.is_some() && !refers || reading.unhealthy,
            (Verb::Get, false) => reading.is_plural,
            (_, is_empty) => is_empty && !reading.pronoun && !(refers && reading.kind.is_some()),
        }
    }

    fn by_names(&self, verb: Verb) -> Targets {
        let reading = &self.reading;
        let mut objects = Vec::new();
        let mut unknown = Vec::new();
        for name in reading.names.iter().take(MAX_NAMES) {
            match refer::named(self.conversation, name, verb, reading) {
                Found::One(object) => objects.push(object),
                Found::Several(several) if reading.each => objects.extend(several),
                Found::Several(several) => return Targets::Then(reply(answers::ask_which(&several))),
                Found::None => unknown.push(name.clone()),
            }
        }
        let is_enumerated = reading.has("and") || reading.words.len() <= reading.names.len() + 1;
        // Of several words, those that are names of known objects count; the others are ordinary words.
        if !objects.is_empty() && (unknown.is_empty() || !is_enumerated) {
            objects.dedup();
            return self.found(Found::of(objects), verb);
        }
        self.search(verb, &unknown, objects)
    }

    /// Looks for names in the cluster.
    fn search(&self, verb: Verb, names: &[String], mut objects: Vec<Shown>) -> Targets {
        let searched: Vec<&Step> =
            self.conversation.steps.iter().filter(|step| step.command.verb == Verb::Find).collect();
        let is_searched = |name: &&String| searched.iter().any(|step| step.command.like.as_ref() == Some(*name));
        let missing: Vec<Command> =
            names.iter().filter(|name| !is_searched(name)).map(|name| self.find_command(verb, name)).collect();
        if !missing.is_empty() {
            return Targets::Then(Next::Run(missing));
        }
        let mut failure = None;
        let mut not_found = Vec::new();
        for name in names {
            let step = searched.iter().find(|step| step.command.like.as_ref() == Some(name));
            let found = step.and_then(|step| step.outcome.as_ref()).map_or(&[][..], |outcome| &outcome.objects);
            failure = failure.or(step.and_then(|step| step.error.clone()));
            let best = refer::best_fitting(found.iter(), name, verb, self.reading.kind.as_deref());
            match Found::of(self.in_namespace(best)) {
                Found::One(object) => objects.push(object),
                Found::Several(several) if self.reading.each => objects.extend(several),
                Found::Several(several) => return Targets::Then(reply(answers::ask_which(&several))),
                Found::None => not_found.push(name.clone()),
            }
        }
        if objects.is_empty() {
            return Targets::Then(self.not_found(verb, &not_found, failure));
        }
        objects.dedup();
        self.found(Found::of(objects), verb)
    }

    /// Prefers the objects of the namespace that the conversation is about, and of several kinds the workload.
    fn in_namespace(&self, objects: Vec<Shown>) -> Vec<Shown> {
        if objects.len() < 2 || self.reading.namespace.is_some() {
            return objects;
        }
        let Some(namespace) = refer::last_namespace(self.conversation) else { return objects };
        let here: Vec<Shown> = objects.iter().filter(|object| object.namespace == namespace).cloned().collect();
        if here.is_empty() { objects } else { here }
    }

    fn find_command(&self, verb: Verb, name: &str) -> Command {
        let reading = &self.reading;
        let kind = match (reading.kind.as_deref(), refer::kinds_of(verb)) {
            // The owner of a pod is found through the pod.
            (Some(kind), _) => Some(kind.to_owned()),
            (None, Some([only])) => Some((*only).to_owned()),
            (None, _) => None,
        };
        Command {
            kind,
            like: Some(name.to_owned()),
            namespace: reading.namespace.clone(),
            all_namespaces: reading.namespace.is_none(),
            ..Command::new(Verb::Find)
        }
    }

    fn not_found(&self, verb: Verb, names: &[String], failure: Option<String>) -> Next {
        if let Some(failure) = failure {
            return reply(format!("I could not read that: {failure}"));
        }
        let reading = &self.reading;
        // A sentence without a kind or the words of a command is no request.
        if verb == Verb::Get && reading.kind.is_none() {
            return reply(answers::NOT_UNDERSTOOD);
        }
        let kind = reading.kind.as_deref().and_then(Kind::find).map_or("object", |_| "");
        let kind = if kind.is_empty() {
            reading.kind.as_deref().and_then(Kind::find).map(|kind| kind.singular).unwrap_or_default()
        } else {
            kind.to_owned()
        };
        let place = reading.namespace.as_ref().map(|name| format!(" in the {name} namespace")).unwrap_or_default();
        reply(format!("I found no {kind} like {}{place}.", names.join(" or ")))
    }

    /// Uses the only object of a kind in a namespace.
    fn only_one(&self, verb: Verb) -> Targets {
        let read = self.conversation.steps.iter().find(|step| step.command.verb == Verb::Get);
        let Some(read) = read else { return Targets::Then(Next::Run(vec![self.list_command(Verb::Get)])) };
        let objects = read.outcome.as_ref().map(|outcome| outcome.objects.clone()).unwrap_or_default();
        self.found(Found::of(objects), verb)
    }

    fn each(&self, verb: Verb) -> Targets {
        match refer::focus(self.conversation, verb, self.reading.kind.as_deref(), self.reading.namespace.as_deref()) {
            Found::Several(objects) if self.reading.has("both") && objects.len() != 2 => {
                Targets::Then(reply(answers::ask_which(&objects)))
            }
            Found::One(_) => Targets::Then(reply(answers::ask_what(verb))),
            Found::Several(objects) if objects.len() > MAX_EACH && !verb.is_read() => Targets::Then(reply(format!(
                "{} at once is too many for requests of single changes. Which ones do you mean?",
                objects.len()
            ))),
            Found::Several(objects) => Targets::Objects(objects.into_iter().take(MAX_EACH).collect()),
            found => self.found(found, verb),
        }
    }

    fn found(&self, found: Found, verb: Verb) -> Targets {
        match found {
            Found::One(object) => Targets::Objects(vec![object]),
            Found::Several(objects)
                if self.reading.each || (self.reading.has("and") && self.reading.names.len() > 1) =>
            {
                Targets::Objects(objects.into_iter().take(MAX_EACH).collect())
            }
            Found::Several(objects) => Targets::Then(reply(answers::ask_which(&objects))),
            Found::None if verb == Verb::Get && !self.reading.pronoun && self.reading.kind.is_none() => {
                Targets::Then(reply(answers::NOT_UNDERSTOOD))
            }
            Found::None => Targets::Then(reply(answers::ask_what(verb))),
        }
    }

    /// "Did it work?": from the conversation, or from a look at the object.
    fn outcome(&self) -> Next {
        let Some((_, requested, step)) = answers::last_change(self.conversation) else {
            return reply(answers::NOTHING_BEFORE);
        };
        if let Some(text) = requested.and_then(answers::fate) {
            return reply(text);
        }
        match step {
            Some(Step { error: Some(error), command, .. }) => {
                reply(format!("It failed: `{}` was not carried out. {error}", command.line()))
            }
            Some(Step { command, .. }) => Next::Run(vec![answers::verification(command)]),
            None => reply("The request was decided, and its result is not known yet."),
        }
    }

    /// "Same in production".
    fn same(&self) -> Next {
        let reads = refer::last_reads(self.conversation);
        if reads.is_empty() {
            return if self.reading.verb.is_some() { self.of_verb(Verb::Get) } else { reply(answers::NOT_UNDERSTOOD) };
        }
        let there =
            |command: Command| Command { namespace: self.reading.namespace.clone(), all_namespaces: false, ..command };
        Next::Run(reads.into_iter().map(there).collect())
    }

    /// "Bring production up to the same version": the images of the other list, for the objects that differ.
    fn align(&self) -> Next {
        let Some((_, pairs)) = answers::compare(self.conversation) else {
            return reply("To align versions, list the deployments of both namespaces first. Which ones do you mean?");
        };
        let is_meant = |namespace: &str| self.reading.words.iter().any(|word| word == namespace);
        let mut commands = Vec::new();
        for (one, other) in &pairs {
            let (target, source) = match (is_meant(&one.namespace), is_meant(&other.namespace)) {
                (true, false) => (one, other),
                (false, true) => (other, one),
                _ => return reply("Which namespace should be changed?"),
            };
            let base = Command::new(Verb::SetImage).on(&target.kind, &target.name, Some(&target.namespace));
            commands.push(Command { image: Some(source.image.clone()), ..base });
        }
        if commands.is_empty() { reply("They already have the same images.") } else { Next::Run(commands) }
    }

    /// "Why?": a look at what the last answer showed to be wrong.
    fn why(&self) -> Next {
        for exchange in self.conversation.earlier.iter().rev() {
            let unhealthy: Vec<Shown> =
                refer::listed(exchange).into_iter().filter(|object| object.is_unhealthy).take(3).collect();
            if !unhealthy.is_empty() {
                return Next::Run(unhealthy.iter().map(|object| self.command(Verb::Describe, object)).collect());
            }
        }
        if let Some((_, _, Some(Step { error: Some(error), command, .. }))) = answers::last_change(self.conversation) {
            return reply(format!("Because `{}` failed: {error}", command.line()));
        }
        match refer::focus(self.conversation, Verb::Describe, None, None) {
            Found::One(object) => Next::Run(vec![self.command(Verb::Describe, &object)]),
            Found::Several(objects) => reply(answers::ask_which(&objects)),
            Found::None => reply("Why what? Please name the object. Which one do you mean?"),
        }
    }

    fn is_diagnosis(&self) -> bool {
        let reading = &self.reading;
        let is_question =
            reading.has_any(&["why", "wrong", "issue", "investigate", "diagnose", "troubleshoot", "whats"]);
        let is_about_problem = reading.unhealthy
            || reading.has_any(&[
                "issue",
                "slow",
                "restarting",
                "investigate",
                "diagnose",
                "troubleshoot",
                "down",
                "dying",
                "why",
            ]);
        let is_read = reading.verb.is_none_or(|verb| matches!(verb, Verb::Get | Verb::Describe));
        is_read
            && is_question
            && is_about_problem
            && !reading.is_plural
            && (!reading.names.is_empty() || reading.pronoun)
    }

    /// "What is wrong with web?": describes its pods that are not healthy, or else the object.
    fn diagnose(&self) -> Next {
        let reading = &self.reading;
        let Some(name) = reading.names.first() else { return self.why() };
        let find = |kind: Option<&str>| Command {
            kind: kind.map(str::to_owned),
            like: Some(name.clone()),
            namespace: reading.namespace.clone(),
            all_namespaces: reading.namespace.is_none(),
            ..Command::new(Verb::Find)
        };
        let searches: Vec<&Step> =
            self.conversation.steps.iter().filter(|step| step.command.verb == Verb::Find).collect();
        let Some(step) = searches.first() else {
            return Next::Run(vec![find(reading.kind.as_deref()), find(Some("pods"))]);
        };
        if let Some(error) = &step.error {
            return reply(format!("I could not read that: {error}"));
        }
        let found: Vec<Shown> = searches
            .iter()
            .filter_map(|step| step.outcome.as_ref())
            .flat_map(|outcome| outcome.objects.clone())
            .collect();
        let found = self.in_namespace(found);
        let sick: Vec<&Shown> = found.iter().filter(|object| object.kind == "pods" && object.is_unhealthy).collect();
        let mut objects: Vec<&Shown> = sick.into_iter().take(2).collect();
        if objects.is_empty() {
            objects = found.iter().take(1).collect();
        }
        objects.dedup();
        match objects.is_empty() {
            true => reply(format!("I found nothing like {name}.")),
            false => Next::Run(objects.into_iter().map(|object| self.command(Verb::Describe, object)).collect()),
        }
    }
}
