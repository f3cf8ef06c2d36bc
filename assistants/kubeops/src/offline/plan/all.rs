//! Questions about several objects or lists, and the same question about another object.

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::Conversation;
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Act, Lexicon, Reading, read};

use super::{Next, Planner, reply};

/// The maximum number of lists and objects that one message asks for.
const MAX_PARTS: usize = 4;

/// "Show deployments in staging and the statefulsets in data": lists and objects of several places. `None` for other messages.
pub(super) fn several_reads(message: &str, conversation: &Conversation, lexicon: &Lexicon) -> Option<Next> {
    let whole = read(message, lexicon);
    let verb = whole.verb.unwrap_or(Verb::Get);
    let is_plain = whole.act.is_none() || whole.act == Some(Act::Compare);
    let is_read = matches!(verb, Verb::Get | Verb::Describe | Verb::Logs | Verb::Events | Verb::Top);
    if !is_plain || !is_read || whole.has_condition() || whole.has_schedule() || whole.unhealthy || whole.pick.is_some()
    {
        return None;
    }
    let mut parts: Vec<Reading> = parts_of(message).iter().map(|part| read(part, lexicon)).collect();
    // "The deployments in blue and in green".
    for at in 1..parts.len() {
        let is_place = parts[at].names.is_empty() && parts[at].kind.is_none() && parts[at].namespace.is_some();
        if is_place && parts[at - 1].names.is_empty() {
            parts[at].kind = parts[at - 1].kind.clone();
            parts[at].is_plural = parts[at - 1].is_plural;
        }
    }
    let is_meant = |part: &Reading| {
        let names_one = part.names.len() == 1 && !part.pronoun;
        let lists = part.names.is_empty() && part.kind.is_some() && part.is_plural && !part.pronoun;
        names_one || lists
    };
    if !(2..=MAX_PARTS).contains(&parts.len()) || !parts.iter().all(is_meant) || !whole.change_verbs().is_empty() {
        return None;
    }
    // "Pods and services in prod", "deployments in staging and statefulsets".
    for at in 0..parts.len() {
        let before = at.checked_sub(1).and_then(|before| parts[before].namespace.clone());
        let after = parts[at + 1..].iter().find_map(|part| part.namespace.clone());
        let part = &mut parts[at];
        part.namespace = part.namespace.take().or(before).or(after);
    }
    let place = |part: &Reading| (part.namespace.clone(), part.kind.clone().filter(|_| part.names.is_empty()));
    if parts.windows(2).all(|pair| place(&pair[0]) == place(&pair[1])) {
        return None;
    }
    let mut commands: Vec<Command> = Vec::new();
    for part in parts {
        let names_verb = part.verb.is_some_and(|verb| verb.is_read() && verb != Verb::Get);
        let verb = if names_verb { part.verb.unwrap_or(verb) } else { verb };
        let planner = Planner { conversation, reading: Reading { act: None, verb: Some(verb), ..part } };
        match planner.reading.names.first() {
            None => commands.push(planner.list_command(Verb::Get)),
            Some(name) => match refer::known(conversation, name, verb, &planner.reading) {
                Found::One(object) => commands.push(planner.command(verb, &object)),
                Found::Several(_) | Found::None => return None,
            },
        }
    }
    commands.dedup();
    (commands.len() > 1).then(|| Planner { conversation, reading: whole }.run_or_answer(commands))
}

/// Splits a message at "and" and at commas.
fn parts_of(message: &str) -> Vec<String> {
    let mut parts: Vec<String> = vec![String::new()];
    for word in message.split_whitespace() {
        if matches!(&*word.to_lowercase(), "and" | "&" | "plus") {
            parts.push(String::new());
            continue;
        }
        if let Some(part) = parts.last_mut() {
            part.push_str(word);
            part.push(' ');
        }
        if word.ends_with([',', ';']) {
            parts.push(String::new());
        }
    }
    parts.retain(|part| !part.trim().is_empty());
    parts
}

impl Planner<'_> {
    /// "Is web healthy in staging? And in production?", "show me pod and deployment of cache": one name in two places, or of two kinds. Both
    /// are shown, so that neither is dropped.
    pub(super) fn of_two(&self) -> Option<Next> {
        let reading = &self.reading;
        let is_place = |name: &&String| self.conversation.namespaces.contains(name);
        let names: Vec<&String> = reading.names.iter().filter(|name| !is_place(name) && **name != "and").collect();
        let [name] = names[..] else { return None };
        let is_read = matches!(reading.verb, None | Some(Verb::Get | Verb::Describe));
        let is_other = reading.act.is_some_and(|act| !matches!(act, Act::Same | Act::Compare | Act::Outcome));
        if !is_read || is_other || reading.pick.is_some() || reading.state.is_some() {
            return None;
        }
        let words = &reading.words;
        let places: Vec<String> = words
            .windows(3)
            .filter(|three| three[0] == "and" && three[1] == "in" && self.conversation.namespaces.contains(&three[2]))
            .map(|three| three[2].clone())
            .collect();
        let kind_of = |word: &String| crate::kinds::kind_word(word).map(|kind| kind.plural);
        let kinds: Vec<String> = words
            .windows(3)
            .find(|three| three[1] == "and" && kind_of(&three[0]).is_some() && kind_of(&three[2]).is_some())
            .map(|three| [kind_of(&three[0]), kind_of(&three[2])].into_iter().flatten().collect())
            .unwrap_or_default();
        let readings: Vec<Reading> = match (&self.named_namespaces()[..], &places[..], &kinds[..]) {
            ([_, _], [second], []) => self
                .named_namespaces()
                .into_iter()
                .filter(|place| place != second)
                .chain([second.clone()])
                .map(|place| Reading { namespace: Some(place), ..reading.clone() })
                .collect(),
            ([_], [], [one, other]) if one != other => [one, other]
                .into_iter()
                .map(|kind| Reading { kind: Some(kind.clone()), is_plural: false, ..reading.clone() })
                .collect(),
            _ => return None,
        };
        let verb = reading.verb.unwrap_or(Verb::Get);
        let mut commands = Vec::new();
        for one in &readings {
            let Found::One(object) = refer::known(self.conversation, name, verb, one) else { return None };
            commands.push(self.command(verb, &object));
        }
        commands.dedup();
        (commands.len() == 2).then(|| self.run_or_answer(commands))
    }

    /// "Which namespaces have a web deployment?", "where do we run web?": the workloads of the name in all namespaces.
    pub(super) fn in_which_places(&self) -> Option<Next> {
        let reading = &self.reading;
        let asks = [
            "which namespaces",
            "what namespaces",
            "where do we run",
            "where is there",
            "where do we have",
            "where else",
        ]
        .iter()
        .any(|phrase| reading.says(phrase));
        let [name] = &reading.names[..] else { return None };
        let is_read = matches!(reading.verb, None | Some(Verb::Get | Verb::Describe | Verb::Find));
        let kind = reading.kind.clone().filter(|kind| kind != "namespaces");
        let kind = kind.or_else(|| {
            let of_words =
                reading.words.iter().filter_map(|word| crate::kinds::kind_word(word)).map(|kind| kind.plural);
            of_words.into_iter().find(|kind| kind != "namespaces")
        });
        if !asks || !is_read || reading.namespace.is_some() || reading.pick.is_some() || reading.act.is_some() {
            return None;
        }
        let kind = kind.unwrap_or_else(|| "deployments".to_owned());
        let list =
            Command { kind: Some(kind), like: Some(name.clone()), all_namespaces: true, ..Command::new(Verb::Get) };
        Some(self.run_or_answer(vec![list]))
    }

    /// "Back to api, same question for prod": what was read last, for the object and the place that the message names.
    pub(super) fn same_question(&self) -> Option<Next> {
        let reading = &self.reading;
        let is_meant =
            ["same question", "same check", "same look", "same query", "same info", "same thing", "same for"]
                .iter()
                .any(|phrase| reading.says(phrase));
        let is_read = reading.verb.is_none_or(|verb| verb == Verb::Get);
        let [name] = &reading.names[..] else { return None };
        let last = self.conversation.earlier.iter().rev().find(|exchange| {
            !exchange.requested.is_empty() || exchange.steps.iter().any(|step| step.command.verb != Verb::Find)
        })?;
        if !is_meant || !is_read || !last.requested.is_empty() || !matches!(reading.act, None | Some(Act::Same)) {
            return None;
        }
        let read = refer::last_reads(self.conversation).into_iter().find(|read| read.name.is_some())?;
        let verb = Some(read.verb).filter(|verb| *verb != Verb::RolloutStatus).unwrap_or(Verb::Get);
        let namespace = reading.namespace.clone().or_else(|| read.namespace.clone());
        let there = Reading { namespace: namespace.clone(), ..reading.clone() };
        let found = match refer::known(self.conversation, name, verb, &there) {
            Found::None if reading.namespace.is_none() => refer::known(self.conversation, name, verb, reading),
            found => found,
        };
        match found {
            Found::One(object) => {
                let command = Command {
                    tail: read.tail,
                    previous: read.previous,
                    since_seconds: read.since_seconds,
                    ..self.command(verb, &object)
                };
                Some(self.run_or_answer(vec![command]))
            }
            Found::Several(_) | Found::None => None,
        }
    }

    /// "And checkout?" after a question for differences: the images of the object in the two lists that were compared.
    pub(super) fn continued_comparison(&self) -> Option<String> {
        let [name] = &self.reading.names[..] else { return None };
        let last = self.conversation.earlier.last().filter(|last| last.requested.is_empty())?;
        let compared = read(&last.said, &Lexicon::of(self.conversation)).act == Some(Act::Compare);
        let is_short = self.reading.words.len() <= 4 && self.reading.namespace.is_none() && self.reading.kind.is_none();
        if !compared || !is_short {
            return None;
        }
        let shown = self.conversation.earlier.iter().rev().flat_map(refer::shown_objects);
        let mut places: Vec<(&str, &str)> = Vec::new();
        for object in shown.filter(|object| object.name == *name && object.kind != "pods" && !object.image.is_empty()) {
            if !places.iter().any(|(namespace, _)| *namespace == object.namespace) {
                places.push((&object.namespace, &object.image));
            }
        }
        let [(newer, new_image), (older, old_image), ..] = places[..] else { return None };
        Some(match new_image == old_image {
            true => format!("{name} has the same image in {older} and {newer}: {new_image}."),
            false => format!("The images differ: {name} has {old_image} in {older}, and {new_image} in {newer}."),
        })
    }

    /// "Maybe it's a deployment", after an object of another kind was not found: the same, with the other kind.
    pub(super) fn of_another_kind(&self) -> Option<Reading> {
        let reading = &self.reading;
        let kind = reading.kind.clone().filter(|_| reading.names.is_empty() && !reading.is_plural)?;
        let guesses =
            ["its a", "it is a", "it might be a", "it could be a", "its an", "try a", "try the", "as a", "then a"]
                .iter()
                .any(|phrase| reading.says(phrase));
        let last = self.conversation.earlier.last().filter(|last| last.requested.is_empty())?;
        let has_found = last.steps.iter().any(|step| step.command.verb != Verb::Find && step.outcome.is_some());
        if !guesses || has_found || reading.act.is_some() || reading.verb.is_some_and(|verb| !verb.is_read()) {
            return None;
        }
        let before = read(&last.said, &Lexicon::of(self.conversation));
        let is_look = before.verb.is_some_and(Verb::is_read) && before.act.is_none() && !before.names.is_empty();
        is_look.then_some(Reading { kind: Some(kind), is_plural: false, ..before })
    }

    /// "Restart checkout in staging and prod": the change in each place; "web in prod is at 3, staging at 1. Scale it to 2": which one is
    /// meant is asked.
    pub(super) fn in_both_places(&self, whole: &Reading) -> Option<Next> {
        let reading = &self.reading;
        let verb = reading.verb.filter(|verb| !verb.is_read() && reading.act.is_none())?;
        let known = |word: &str| {
            let word = if word == "production" { "prod" } else { word };
            self.conversation.namespaces.iter().find(|namespace| *namespace == word).cloned()
        };
        let places: Vec<String> = self
            .conversation
            .namespaces
            .iter()
            .filter(|namespace| whole.words.iter().any(|word| known(word).as_ref() == Some(*namespace)))
            .cloned()
            .collect();
        let names: Vec<&String> = reading.names.iter().filter(|name| known(name).is_none()).collect();
        if places.len() != 2 || names.is_empty() || names.len() > 2 {
            return None;
        }
        let pairs = places.iter().flat_map(|place| names.iter().map(move |name| (place, *name)));
        let objects: Vec<ObjectSummary> = pairs
            .filter_map(|(place, name)| {
                let there = Reading { namespace: Some(place.clone()), ..reading.clone() };
                match refer::mentioned(self.conversation, name, verb, &there) {
                    Found::One(object) => Some(object),
                    Found::Several(_) | Found::None => None,
                }
            })
            .collect();
        if objects.len() != 2 * names.len() {
            return None;
        }
        // "In shop and in shop-test".
        let words: Vec<&String> =
            whole.words.iter().filter(|word| !matches!(&***word, "in" | "on" | "the" | "also")).collect();
        let is_joined = words.windows(3).any(|three| {
            let joins = matches!(&**three[1], "and" | "&" | "plus");
            joins && known(three[0]).is_some() && known(three[2]).is_some()
        });
        // The namespaces are in another sentence than the change.
        let is_apart = !reading.words.iter().any(|word| known(word).is_some());
        if is_joined && !is_apart && !matches!(verb, Verb::SetImage) && whole.change_verbs().len() == 1 {
            let reading = Reading { each: true, ..reading.clone() };
            let planner = Planner { conversation: self.conversation, reading };
            if let Some(next) =
                Some(verb).filter(|verb| *verb == Verb::Scale).and_then(|_| planner.read_replicas(&objects))
            {
                return Some(next);
            }
            let commands = objects.iter().map(|object| planner.command(verb, object)).collect();
            return Some(planner.run_or_answer(commands));
        }
        (is_apart && whole.words.len() > reading.words.len()).then(|| reply(answers::ask_which(&objects)))
    }

    /// "Compare it with staging": the object that was spoken of, in its namespace and in the one that the message names.
    pub(super) fn compare_with_place(&self) -> Option<Next> {
        let there = self.reading.namespace.clone()?;
        let Found::One(object) = refer::focus(self.conversation, Verb::RolloutStatus, None, None) else { return None };
        if object.namespace == there {
            return None;
        }
        let twin = ObjectSummary { namespace: there, ..object.clone() };
        Some(self.run_or_answer(vec![self.command(Verb::Get, &object), self.command(Verb::Get, &twin)]))
    }

    /// "Do that for api in prod", after a question how it is done: the change that was explained.
    pub(super) fn as_was_explained(&self) -> Option<Reading> {
        let reading = &self.reading;
        let is_meant = ["do that for", "do it for", "do this for", "do that to", "do that on"]
            .iter()
            .any(|phrase| reading.says(phrase));
        let last =
            self.conversation.earlier.last().filter(|last| last.requested.is_empty() && last.steps.is_empty())?;
        let said = read(&last.said, &Lexicon::of(self.conversation));
        let [verb] = said.change_verbs()[..] else { return None };
        let needs_no_value = matches!(
            verb,
            Verb::RolloutUndo
                | Verb::RolloutRestart
                | Verb::RolloutPause
                | Verb::RolloutResume
                | Verb::Cordon
                | Verb::Uncordon
        );
        let is_plain =
            reading.names.len() == 1 && reading.act.is_none() && reading.change_verbs().is_empty() && !reading.asks();
        (is_meant && is_plain && needs_no_value && super::how_to::how_to(&said).is_some()).then(|| Reading {
            verb: Some(verb),
            pronoun: false,
            ..reading.clone()
        })
    }
}
