//! The objects of a command.

mod each;
mod of_cluster;

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::conversation::{Requested, Step};
use crate::kinds::{Kind, is_plural};
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Lexicon, Pick, Reading, State, read};

use super::images::is_same_program;
use super::{Next, Planner, reply};

/// The maximum number of objects that "all of them" may stand for in a change.
const MAX_EACH: usize = 5;
/// The maximum number of words in a change that names no object, such as "raise the memory limit to 512Mi".
const MAX_WORDS_OF_REMARK: usize = 8;
/// The maximum number of names in a message that are looked for.
const MAX_NAMES: usize = 5;

/// The objects of a command, or what has to be done to find them.
pub(super) enum Targets {
    Objects(Vec<ObjectSummary>),
    /// All objects of a kind.
    List,
    Then(Next),
}

impl Planner<'_> {
    /// Finds the objects of a command.
    pub(super) fn targets(&self, verb: Verb) -> Targets {
        // "Pause it there, I want to see a few pods first": the kind belongs to something else.
        let kind = self.reading.kind.as_deref();
        let is_foreign = kind.is_some_and(|kind| refer::kinds_of(verb).is_some_and(|kinds| !kinds.contains(&kind)));
        let says_it = self.reading.has_any(&["it", "there"]) || !self.reading.names.is_empty() && kind != Some("pods");
        if is_foreign && says_it && !verb.is_read() {
            let reading = Reading { kind: None, is_plural: false, ..self.reading.clone() };
            return Planner { reading, ..*self }.targets(verb);
        }
        // "We don't need this any more, delete it for good": not only the pod, which comes back.
        let is_final = ["for good", "permanently", "completely", "entirely", "altogether"]
            .iter()
            .any(|phrase| self.reading.says(phrase));
        if verb == Verb::Delete && is_final && kind.is_none() && self.reading.pick.is_none() {
            let found = match &self.reading.names[..] {
                [] if self.reading.pronoun => refer::focus(self.conversation, verb, None, None),
                [name] => refer::known(self.conversation, name, verb, &self.reading),
                _ => Found::None,
            };
            if let Found::One(ObjectSummary { owner: Some((kind, name)), namespace, .. }) = found {
                return Targets::Objects(vec![ObjectSummary { kind, name, namespace, ..ObjectSummary::default() }]);
            }
        }
        // "Restart the crashing one", and then "no, delete it": the pod, not the workload that would have been restarted.
        if verb == Verb::Delete
            && kind.is_none()
            && self.reading.pronoun
            && self.reading.names.is_empty()
            && let Some(pod) = self.pod_of_last_request()
        {
            return Targets::Objects(vec![pod]);
        }
        // "And its deployment?", about a pod that nothing owns: no deployment that was spoken of before.
        if let Some(text) = self.has_no_owner() {
            return Targets::Then(reply(text));
        }
        // "What did its pod say?", about a job: the logs of its pods.
        if verb == Verb::Logs && kind == Some("pods") && self.reading.names.is_empty() && self.reading.says("its pod") {
            let reading = Reading { kind: None, ..self.reading.clone() };
            return Planner { reading, ..*self }.targets(verb);
        }
        let reading = &self.reading;
        // "The other one, payments": the name says which.
        let is_other = |name: &String| reading.says(&format!("other {name}"));
        let is_picked = |pick: &Pick| *pick != Pick::Other || reading.names.iter().all(is_other);
        if let Some(pick) = reading.pick.filter(is_picked) {
            return self.picked(pick, verb);
        }
        if let Some(state) = reading.state.filter(|_| reading.names.is_empty()) {
            let found = refer::in_state(self.conversation, state, reading, verb);
            // "Which of the two has fewer replicas?": equal ones are both shown.
            match found {
                Found::Several(objects) if state.is_superlative() && verb.is_read() => {
                    return Targets::Objects(objects.into_iter().take(MAX_EACH).collect());
                }
                Found::None => {}
                found => return self.found(found, verb),
            }
            if let Some(targets) = self.in_state_of_cluster(state, verb) {
                return targets;
            }
        }
        if reading.unhealthy && reading.has("one") && reading.names.is_empty() {
            let unhealthy = refer::unhealthy(self.conversation, reading, verb);
            if unhealthy != Found::None {
                return self.found(unhealthy, verb);
            }
        }
        if let Some(found) = refer::by_image(self.conversation, reading, verb) {
            return self.found(found, verb);
        }
        if let Some(namespace) = self.namespace_itself(verb) {
            return namespace;
        }
        if self.is_list(verb) {
            return Targets::List;
        }
        if let Some(targets) = self.of_place(verb) {
            return targets;
        }
        if !reading.names.is_empty() {
            return self.by_names(verb);
        }
        if let Some(elsewhere) = self.elsewhere(verb) {
            return elsewhere;
        }
        if let Some(namespace) = self.named_namespace(verb) {
            return namespace;
        }
        let is_change = !verb.is_read();
        let is_sweeping = !reading.says("at all")
            && !reading.says("after all")
            && reading.has_any(&["all", "every", "everything", "anything"])
            && !reading.each;
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
        if is_change && (self.is_reference_unclear() || reading.is_described()) {
            return Targets::Then(reply(answers::ask_what(verb)));
        }
        // "Describe the one in netops-dr": the object of the same name there.
        if let Some(twin) = self.twin_in_place(verb) {
            return self.found(Found::One(twin), verb);
        }
        // "Restart that one", after a list of several pods of one workload.
        let points = is_change && reading.kind.is_none() && (reading.says("that one") || reading.says("this one"));
        let listed = self.conversation.earlier.last().map(refer::subjects).unwrap_or_default();
        let owner = listed.first().and_then(|object| object.owner.clone());
        if points && listed.len() > 1 && owner.is_some() && listed.iter().all(|object| object.owner == owner) {
            return Targets::Then(reply(answers::ask_which(&listed)));
        }
        // "Staging is fine, restart it": the namespace of a remark does not say which object is meant.
        let place = reading.namespace.as_deref().filter(|_| !is_change || !reading.remarks_on_namespace());
        let found = match refer::focus(self.conversation, verb, reading.kind.as_deref(), place) {
            Found::None => self.pods_of_focus(verb),
            found => found,
        };
        if found == Found::None && reading.kind.is_some() && !is_change {
            return Targets::List;
        }
        if found == Found::None && reading.kind.is_some() && reading.namespace.is_some() {
            return self.only_one(verb);
        }
        self.found(found, verb)
    }

    /// Returns the pod by which the newest request named a workload: "restart the crashing one". `None` if it named the workload.
    fn pod_of_last_request(&self) -> Option<ObjectSummary> {
        // "Now delete it", after a look, and a deletion of a pod that was taken back.
        let recent: Vec<&Requested> =
            self.conversation.earlier.iter().rev().take(3).flat_map(|exchange| &exchange.requested).collect();
        if let [only] = recent[..]
            && only.command.verb == Verb::Delete
            && only.command.kind.as_deref() == Some("pods")
            && matches!(only.state, ApprovalState::Void | ApprovalState::Denied)
            && let Found::One(focus) = refer::focus(self.conversation, Verb::Describe, None, None)
            && focus.kind != "pods"
            && let Some(name) = &only.command.name
            && name.starts_with(&focus.name)
        {
            let namespace = only.command.namespace.clone().unwrap_or_default();
            return Some(ObjectSummary {
                kind: "pods".to_owned(),
                name: name.clone(),
                namespace,
                ..ObjectSummary::default()
            });
        }
        let last = self.conversation.earlier.last().filter(|last| last.requested.len() == 1)?;
        let said = read(&last.said, &Lexicon::of(self.conversation));
        let is_workload = last.requested[0].command.kind.as_deref() != Some("pods");
        if !is_workload || !said.names.is_empty() || said.kind.as_deref().is_some_and(|kind| kind != "pods") {
            return None;
        }
        let mut before = self.conversation.clone();
        before.earlier.pop();
        let found = match (said.pick, said.state) {
            (Some(pick), _) => refer::picked(&before, pick, &said, Verb::Describe),
            (None, Some(state)) => refer::in_state(&before, state, &said, Verb::Describe),
            (None, None) => refer::focus(&before, Verb::Describe, said.kind.as_deref(), None),
        };
        match found {
            Found::One(object) if object.kind == "pods" => Some(object),
            _ => None,
        }
    }

    /// Returns the objects at the given positions of the newest list.
    fn picked(&self, pick: Pick, verb: Verb) -> Targets {
        let reading = &self.reading;
        if pick == Pick::Fresh {
            return self.fresh(verb);
        }
        let mut objects = Vec::new();
        for pick in std::iter::once(pick).chain(reading.picks.iter().copied()) {
            match refer::picked(self.conversation, pick, reading, verb) {
                // "Describe the second of them there", after a list of another namespace.
                Found::One(object) if reading.has("there") && self.is_not_there(&object) => {
                    match self.twin_there(&object) {
                        Some(twin) => objects.push(twin),
                        None => return Targets::Then(reply(answers::ask_what(verb))),
                    }
                }
                Found::One(object) => objects.push(object),
                Found::Several(several) if matches!(pick, Pick::First(_) | Pick::Newest(_)) => objects.extend(several),
                // "And the other two to 4", "the others".
                Found::Several(several)
                    if pick == Pick::Other
                        && (verb.is_read() || !refer::spoken_of_now(self.conversation).is_empty())
                        && (reading.has_any(&["others", "ones", "rest"])
                            || reading.says("other two") && several.len() == 2
                            || reading.says("other three") && several.len() == 3) =>
                {
                    objects.extend(several);
                }
                Found::None if pick == Pick::Other => {
                    return self.other_of_cluster(verb).unwrap_or_else(|| self.found(Found::None, verb));
                }
                other => return self.found(other, verb),
            }
        }
        Targets::Objects(objects.into_iter().take(MAX_EACH).collect())
    }

    /// Whether the conversation was last about something that was not found or not understood, so "it" may stand for that.
    fn is_reference_unclear(&self) -> bool {
        // After a correction that was not understood, "it" is not the object that was wrong.
        if let [.., before, last] = &self.conversation.earlier[..] {
            let is_taken_back = |requested: &Requested| requested.state == ApprovalState::Void;
            let is_open = last.asked && last.steps.is_empty() && last.requested.is_empty() && last.offered.is_empty();
            if is_open && !before.requested.is_empty() && before.requested.iter().all(is_taken_back) {
                return true;
            }
        }
        for exchange in self.conversation.earlier.iter().rev() {
            if !exchange.requested.is_empty() || exchange.asked {
                return false;
            }
            let is_about = |step: &Step| {
                let exists = step.error.as_ref().is_some_and(|error| !error.contains("not found"))
                    && step.command.name.is_some();
                step.command.verb != Verb::Find && (step.outcome.is_some() || exists)
            };
            if exchange.steps.iter().any(is_about) {
                return false;
            }
            let said = read(&exchange.said, &Lexicon::of(self.conversation));
            let is_unknown =
                |name: &String| refer::known(self.conversation, name, Verb::Describe, &said) == Found::None;
            let names_known = !said.names.is_empty() && !said.names.iter().any(is_unknown);
            let is_about_object = !names_known
                && (!said.names.is_empty()
                    || said.pick.is_some()
                    || said.kind.as_deref().is_some_and(|kind| kind != "namespaces"));
            // "What's a statefulset?" is about no object.
            let asks_meaning = said
                .words
                .windows(2)
                .any(|pair| matches!(&*pair[0], "a" | "an") && crate::kinds::kind_word(&pair[1]).is_some())
                && said.asks();
            let is_about_object = is_about_object && !asks_meaning;
            if said.act.is_none() && is_about_object {
                return true;
            }
        }
        false
    }

    /// Whether a message asks for a list: it names a kind and no object, or a selector.
    fn is_list(&self, verb: Verb) -> bool {
        let reading = &self.reading;
        let lists = matches!(verb, Verb::Get | Verb::Events | Verb::Top);
        if !lists || reading.pronoun && !reading.is_plural {
            return false;
        }
        let has_the = reading.words.windows(2).any(|pair| {
            // "Which deployments are there in that namespace": only its place.
            let is_place = matches!(&*pair[1], "namespace" | "ns") && reading.kind.as_deref() != Some("namespaces");
            let is_kind = Kind::find(&pair[1]).is_some() && !is_plural(&pair[1]);
            matches!(&*pair[0], "the" | "that" | "this") && is_kind && !is_place
        });
        let refers = has_the && !reading.unhealthy && !matches!(reading.kind.as_deref(), Some("namespaces" | "events"));
        match (verb, reading.names.is_empty()) {
            (Verb::Get, true) => reading.kind.is_some() && !refers || reading.unhealthy || self.asks_for_namespace(),
            // "Which kafka pod restarted the most?"
            (Verb::Get, false) if reading.state.is_some_and(State::is_superlative) => reading.names.len() == 1,
            // "Are the deployments session and token ready?" names both.
            (Verb::Get, false) if reading.names.len() > 1 && reading.has("and") => false,
            (Verb::Get, false) => reading.is_plural || reading.names_several && reading.kind.is_none(),
            (_, is_empty) => is_empty && !reading.pronoun && !(refers && reading.kind.is_some()),
        }
    }

    fn by_names(&self, verb: Verb) -> Targets {
        let reading = &self.reading;
        if let Some(joined) = self.joined_name() {
            let reading = Reading { names: vec![joined.clone()], ..self.reading.clone() };
            if let Found::One(object) = refer::known(self.conversation, &joined, verb, &reading) {
                return self.found(Found::One(object), verb);
            }
            let steps = &self.conversation.steps;
            let searched = steps.iter().find(|step| step.command.like.as_ref() == Some(&joined));
            match searched.map(|step| step.outcome.as_ref().is_some_and(|outcome| !outcome.objects.is_empty())) {
                None if self.conversation.mentioned.is_some() => {}
                None => return Targets::Then(Next::Run(vec![self.find_command(verb, &joined)])),
                Some(true) => return Planner { reading, ..*self }.search(verb, &[joined], Vec::new()),
                Some(false) => {}
            }
        }
        let mut objects = Vec::new();
        let mut unknown = Vec::new();
        for name in reading.names.iter().take(MAX_NAMES) {
            match refer::known(self.conversation, name, verb, reading) {
                Found::One(object) => {
                    // "Restart api", after a look at both namespaces that have it.
                    let twins = match verb.is_read() || reading.namespace.is_some() || reading.each {
                        true => Vec::new(),
                        false => refer::in_several_places(self.conversation, &object, verb),
                    };
                    if twins.len() > 1 {
                        return Targets::Then(reply(answers::ask_which(&twins)));
                    }
                    objects.push(object);
                }
                Found::Several(several) if reading.each => objects.extend(several),
                several @ Found::Several(_) => match self.unhealthy_of(several) {
                    Found::Several(several) => return Targets::Then(reply(answers::ask_which(&several))),
                    only => return self.found(only, verb),
                },
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

    /// "The tracking ui": two words that follow one another may be one name, `tracking-ui`.
    fn joined_name(&self) -> Option<String> {
        let reading = &self.reading;
        let is_name = |word: &String| reading.names.contains(word);
        let pair = reading.words.windows(2).find(|pair| is_name(&pair[0]) && is_name(&pair[1]))?;
        (reading.names.len() == 2).then(|| pair.join("-"))
    }

    /// Looks for names in the cluster.
    fn search(&self, verb: Verb, names: &[String], mut objects: Vec<ObjectSummary>) -> Targets {
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
        if objects.is_empty() && failure.is_none() && self.can_do_without(&not_found) {
            let reading = Reading { names: Vec::new(), ..self.reading.clone() };
            return Planner { reading, ..*self }.targets(verb);
        }
        if objects.is_empty() {
            return Targets::Then(self.not_found(verb, &not_found, failure));
        }
        objects.dedup();
        self.found(Found::of(objects), verb)
    }

    /// Whether words that name nothing are ordinary words: they do not look like names, and the rest of the message says what it means.
    fn can_do_without(&self, words: &[String]) -> bool {
        // "5xx" is not a name.
        let looks_like_name = |name: &String| {
            name.contains('-')
                || name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().any(|c| c.is_ascii_digit())
        };
        let reading = &self.reading;
        let is_read = reading.verb.is_none_or(Verb::is_read);
        !words.iter().any(looks_like_name)
            && (reading.pronoun || is_read && (reading.unhealthy || reading.is_plural || reading.has("one")))
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
        let asks_about = reading.says("what about") || reading.says("how about");
        if verb == Verb::Get && reading.kind.is_none() && !asks_about {
            return reply(answers::NOT_UNDERSTOOD);
        }
        let kind = reading.kind.as_deref().and_then(Kind::find).map_or("object", |_| "");
        let kind = if kind.is_empty() {
            reading.kind.as_deref().and_then(Kind::find).map(|kind| kind.singular).unwrap_or_default()
        } else {
            kind.to_owned()
        };
        let place = reading.namespace.as_ref().map(|name| format!(" in the {name} namespace")).unwrap_or_default();
        let question = if verb.is_read() { "" } else { " Which one do you mean?" };
        let elsewhere = self.elsewhere_named(names);
        reply(format!(
            "I found no {kind} like {}: there is no such {kind}{place} (not found).{elsewhere}{question}",
            names.join(" or ")
        ))
    }

    /// Says in which other namespaces there are objects of these names.
    fn elsewhere_named(&self, names: &[String]) -> String {
        let reading = &self.reading;
        let Some(namespace) = &reading.namespace else { return String::new() };
        let others = self.conversation.mentioned.iter().flatten().filter(|object| object.namespace != *namespace);
        let others: Vec<ObjectSummary> = names
            .iter()
            .flat_map(|name| refer::best_fitting(others.clone(), name, Verb::Describe, reading.kind.as_deref()))
            .filter(|object| object.kind != "pods" && !object.namespace.is_empty())
            .take(3)
            .collect();
        if others.is_empty() {
            return String::new();
        }
        let named: Vec<String> = others
            .iter()
            .map(|object| format!("{} {} in {}", object.kind.trim_end_matches('s'), object.name, object.namespace))
            .collect();
        format!(" There is {}.", named.join(", "))
    }

    /// "The crashing worker pod": of several objects of a name, the only one that is not healthy.
    fn unhealthy_of(&self, found: Found) -> Found {
        let Found::Several(objects) = found else { return found };
        let reading = &self.reading;
        // "The healthy bidder pod".
        if let Some(state) = reading.state.filter(|_| !reading.names.is_empty() && !reading.each)
            && let [only] = &state.filter(&objects)[..]
        {
            return Found::One(only.clone());
        }
        let sick: Vec<&ObjectSummary> = objects.iter().filter(|object| object.is_unhealthy).collect();
        match sick[..] {
            [only] if reading.unhealthy && !reading.each && !reading.names.is_empty() => Found::One(only.clone()),
            _ => Found::Several(objects),
        }
    }

    /// "Should be thumbs:0.9.9", "move it to api:3.2.0", without a name: a workload that runs the program of the image, never another one.
    fn of_image(&self, found: Found, verb: Verb) -> Found {
        let reading = &self.reading;
        let Some(image) = reading.image.as_ref().filter(|_| verb == Verb::SetImage) else { return found };
        if !reading.names.is_empty() || reading.pick.is_some() {
            return found;
        }
        let runs = |object: &ObjectSummary| is_same_program(&self.image_shown(object), image);
        let is_open = |object: &ObjectSummary| self.image_shown(object).is_empty();
        match found {
            Found::One(object) if !runs(&object) && !is_open(&object) => {
                refer::running(self.conversation, &runs, reading.namespace.as_deref())
            }
            Found::Several(objects) => {
                let running: Vec<ObjectSummary> = objects.iter().filter(|object| runs(object)).cloned().collect();
                if running.is_empty() { Found::Several(objects) } else { Found::of(running) }
            }
            found => found,
        }
    }

    /// Returns the image of an object, as the conversation or the cluster shows it; empty if it is not known.
    fn image_shown(&self, object: &ObjectSummary) -> String {
        if !object.image.is_empty() {
            return object.image.clone();
        }
        let shown = self.conversation.earlier.iter().rev().flat_map(refer::shown_objects);
        let same = |other: &&ObjectSummary| other.is_same(object) && !other.image.is_empty();
        let mut all = self.conversation.mentioned.iter().flatten().chain(shown).filter(same);
        all.next().map(|other| other.image.clone()).unwrap_or_default()
    }

    /// "The last lines before it died": of several pods, those that restarted.
    fn restarted_of(&self, found: Found, verb: Verb) -> Found {
        let Found::Several(objects) = found else { return found };
        let restarted: Vec<ObjectSummary> =
            objects.iter().filter(|object| object.restarts.is_some_and(|restarts| restarts > 0)).cloned().collect();
        let asks_for_restarts = verb == Verb::Logs && self.reading.previous
            || verb.is_read() && !self.reading.each && self.reading.has_any(&["restarted", "restarts"]);
        if asks_for_restarts && !restarted.is_empty() { Found::of(restarted) } else { Found::Several(objects) }
    }

    pub(super) fn found(&self, found: Found, verb: Verb) -> Targets {
        match self.of_image(self.restarted_of(self.unhealthy_of(found), verb), verb) {
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
}
