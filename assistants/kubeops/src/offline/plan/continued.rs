//! Messages that continue what the conversation was about, without a request of their own.

use threadkeep::agent::ApprovalState;

use crate::cluster::ObjectSummary;
use crate::command::{Command, Verb};
use crate::kinds::{Kind, kind_word};
use crate::offline::answers;
use crate::offline::refer::{self, Found};
use crate::offline::words::{Description, Lexicon, Pick, descriptions, is_ordinary, read};

use super::checks::last_changed;
use super::{Next, Planner, reply};

impl Planner<'_> {
    /// Answers a message that has no verb.
    pub(super) fn without_verb(&self) -> Next {
        let reading = &self.reading;
        if let Some(next) = self.logs_again() {
            return next;
        }
        if let Some(requested) = answers::pending(self.conversation) {
            let kind = requested.command.kind.as_deref();
            let is_same = reading.kind.as_deref().is_some_and(|own| Some(own) == kind)
                || reading.names.iter().any(|name| requested.command.name.as_ref() == Some(name));
            let is_elsewhere = reading.namespace.is_some() && reading.namespace != requested.command.namespace;
            if is_same && !is_elsewhere {
                return reply(answers::waiting(requested));
            }
        }
        if let Some(text) = self.unknown_subject() {
            return reply(text);
        }
        if let Some(text) = self.continued_comparison() {
            return reply(text);
        }
        if let Some(verb) = self.continued_verb() {
            return self.of_verb(verb);
        }
        // "What's the image on the one with 4 replicas?"
        if reading.state.is_some() && reading.asks() {
            return self.of_verb(Verb::Get);
        }
        // "Why is the first one failing?", and then "and the second?"
        if reading.pick.is_some() && self.continues_diagnosis() {
            return self.diagnose();
        }
        if (reading.pick.is_some() || self.names_in_full())
            && let Some(verb) = self.continued_pick()
        {
            return self.of_verb(verb);
        }
        // "The pods of checkout".
        if reading.pick.is_none() && reading.is_plural && reading.names.len() == 1 {
            return self.of_verb(Verb::Get);
        }
        if reading.pick.is_some() || (reading.kind.is_some() && !reading.names.is_empty()) {
            return self.of_verb(Verb::Describe);
        }
        if reading.kind.is_some() && reading.is_plural || self.asks_for_namespace() {
            return self.of_verb(Verb::Get);
        }
        let is_known = |name: &String| refer::known(self.conversation, name, Verb::Describe, reading) != Found::None;
        if reading.words.len() <= 6 && reading.names.iter().any(is_known) {
            return self.of_verb(Verb::Describe);
        }
        reply(answers::NOT_UNDERSTOOD)
    }

    /// "Which of them is behind?"
    pub(super) fn which_version(&self) -> Option<String> {
        let Some((meant, other)) = refer::by_version(&self.conversation.earlier, &self.reading) else {
            let (meant, other) = refer::by_creation(&self.conversation.earlier, &self.reading)?;
            let degree = if self.reading.has_any(&["older", "oldest", "eldest"]) { "older" } else { "newer" };
            return Some(format!(
                "{} is the {degree} one, created at {}; {} was created at {}.",
                meant.name, meant.created, other.name, other.created
            ));
        };
        let place = |object: &ObjectSummary| format!("{} in {}", object.name, object.namespace);
        let degree = if self.reading.has_any(&["newer", "newest", "ahead"]) { "newer" } else { "older" };
        Some(format!(
            "{} has the {degree} image, {}; {} has {}.",
            place(&meant),
            meant.image,
            place(&other),
            other.image
        ))
    }

    /// "Is there another one, for redis?", after a list of secrets: no object of another kind is meant.
    pub(super) fn no_other_one(&self) -> Option<String> {
        let reading = &self.reading;
        let asks = ["another one", "a second one", "there one"].iter().any(|phrase| reading.says(phrase));
        let [name] = &reading.names[..] else { return None };
        let is_read =
            reading.verb.is_none_or(|verb| verb == Verb::Get) && reading.kind.is_none() && reading.pick.is_none();
        if !asks || !is_read || !(reading.is_question || reading.asks()) {
            return None;
        }
        let listed =
            self.conversation.earlier.iter().rev().map(refer::subjects).find(|subjects| !subjects.is_empty())?;
        let kind = listed[0].kind.clone();
        let lexicon = Lexicon::of(self.conversation);
        let shown = self.conversation.earlier.iter().flat_map(refer::shown_objects);
        let mut all = shown.chain(self.conversation.mentioned.iter().flatten()).filter(|object| object.kind == kind);
        let is_known = all.any(|object| refer::fit_of(object, name, &lexicon).is_some());
        let singular = Kind::find(&kind).map_or(kind, |kind| kind.singular);
        (!is_known).then(|| format!("No: I found no {singular} like {name}."))
    }

    /// "Is there a fourth in that list?"
    pub(super) fn is_in_list(&self) -> Option<String> {
        const NTH: [(&str, usize); 5] = [("second", 2), ("third", 3), ("fourth", 4), ("fifth", 5), ("sixth", 6)];
        let (_, nth) = NTH.iter().find(|(word, _)| self.reading.says(&format!("is there a {word}")))?;
        let is_read = self.reading.verb.is_none_or(|verb| verb == Verb::Get) && self.reading.names.is_empty();
        let list = self.conversation.earlier.iter().rev().map(refer::listed).find(|list| list.len() > 1)?;
        (is_read && list.len() < *nth).then(|| format!("No: the list has only {}.", list.len()))
    }

    /// "Logs of the old one", after a pod was deleted: the pod that is gone.
    pub(super) fn gone_one(&self) -> Option<String> {
        let reading = &self.reading;
        let is_meant = ["the old one", "the old pod", "the deleted one", "the deleted pod"]
            .iter()
            .any(|phrase| reading.says(phrase));
        let is_read =
            reading.verb.is_some_and(|verb| matches!(verb, Verb::Logs | Verb::Describe | Verb::Events | Verb::Get));
        let (_, _, step) = answers::last_change(self.conversation)?;
        let deleted = &step.filter(|step| step.command.verb == Verb::Delete && step.outcome.is_some())?.command;
        let name = deleted
            .name
            .as_ref()
            .filter(|_| is_meant && is_read && reading.act.is_none() && reading.names.is_empty())?;
        Some(format!("{name} is gone: it was deleted, so I cannot read it any more."))
    }

    /// "And its twin in tools": the object of the same kind and name in that namespace, also if there is none.
    pub(super) fn twin_elsewhere(&self) -> Option<Next> {
        let reading = &self.reading;
        let place = reading.namespace.clone().filter(|place| self.conversation.namespaces.contains(place))?;
        let is_meant =
            ["its twin", "the twin", "its counterpart", "the counterpart", "one of that name", "one with that name"]
                .iter()
                .any(|phrase| reading.says(phrase));
        if !is_meant || !reading.verb.is_none_or(Verb::is_read) || !reading.names.is_empty() {
            return None;
        }
        let Found::One(object) = refer::focus(self.conversation, Verb::Describe, None, None) else { return None };
        let command = self.command(Verb::Get, &object);
        Some(self.run_or_answer(vec![Command { namespace: Some(place), ..command }]))
    }

    /// "And the postgres one?", "logs of the ldap one": a description that fits nothing means no object that was spoken of.
    pub(super) fn nothing_described(&self, message: &str) -> Option<String> {
        let lexicon = Lexicon::of(self.conversation);
        let is_read = self.reading.verb.is_none_or(Verb::is_read);
        self.conversation.mentioned.as_ref()?;
        let [description] = &descriptions(message, &lexicon)[..] else { return None };
        if let Some(text) = self.nothing_at(description) {
            return Some(text);
        }
        let [word] = &description.words[..] else { return None };
        let ends_with_one = description.kind.is_none() && is_read && self.reading.says(&format!("the {word} one"));
        // "And the redis deployment next to it?"
        let is_kind = |next: &String| kind_word(next).map(|kind| kind.plural) == description.kind;
        let is_place = lexicon.has_namespace(word)
            || lexicon.namespace_like(word).is_some()
            || matches!(&**word, "prod" | "production" | "stage" | "staging" | "stg" | "dev" | "development");
        let of_kind = description.kind.is_some()
            && !description.is_plural
            && !is_place
            && (self.reading.pronoun || !self.reading.names.contains(word))
            && description.state.is_none()
            && description.position.is_none()
            && !description.is_other
            && self.reading.act.is_none()
            && self.reading.words.windows(3).any(|three| three[0] == "the" && three[1] == *word && is_kind(&three[2]));
        let ends_with_one = ends_with_one || of_kind;
        let shown = self.conversation.earlier.iter().flat_map(refer::shown_objects);
        let mut all = shown.chain(self.conversation.mentioned.iter().flatten());
        let fits = all.any(|object| {
            refer::fit_of(object, word, &lexicon).is_some() || crate::cluster::likeness(&object.name, word).is_some()
        });
        let is_known = fits || lexicon.linked(word).is_some() || is_ordinary(word) || kind_word(word).is_some();
        (ends_with_one && !is_known && !description.is_excluded).then(|| {
            format!("I found nothing like {word}: there is no such object (not found). Which one do you mean?")
        })
    }

    /// "The third deployment", after a list of two.
    fn nothing_at(&self, description: &Description) -> Option<String> {
        let Some(Pick::At(at)) = description.position else { return None };
        let is_plain = description.words.is_empty() && description.state.is_none() && !description.is_excluded;
        let has_kind = |object: &ObjectSummary| description.kind.as_ref().is_none_or(|kind| *kind == object.kind);
        let lists = self.conversation.earlier.iter().rev().map(refer::listed);
        let lists: Vec<Vec<ObjectSummary>> = lists.filter(|list| list.len() > 1 && list.iter().all(has_kind)).collect();
        let newest = lists.first().filter(|_| is_plain && at > 1 && self.reading.picks.is_empty())?;
        // Objects that were spoken of one after the other may be counted, too.
        let is_short = lists.iter().all(|list| list.len() <= at);
        is_short.then(|| format!("There is no such one: the list has only {}. Which one do you mean?", newest.len()))
    }

    /// "What about perf", if the cluster has nothing of that name.
    pub(super) fn unknown_subject(&self) -> Option<String> {
        let reading = &self.reading;
        let ["what" | "how", "about", subject] = reading.words.iter().map(String::as_str).collect::<Vec<_>>()[..]
        else {
            return None;
        };
        let is_unknown = reading.names.is_empty()
            && reading.namespace.is_none()
            && reading.kind.is_none()
            && reading.pick.is_none()
            && reading.unknown == 1
            && self.conversation.mentioned.is_some();
        is_unknown
            .then(|| format!("I found nothing called {subject}: there is no namespace and no object of that name."))
    }

    /// "Is there a new one?", after a pod was deleted: the pods of its namespace.
    pub(super) fn asks_for_replacement(&self) -> Option<Next> {
        let reading = &self.reading;
        let asks = ["a new one", "a new pod", "new one yet", "a replacement", "a fresh one"]
            .iter()
            .any(|phrase| reading.says(phrase));
        let is_read = reading.verb.is_none_or(Verb::is_read) && reading.names.is_empty();
        let recent = self.conversation.earlier.iter().rev().take(4).flat_map(|exchange| &exchange.requested);
        let deleted = recent
            .map(|requested| &requested.command)
            .find(|command| command.verb == Verb::Delete && command.kind.as_deref() == Some("pods"))?;
        let list =
            Command { kind: Some("pods".to_owned()), namespace: deleted.namespace.clone(), ..Command::new(Verb::Get) };
        (asks && reading.asks() && !reading.has("why") && is_read).then(|| self.run_or_answer(vec![list]))
    }

    /// "Do it after all", "request it again": the change that was denied or taken back, as a new request.
    pub(super) fn refused_change_again(&self) -> Option<Next> {
        let asks = ["after all", "do it anyway", "request it again", "ask again"];
        let is_meant = asks.iter().any(|phrase| self.reading.says(phrase)) && !self.reading.is_question;
        let last = self.conversation.earlier.iter().rev().take(4).find(|exchange| !exchange.requested.is_empty())?;
        let [only] = &last.requested[..] else { return None };
        let is_refused = matches!(only.state, ApprovalState::Denied | ApprovalState::Void | ApprovalState::Expired);
        (is_meant && is_refused).then(|| Next::Run(vec![Command { basis: None, ..only.command.clone() }]))
    }

    pub(super) fn continues_diagnosis(&self) -> bool {
        let last = self.conversation.earlier.last().filter(|last| last.requested.is_empty());
        last.is_some_and(|last| {
            let said = read(&last.said, &Lexicon::of(self.conversation));
            said.has("why") && !last.steps.is_empty() && self.reading.words.len() <= 6
        })
    }

    /// Whether a message names one object by its kind, name and namespace.
    pub(super) fn names_in_full(&self) -> bool {
        let reading = &self.reading;
        let asks = reading.has_any(&["how", "which", "what", "whats", "when", "where"]);
        let is_short = reading.without_what_is_excluded().words.len() <= 9 && !asks;
        is_short
            && reading.kind.is_some()
            && reading.names.len() == 1
            && reading.namespace.is_some()
            && !reading.is_plural
    }

    /// Returns the words of a message after those that only open it.
    fn words_that_follow(&self) -> Vec<String> {
        let is_filler =
            |word: &&String| matches!(&***word, "ok" | "okay" | "good" | "great" | "cool" | "thanks" | "right" | "so");
        self.reading.words.iter().skip_while(is_filler).cloned().collect()
    }

    /// "No, the web one", "not that one, the web one": another object instead of the one that was looked at.
    fn replaces_object(&self) -> bool {
        let first = self.words_that_follow().first().cloned().unwrap_or_default();
        let corrects =
            matches!(&*first, "no" | "nope" | "nah" | "not" | "sorry" | "wait" | "actually" | "oops" | "rather");
        corrects || self.reading.has_any(&["instead", "meant"]) || self.reading.says("i mean")
    }

    /// "Now the other one" after logs asks for the logs of the other object, and "ok the first instead" repeats a request that was refused.
    pub(super) fn continued_pick(&self) -> Option<Verb> {
        // "Ok then the other one", after a request that was denied or taken back.
        let refused = last_changed(self.conversation).filter(|changed| {
            let is_newest = self.conversation.earlier.last().is_some_and(|last| std::ptr::eq(last, *changed));
            is_newest || self.replaces_object()
        });
        if let Some([only]) = refused.map(|changed| &changed.requested[..]) {
            let has_ended = matches!(only.state, ApprovalState::Denied | ApprovalState::Void | ApprovalState::Expired);
            return Some(only.command.verb).filter(|_| has_ended && self.reading.words.len() <= 6);
        }
        let last = self.conversation.earlier.last().filter(|last| last.requested.is_empty())?;
        let verb = last.steps.iter().rev().map(|step| step.command.verb).find(|verb| *verb != Verb::Find)?;
        let continues = self.words_that_follow().first().is_some_and(|word| {
            matches!(&**word, "and" | "now" | "then" | "what" | "same" | "ditto" | "likewise" | "of" | "from" | "for")
        });
        // "The last in the list too".
        let continues = continues || self.reading.words.last().is_some_and(|word| matches!(&**word, "too" | "also"));
        // "And the other job, is it finished?"
        let asks_state = self.reading.is_question
            && self.reading.has_any(&[
                "finish",
                "finished",
                "done",
                "complete",
                "completed",
                "ok",
                "ready",
                "running",
                "fine",
            ]);
        let verb = if asks_state { Verb::Describe } else { verb };
        let kinds = refer::kinds_of(verb);
        let applies = self.reading.kind.as_deref().is_none_or(|kind| kinds.is_none_or(|kinds| kinds.contains(&kind)));
        let is_look = matches!(verb, Verb::Logs | Verb::Describe | Verb::Events);
        ((continues || self.replaces_object()) && applies && is_look).then_some(verb)
    }

    /// "And redis-2?" after logs asks for the logs of the other object.
    pub(super) fn continued_verb(&self) -> Option<Verb> {
        let reading = &self.reading;
        let words = self.words_that_follow();
        // "Now lobby".
        let continues = words.len() <= 4
            && reading.names.len() == 1
            && (self.replaces_object()
                || ["and", "what about", "how about", "also", "now", "then", "next"].iter().any(|cue| {
                    let starts = cue.split(' ').zip(&words).all(|(cue, word)| cue == *word);
                    starts && words.len() > cue.split(' ').count()
                }));
        let last = self.conversation.earlier.last().filter(|last| continues && last.requested.is_empty())?;
        let verb = last.steps.iter().rev().map(|step| step.command.verb).find(|verb| *verb != Verb::Find)?;
        matches!(
            verb,
            Verb::Get | Verb::Logs | Verb::Describe | Verb::Events | Verb::RolloutStatus | Verb::RolloutHistory
        )
        .then_some(verb)
    }
}
