//! What to do next for a message: commands, or an answer.

mod looks;
mod targets;

use crate::cluster::Shown;
use crate::command::{Command, Verb};
use crate::conversation::{Conversation, Requested, Step};
use threadkeep::agent::ApprovalState;

use super::answers;
use super::refer::{self, Found};
use super::withdraw;
use super::words::{Act, Pick, Reading, Replicas, read};
use targets::Targets;

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
    if conversation.withdrawn.is_empty() {
        return next_step(message, conversation);
    }
    let withdrawn = answers::withdrawn(&conversation.withdrawn);
    let reading = read(message, &conversation.namespaces);
    if withdraw::cancels(&reading) && !reading.has_any(&["instead", "rather"]) {
        return reply(withdrawn);
    }
    match next_step(message, conversation) {
        Next::Reply(text) if text == answers::NOT_UNDERSTOOD => reply(format!("{withdrawn} What do you want instead?")),
        Next::Reply(text) if reading.act == Some(Act::Refusal) || text.starts_with(answers::SPOKEN) => {
            drop(text);
            reply(withdrawn)
        }
        Next::Reply(text) => reply(format!("{withdrawn}\n{text}")),
        run @ Next::Run(_) => run,
    }
}

fn next_step(message: &str, conversation: &Conversation) -> Next {
    let request = read_request(message, &conversation.namespaces);
    if let Some(commands) = amended(&request, conversation) {
        return Planner { conversation, reading: request }.run_or_answer(commands);
    }
    let is_change = request.verb.is_some_and(|verb| !verb.is_read());
    let request = if is_change && request.act.is_none() { request.without_what_is_excluded() } else { request };
    if let Some(unclear) = is_several_requests(&request) {
        return unclear;
    }
    if let Some(refused) = repeats_what_was_refused(&request, conversation) {
        return refused;
    }
    let reading = repeated(&request, conversation).unwrap_or_else(|| completed(request, conversation));
    let planner = Planner { conversation, reading };
    match planner.wanted() {
        Next::Run(commands) => planner.run_or_answer(commands),
        answer => answer,
    }
}

/// Words by which a user corrects the request before.
const CORRECTIONS: [&str; 16] = [
    "not",
    "only",
    "actually",
    "instead",
    "rather",
    "wait",
    "no",
    "nope",
    "sorry",
    "oops",
    "meant",
    "mean",
    "make",
    "correction",
    "nah",
    "hang",
];

/// Reads the request of a message: of several sentences, the last that is one.
fn read_request(message: &str, namespaces: &[String]) -> Reading {
    let read = |text: &str| read(text, namespaces);
    let sentences: Vec<&str> = message.split_inclusive(['.', '?', '!', ';']).collect();
    // A dot within a name or an image does not end a sentence.
    let ends_words = sentences.iter().skip(1).all(|sentence| sentence.starts_with(char::is_whitespace));
    if !ends_words || sentences.len() > 8 || message.contains("```") {
        return read(message);
    }
    let is_request = |reading: &Reading| {
        reading.verb.is_some() && (reading.kind.is_some() || !reading.names.is_empty() || reading.pronoun)
    };
    let whole = read(message);
    let Some(mut found) = sentences.iter().rev().map(|sentence| read(sentence)).find(is_request) else { return whole };
    // "Ledger is only on staging. Restart it there."
    if found.pronoun && found.names.is_empty() && !found.each {
        let others: Vec<String> = whole.names.iter().filter(|name| !found.words.contains(name)).cloned().collect();
        found.pronoun = others.is_empty();
        found.names = others;
    }
    // "Anything odd in www? List the pods."
    if found.namespace.is_none() && !found.all_namespaces {
        found.namespace = whole.namespace.filter(|name| namespaces.contains(name));
    }
    found
}

/// A request with a condition, or two requests in one sentence: which change is meant for which object is not guessed.
fn is_several_requests(request: &Reading) -> Option<Next> {
    let is_change = request.verb.is_some_and(|verb| !verb.is_read());
    if !is_change || request.act.is_some() {
        return None;
    }
    if request.has_condition() {
        return Some(reply(
            "I do not decide conditions, so I requested nothing. Look at the state first, and then say the change without a condition.",
        ));
    }
    if request.has_schedule() {
        return Some(reply(
            "I cannot change something later or by myself, so I requested nothing. Ask again when it is time.",
        ));
    }
    let verbs = request.change_verbs();
    (verbs.len() > 1).then(|| {
        let words: Vec<String> = verbs.iter().map(|verb| format!("“{}”", verb.words())).collect();
        reply(format!(
            "I request one kind of change at a time, so I requested nothing: say {} alone.",
            words.join(" or ")
        ))
    })
}

/// "Same for web" after a request that was not approved: it is not repeated for another object.
fn repeats_what_was_refused(reading: &Reading, conversation: &Conversation) -> Option<Next> {
    let last = conversation.earlier.iter().rev().find(|exchange| !exchange.requested.is_empty())?;
    let requested = last.requested.first()?;
    let is_refused = matches!(requested.state, ApprovalState::Denied | ApprovalState::Expired);
    let repeats = reading.has_any(&["same", "too", "likewise"]) || reading.says("as well");
    let is_plain =
        reading.verb.is_none_or(|verb| verb == Verb::Get) && !reading.is_question && reading.words.len() <= 5;
    let line = requested.command.line();
    (is_refused && repeats && is_plain)
        .then(|| reply(format!("`{line}` was not approved, so I do not repeat it. What do you want to change?")))
}

/// Returns the change that was requested last, for another object: "redis-2 as well", "same for web", or after a correction "the ui
/// only".
fn repeated(reading: &Reading, conversation: &Conversation) -> Option<Reading> {
    let last = conversation.earlier.iter().rev().take(4).find(|exchange| !exchange.requested.is_empty())?;
    let is_newest = conversation.earlier.last().is_some_and(|newest| !newest.requested.is_empty());
    let adds = reading.has_any(&["too", "also", "same", "likewise"]) || reading.says("as well");
    let requested = last.requested.first()?;
    let is_void = matches!(requested.state, ApprovalState::Replaced | ApprovalState::Denied);
    let corrects =
        is_newest && !conversation.withdrawn.is_empty() || is_void && reading.has_any(&["meant", "mean", "wanted"]);
    let command = &requested.command;
    let is_other = reading.act.is_some_and(|act| !matches!(act, Act::Same | Act::Consent | Act::Refusal));
    let has_verb = reading.verb.is_some_and(|verb| verb != Verb::Get || !reading.is_implied && reading.words.len() > 5);
    if !(adds || corrects) || is_other || has_verb || reading.asks() || command.verb == Verb::Apply {
        return None;
    }
    let mut names = reading.names.clone();
    let mut namespace = reading.namespace.clone();
    // "Same for backend": without such a namespace, it is an object.
    if let Some(name) = namespace.take_if(|name| names.is_empty() && !conversation.namespaces.contains(name)) {
        names.push(name);
    }
    // "I wanted staging": the same object there.
    let mut kind = reading.kind.clone();
    if names.is_empty() && corrects && namespace.is_some() && namespace != command.namespace {
        names.extend(command.name.clone());
        kind.clone_from(&command.kind);
    }
    if names.is_empty() || reading.has_any(&["not", "except", "without"]) {
        return None;
    }
    if kind.is_none() && matches!(command.verb, Verb::Delete | Verb::Label | Verb::Annotate) {
        kind.clone_from(&command.kind);
    }
    Some(Reading {
        act: None,
        verb: Some(command.verb),
        is_implied: false,
        kind,
        names,
        namespace: namespace.or_else(|| command.namespace.clone()),
        replicas: command.replicas.map(Replicas::To),
        // Another object has another image: only the version is the same.
        image: None,
        version: command.image.as_deref().and_then(version_of).map(str::to_owned),
        limits: command.limits.clone(),
        requests: command.requests.clone(),
        values: command.values.clone(),
        pronoun: false,
        each: false,
        pick: None,
        ..reading.clone()
    })
}

/// Completes a message that answers a question of the assistant with what the user had asked before.
fn completed(reading: Reading, conversation: &Conversation) -> Reading {
    let Some(last) = conversation.earlier.last().filter(|last| last.asked) else { return reading };
    let reading = reading.without_what_is_excluded();
    // "Fair enough" answers nothing, so the request must not be made again.
    let answers_nothing = reading.kind.is_none()
        && reading.names.is_empty()
        && reading.namespace.is_none()
        && reading.pick.is_none()
        && reading.replicas.is_none()
        && reading.only_number().is_none()
        && reading.image.is_none()
        && reading.version.is_none()
        && reading.container.is_none()
        && reading.limits.is_empty()
        && reading.requests.is_empty();
    if answers_nothing {
        return reading;
    }
    let names_verb = reading.verb.is_some_and(|verb| verb != Verb::Get)
        || (reading.verb.is_some() && !reading.is_implied && reading.words.len() > 3);
    let is_other = reading.act.is_some_and(|act| !matches!(act, Act::Same | Act::Consent))
        || reading.asks()
        || reading.has_any(&["not", "dont", "never", "without", "except", "leave"]);
    // An answer names an object; a sentence with more names is about something else.
    if names_verb || is_other || reading.names.len() > 2 {
        return reading;
    }
    let mut before = read(&last.said, &conversation.namespaces);
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

/// Returns the request of the exchange before with what a correction changes: "no, make it 5", "staging, actually", "no, web-1".
fn amended(reading: &Reading, conversation: &Conversation) -> Option<Vec<Command>> {
    let last = conversation.earlier.last().filter(|last| !last.requested.is_empty())?;
    let requested = last.requested.first()?;
    let has_own_verb = match reading.verb {
        None | Some(Verb::Get) => false,
        Some(Verb::Scale) => reading.has("scale") && !reading.pronoun,
        Some(verb) => verb != requested.command.verb,
    };
    if has_own_verb || reading.words.len() > 8 || !(reading.has_any(&CORRECTIONS) || reading.is_only_number()) {
        return None;
    }
    let without = reading.without_what_is_excluded();
    let reading = &without;
    let object = corrected_object(reading, conversation, requested)?;
    let number = reading.replicas.or_else(|| reading.only_number().map(Replicas::To));
    let mut is_changed = false;
    let amend = |requested: &Requested| {
        let mut command = Command { basis: None, ..requested.command.clone() };
        if let Some(object) = &object {
            is_changed |= command.name.as_ref() != Some(&object.name);
            command.kind = Some(object.kind.clone());
            command.name = Some(object.name.clone());
            command.namespace = (!object.namespace.is_empty()).then(|| object.namespace.clone());
        }
        if matches!(command.verb, Verb::Label | Verb::Annotate | Verb::SetEnv) && !reading.values.is_empty() {
            is_changed |= command.values != reading.values;
            command.values.clone_from(&reading.values);
        }
        if let (Verb::Scale, Some(Replicas::To(number))) = (command.verb, number) {
            is_changed |= command.replicas != Some(number);
            command.replicas = Some(number);
        }
        if command.verb == Verb::SetResources && !(reading.limits.is_empty() && reading.requests.is_empty()) {
            is_changed |= (&command.limits, &command.requests) != (&reading.limits, &reading.requests);
            command.limits.clone_from(&reading.limits);
            command.requests.clone_from(&reading.requests);
        }
        if let (Verb::SetImage, Some(version)) = (command.verb, &reading.version) {
            is_changed = true;
            command.image = command.image.as_deref().map(|image| with_version(image, version));
        }
        if let (Verb::SetImage, Some(image)) = (command.verb, &reading.image) {
            is_changed = true;
            command.image = Some(image.clone());
        }
        if let (Verb::RolloutUndo, Some(revision)) = (command.verb, reading.revision) {
            is_changed = true;
            command.revision = Some(revision);
        }
        let is_known =
            |name: &&String| conversation.namespaces.contains(name) || command.namespace.as_ref() == Some(*name);
        let namespace = reading.namespace.as_ref().or_else(|| reading.names.iter().find(is_known));
        if let Some(namespace) = namespace.filter(|_| command.namespace.is_some()) {
            is_changed |= command.namespace.as_ref() != Some(namespace);
            command.namespace = Some(namespace.clone());
        }
        command
    };
    let commands: Vec<Command> = last.requested.iter().map(amend).collect();
    is_changed.then_some(commands)
}

/// Returns the command that takes a change back, if the change itself says what was before: the replicas before a scaling are those
/// of its dry run.
fn inverse(change: &Command) -> Option<Command> {
    let base = Command { basis: None, ..change.clone() };
    match change.verb {
        Verb::Cordon => Some(Command { verb: Verb::Uncordon, ..base }),
        Verb::Uncordon => Some(Command { verb: Verb::Cordon, ..base }),
        Verb::Scale => {
            let (before, _) = change.basis.as_ref()?.effect.strip_prefix("Dry run: ")?.split_once(" → ")?;
            Some(Command { replicas: Some(before.parse().ok()?), ..base })
        }
        _ => None,
    }
}

/// Returns the object that a correction names instead of that of a request: the inner value is `None` if it names none. Returns `None`
/// if a name fits no object, or several.
fn corrected_object(reading: &Reading, conversation: &Conversation, requested: &Requested) -> Option<Option<Shown>> {
    if let Some(pick) = reading.pick {
        return match refer::picked(conversation, pick, reading, requested.command.verb) {
            Found::One(object) => Some(Some(object)),
            Found::Several(_) | Found::None => None,
        };
    }
    let mut named = None;
    for name in &reading.names {
        let looks_like_name = name.contains('-') || name.chars().any(|c| c.is_ascii_digit());
        match refer::named(conversation, name, requested.command.verb, reading) {
            Found::One(object) if named.is_none() => named = Some(object),
            // "Ugh no, 4".
            Found::None if !looks_like_name => {}
            _ => return None,
        }
    }
    Some(named)
}

/// Returns the version of an image.
fn version_of(image: &str) -> Option<&str> {
    image.rsplit_once(':').map(|(_, version)| version).filter(|version| !version.contains('/'))
}

/// Returns an image with another version.
fn with_version(image: &str, version: &str) -> String {
    let name = image.split('@').next().unwrap_or(image);
    // A colon before the last slash belongs to the port of the registry.
    let end = name.rfind(':').filter(|at| !name[*at..].contains('/')).unwrap_or(name.len());
    format!("{}:{version}", &name[..end])
}

/// Returns the container of a pod that a message names.
fn named_container(pod: &Shown, words: &[String]) -> Option<String> {
    // The name of the pod may begin with that of a container.
    let is_of_pod = |container: &&String| crate::cluster::likeness(&pod.name, container).is_some();
    let mut named: Vec<&String> = pod.containers.iter().filter(|container| words.contains(container)).collect();
    named.sort_by_key(is_of_pod);
    named.first().map(|container| (*container).clone())
}

struct Planner<'a> {
    conversation: &'a Conversation,
    reading: Reading,
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

    fn wanted(&self) -> Next {
        let asks_for_cause = ["what killed", "what crashed", "what broke", "what happened to"];
        if !self.reading.names.is_empty() && asks_for_cause.iter().any(|phrase| self.reading.says(phrase)) {
            return self.diagnose();
        }
        if self.reading.act == Some(Act::Same) && self.asks_for_namespace() && !self.reading.says("what about") {
            return self.of_verb(Verb::Get);
        }
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
        let lists = self.reading.is_plural && self.reading.names.is_empty() && !self.reading.pronoun;
        if verb == Verb::Describe && lists {
            return self.of_verb(Verb::Get);
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
            || reading.asks_for_state()
            || reading.has_any(&["status", "state", "health", "healthy", "running", "ready", "up"])
            || reading.names.iter().any(|name| refer::named(self.conversation, name, Verb::Get, reading) != Found::None)
    }

    fn of_act(&self, act: Act) -> Next {
        match act {
            Act::Greeting => reply(answers::GREETING),
            Act::Thanks => reply(answers::THANKS),
            Act::Capabilities => reply(answers::CAPABILITIES),
            Act::SecretValue => reply(answers::SECRET_VALUE),
            Act::Refused(reason) => reply(format!("I cannot do that from a chat: {reason}.")),
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
            Act::Spoken => reply(match answers::pending(self.conversation) {
                Some(requested) => format!("I requested nothing. {}", answers::waiting(requested)),
                None => format!("{} Nothing was changed.", answers::SPOKEN),
            }),
            Act::Outcome => self.outcome(),
            Act::Repeat => match refer::last_reads(self.conversation) {
                reads if reads.is_empty() => reply("There is nothing to repeat yet."),
                reads => Next::Run(reads.into_iter().map(|read| self.with_log_options(read)).collect()),
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
        if let Some(next) = self.logs_again() {
            return next;
        }
        if let Some(requested) = answers::pending(self.conversation) {
            let kind = requested.command.kind.as_deref();
            let is_same = reading.kind.as_deref().is_some_and(|own| Some(own) == kind)
                || reading.names.iter().any(|name| requested.command.name.as_ref() == Some(name));
            if is_same {
                return reply(answers::waiting(requested));
            }
        }
        if let Some(verb) = self.continued_verb() {
            return self.of_verb(verb);
        }
        if reading.pick.is_some()
            && let Some(verb) = self.continued_pick()
        {
            return self.of_verb(verb);
        }
        if reading.pick.is_some() || (reading.kind.is_some() && !reading.names.is_empty()) {
            return self.of_verb(Verb::Describe);
        }
        if reading.kind.is_some() && reading.is_plural || self.asks_for_namespace() {
            return self.of_verb(Verb::Get);
        }
        let is_known = |name: &String| refer::named(self.conversation, name, Verb::Describe, reading) != Found::None;
        if reading.words.len() <= 6 && reading.names.iter().any(is_known) {
            return self.of_verb(Verb::Describe);
        }
        reply(answers::NOT_UNDERSTOOD)
    }

    /// "Now the other one" after logs asks for the logs of the other object.
    fn continued_pick(&self) -> Option<Verb> {
        let last = self.conversation.earlier.last().filter(|last| last.requested.is_empty())?;
        let verb = last.steps.iter().rev().map(|step| step.command.verb).find(|verb| *verb != Verb::Find)?;
        let continues =
            self.reading.words.first().is_some_and(|word| matches!(&**word, "and" | "now" | "then" | "what"));
        (continues && matches!(verb, Verb::Logs | Verb::Describe | Verb::Events)).then_some(verb)
    }

    /// "And redis-2?" after logs asks for the logs of the other object.
    fn continued_verb(&self) -> Option<Verb> {
        let reading = &self.reading;
        let continues = reading.words.len() <= 4
            && reading.names.len() == 1
            && ["and", "what about", "how about", "also"].iter().any(|cue| {
                let starts = cue.split(' ').zip(&reading.words).all(|(cue, word)| cue == word);
                starts && reading.words.len() > cue.split(' ').count()
            });
        let last = self.conversation.earlier.last().filter(|last| continues && last.requested.is_empty())?;
        let verb = last.steps.iter().rev().map(|step| step.command.verb).find(|verb| *verb != Verb::Find)?;
        matches!(
            verb,
            Verb::Get | Verb::Logs | Verb::Describe | Verb::Events | Verb::RolloutStatus | Verb::RolloutHistory
        )
        .then_some(verb)
    }

    fn of_verb(&self, verb: Verb) -> Next {
        if verb == Verb::Scale && self.reading.replicas.is_none() && !self.is_relative() {
            return reply("To how many replicas?");
        }
        if verb == Verb::SetImage && self.reading.image.is_none() && self.reading.version.is_none() {
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
        if verb == Verb::SetImage
            && let Some(next) = self.read_images(&objects)
        {
            return next;
        }
        Next::Run(objects.iter().map(|object| self.command(verb, object)).collect())
    }

    /// Reads the current images, if only a version is wanted: "roll out 1.9.0".
    fn read_images(&self, objects: &[Shown]) -> Option<Next> {
        let is_read = self.conversation.steps.iter().any(|step| step.command.verb == Verb::Get);
        if self.reading.image.is_some() || is_read {
            return None;
        }
        Some(Next::Run(objects.iter().map(|object| self.command(Verb::Get, object)).collect()))
    }

    /// Returns the image with the wanted version.
    fn image_of(&self, object: &Shown) -> Option<String> {
        if self.reading.image.is_some() {
            return self.reading.image.clone();
        }
        let outcomes = self.conversation.steps.iter().filter_map(|step| step.outcome.as_ref());
        let mut read = outcomes.flat_map(|outcome| &outcome.objects).filter(|read| read.name == object.name);
        let current = read.next_back()?.image.clone();
        Some(with_version(&current, self.reading.version.as_deref()?))
    }

    /// "Undo that" after a change that a rollback does not undo.
    fn undo_of_another_change(&self) -> Option<Next> {
        let (_, requested, step) = answers::last_change(self.conversation)?;
        let last = step.map(|step| &step.command).or(requested.map(|requested| &requested.command))?;
        let is_rollout = matches!(
            last.verb,
            Verb::SetImage | Verb::SetResources | Verb::SetEnv | Verb::RolloutRestart | Verb::RolloutUndo | Verb::Apply
        );
        let is_meant = self.reading.names.is_empty() && self.reading.kind.is_none();
        if let Some(inverse) = inverse(last).filter(|_| is_meant && step.is_some_and(|step| step.outcome.is_some())) {
            return Some(Next::Run(vec![inverse]));
        }
        let text =
            format!("The last change was `{}`, which a rollback does not undo. What do you want instead?", last.line());
        (is_meant && !is_rollout).then(|| reply(text))
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

    pub(super) fn list_command(&self, verb: Verb) -> Command {
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
}
