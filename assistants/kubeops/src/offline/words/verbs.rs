//! The verb and the kind of a request.

use crate::command::{Verb, is_name};
use crate::kinds::{Kind, is_plural, kind_word};

use super::vocabulary::VERBS;
use super::{Lexicon, Reading};

impl Reading {
    pub(super) fn read_kind(&mut self, lexicon: &Lexicon, used: &mut [bool]) {
        for at in 0..self.words.len() {
            if used[at] {
                continue;
            }
            let word = self.word(at).to_owned();
            // "The ingress one" is `ingress-proxy`.
            if self.word(at + 1) == "one" && lexicon.is_complete() && lexicon.linked(&word).is_some() {
                continue;
            }
            // "Describe deployment cms", "which image does cms use?": an object that is called like the short form of a kind.
            let is_full_kind = Kind::find(&word).is_some_and(|kind| kind.plural == word || kind.singular == word);
            let follows_kind = at > 0 && kind_word(self.word(at - 1)).is_some_and(|_| !is_plural(self.word(at - 1)));
            if lexicon.has(&word) && kind_word(&word).is_some() && (follows_kind || !is_full_kind) {
                used[at] = true;
                self.names.push(word);
                continue;
            }
            // "Describe the jobs deployment": an object that is called like a kind.
            if is_plural(&word)
                && kind_word(self.word(at + 1)).is_some_and(|_| !is_plural(self.word(at + 1)))
                && lexicon.has(&word)
            {
                used[at] = true;
                self.names.push(word);
                continue;
            }
            if let Some((kind, name)) = word.split_once('/')
                && let Some(found) = Kind::find(kind)
                && is_name(name)
            {
                used[at] = true;
                self.kind = Some(found.plural);
                self.names.push(name.to_owned());
                continue;
            }
            let pair = format!("{word} {}", self.word(at + 1));
            let (found, length) = match (kind_word(&pair), kind_word(&word)) {
                (Some(kind), _) => (Some(kind), 2),
                (None, kind) => (kind, 1),
            };
            let Some(kind) = found else { continue };
            if self.is_subject_after_change(at) {
                used[at] = true;
                continue;
            }
            let is_better = self.kind.is_none() || matches!(self.kind.as_deref(), Some("namespaces" | "events"));
            used[at..(at + length).min(self.words.len())].fill(true);
            if is_better && !(kind.plural == "namespaces" && self.kind.is_some()) {
                self.is_plural = is_plural(&word);
                self.kind = Some(kind.plural);
            }
        }
    }

    /// "Not the deployment, only the pod": the kind that is left counts.
    pub(super) fn take_kind_of_rest(&mut self) {
        let names_kind = |word: &String| kind_word(word).is_some_and(|kind| Some(&kind.plural) == self.kind.as_ref());
        if self.words.iter().any(names_kind) {
            return;
        }
        if let Some(word) = self.words.iter().find(|word| kind_word(word).is_some()) {
            self.is_plural = is_plural(word);
            self.kind = kind_word(word).map(|kind| kind.plural);
        }
    }

    /// "Kill it, the deployment will bring a fresh one": a remark about another object after the change that is asked for.
    fn is_subject_after_change(&self, at: usize) -> bool {
        const PREDICATES: [&str; 24] = [
            "will",
            "would",
            "wont",
            "should",
            "brings",
            "creates",
            "recreates",
            "makes",
            "starts",
            "spawns",
            "replaces",
            "keeps",
            "handles",
            "takes",
            "gets",
            "does",
            "can",
            "controller",
            "is",
            "has",
            "restarts",
            "respawns",
            "ll",
            "schedules",
        ];
        let has_article = at > 0 && matches!(self.word(at - 1), "the" | "its" | "our" | "my" | "their");
        let begins_change = |start: usize| super::is_change_phrase(&self.words[start..]);
        has_article && PREDICATES.contains(&self.word(at + 1)) && (0..at).any(begins_change)
    }

    pub(super) fn read_verb(&mut self, joined: &str, used: &mut [bool]) {
        let padded = format!(" {joined} ");
        let at_word = |phrase: &str| padded.find(&format!(" {phrase} "));
        // Of several verbs, a change takes precedence over a read, and a specific read over "show" and "what".
        let rank = |verb: Verb| match verb {
            Verb::Get => 3,
            Verb::Describe => 2,
            verb if verb.is_read() => 1,
            _ => 0,
        };
        // "Before the restart", "how many restarts".
        let is_noun = |phrase: &str| {
            let gives = self.has_any(&["give", "do", "needs", "need", "try", "trigger", "perform", "want"]);
            // "Pods in events", "the first in the list".
            let is_place = self.namespace.as_deref() == Some(phrase) && self.says(&format!("in {phrase}"));
            let is_list = phrase == "list" && ["the list", "that list", "your list"].iter().any(|noun| self.says(noun));
            is_place
                || is_list
                || phrase == "restart"
                    && !(gives && at_word("a restart").is_some())
                    && ["the restart", "last restart", "each restart", "a restart", "every restart"]
                        .iter()
                        .any(|noun| at_word(noun).is_some())
                || phrase == "restart"
                    && (self.asks_about_restarts()
                        || self.counts_restarts()
                        || at_word("restart count").is_some()
                        || at_word("restart counts").is_some())
        };
        // "Back to the previous one, describe": an object that was spoken of before, unless something is put back.
        let puts = self.has_any(&[
            "put", "set", "roll", "rolled", "bring", "switch", "change", "take", "move", "turn", "revert", "undo",
            "version", "image", "revision",
        ]);
        let goes_to_object = ["previous one", "previous pod", "one before", "last one", "other one", "first one"]
            .iter()
            .any(|phrase| self.says(phrase));
        let is_return = |phrase: &str| phrase.starts_with("back to") && goes_to_object && !puts;
        let found: Vec<(&str, Verb)> = VERBS
            .iter()
            .filter(|(phrase, _)| at_word(phrase).is_some() && !is_noun(phrase) && !is_return(phrase))
            .copied()
            .collect();
        let best = found.iter().min_by_key(|(_, verb)| rank(*verb)).copied();
        self.verb = best.map(|(_, verb)| verb);
        for (phrase, _) in &found {
            for (at, word) in self.words.iter().enumerate() {
                if phrase.split(' ').any(|part| part == word) && !matches!(&**word, "it" | "that") {
                    used[at] = true;
                }
            }
        }
        self.unhealthy = self.has_any(&[
            "crashing",
            "notready",
            "crash",
            "crashlooping",
            "crashloopbackoff",
            "failing",
            "failed",
            "unhealthy",
            "broken",
            "problem",
            "problems",
            "sick",
            "dead",
            "evicted",
            "oomkilled",
            "imagepullbackoff",
            "trouble",
            "issues",
            "stuck",
            "pending",
            "unhappy",
            "flapping",
            "dying",
        ]) || self.names_wrong()
            || self.says("whats down")
            || self.says("what is down")
            || self.says("not running")
            || [
                "not starting",
                "isnt starting",
                "wont start",
                "doesnt start",
                "cant start",
                "not coming up",
                "wont come up",
                "isnt coming up",
                "doesnt come up",
            ]
            .iter()
            .any(|phrase| self.says(phrase))
            || ["not up", "not fully up", "not fully ready", "not all ready", "isnt up", "arent up", "not all up"]
                .iter()
                .any(|phrase| self.says(phrase))
            || self.says("not ready")
            || self.says("not healthy");
        self.counts = self.says("how many") || self.says("number of");
        let ends = |word: &str| {
            ["crash", "died", "die", "kill", "restart", "oom", "death", "dying", "exit", "fell", "went", "termin"]
                .iter()
                .any(|end| word.starts_with(end))
        };
        // "Before it got killed", "the run that crashed".
        let is_before = self.words.iter().enumerate().any(|(at, word)| {
            let next = &self.words[(at + 1).min(self.words.len())..(at + 6).min(self.words.len())];
            matches!(&**word, "before" | "befor" | "run" | "instance") && next.iter().any(|word| ends(word))
                || matches!(&**word, "when" | "as")
                    && next.iter().take(3).any(|word| matches!(&**word, "dies" | "crashes" | "died" | "crashed"))
                || ends(word) && next.first().is_some_and(|next| matches!(&**next, "run" | "container" | "instance"))
        });
        self.previous |= is_before && self.verb.is_none() && (self.words.len() <= 6 || self.has_any(&["lines"]));
        let says_previous =
            self.has_any(&["previous", "previously", "prev"]) && matches!(self.verb, None | Some(Verb::Logs));
        self.previous |= says_previous
            || is_before && self.verb == Some(Verb::Logs)
            || [
                "before it died",
                "before it crashed",
                "before the crash",
                "before the restart",
                "before it restarted",
                "last run",
                "before that",
                "previous run",
                "run before",
                "before it was killed",
                "crashed container",
            ]
            .iter()
            .any(|phrase| self.says(phrase));
        self.imply_verb();
    }

    /// "What's wrong with it?", but not "wrong namespace", which corrects the message before.
    fn names_wrong(&self) -> bool {
        const MISTAKEN: [&str; 14] = [
            "namespace",
            "ns",
            "environment",
            "env",
            "cluster",
            "one",
            "pod",
            "deployment",
            "name",
            "word",
            "place",
            "channel",
            "thread",
            "way",
        ];
        (0..self.words.len()).any(|at| self.word(at) == "wrong" && !MISTAKEN.contains(&self.word(at + 1)))
    }

    /// Whether a message has the words of a change, also as a noun: "cancel the restart".
    pub(in crate::offline) fn mentions(&self, verb: Verb) -> bool {
        let is_noun = |at: usize| super::clauses::change_at(&self.words, at).is_some_and(|(own, _)| own == verb);
        VERBS.iter().any(|(phrase, own)| *own == verb && self.says(phrase)) || (0..self.words.len()).any(is_noun)
    }

    /// "How often did it restart?" asks for a number, and not whether a change was made.
    pub(super) fn counts_restarts(&self) -> bool {
        self.words.iter().any(|word| word.starts_with("restart"))
            && self.asks()
            && (self.has("often") || self.says("how many") || self.says("how frequently"))
    }

    /// "Is that pod still there?"
    pub(in crate::offline) fn asks_presence(&self) -> bool {
        self.asks() && self.has_any(&["still", "there", "exist", "exists", "around", "alive", "running", "left"])
    }

    /// "How often did each restart?": a question about pods, not about a change.
    fn asks_about_restarts(&self) -> bool {
        self.asks()
            && self.has_any(&["often", "times", "did", "does", "when", "many"])
            && !self.has_any(&["you", "we", "i", "can", "could", "please"])
    }

    /// Returns the changes that a message asks for, without those that it excludes. A drain includes a cordon.
    pub(in crate::offline) fn change_verbs(&self) -> Vec<Verb> {
        let mut verbs: Vec<Verb> = Vec::new();
        let is_first_meant = |phrase: &str| {
            // "Roll back" has other words for it, and a noun such as "the restart" is no request.
            self.says(phrase) && !["the", "a", "last", "each"].iter().any(|word| self.says(&format!("{word} {phrase}")))
        };
        for (phrase, verb) in VERBS.iter().filter(|(phrase, verb)| !verb.is_read() && is_first_meant(phrase)) {
            let is_part = VERBS.iter().any(|(other, _)| {
                other.len() > phrase.len() && self.says(other) && format!(" {other} ").contains(&format!(" {phrase} "))
            });
            if !is_part && !verbs.contains(verb) {
                verbs.push(*verb);
            }
        }
        // "Put it back in rotation".
        if verbs.len() > 1
            && self.verb.is_some_and(|verb| verb != Verb::RolloutUndo)
            && ["put it back", "bring it back", "take it back", "put that back"].iter().any(|phrase| self.says(phrase))
        {
            verbs.retain(|verb| *verb != Verb::RolloutUndo);
        }
        if verbs.contains(&Verb::Drain) {
            verbs.retain(|verb| *verb != Verb::Cordon);
        }
        verbs
    }

    /// Whether a message without a verb asks how something is: "is payouts ok", "billing still there?"
    pub(in crate::offline) fn asks_for_state(&self) -> bool {
        let (first, last) = (self.words.first(), self.words.last());
        let is_question =
            first.is_some_and(|word| matches!(&**word, "is" | "are" | "hows" | "how" | "whats" | "wheres"));
        let states =
            ["ok", "okay", "up", "there", "alive", "fine", "good", "doing", "back", "looking", "around", "stable"];
        let ends = last.is_some_and(|word| states.contains(&&**word));
        self.words.len() <= 8 && (is_question && self.has_any(&states) || ends && self.words.len() <= 5)
    }
}
