//! The verb and the kind of a request.

use crate::command::{Verb, is_name};
use crate::kinds::{Kind, is_plural, kind_word};

use super::vocabulary::VERBS;
use super::{Reading, Replicas};

impl Reading {
    pub(super) fn read_kind(&mut self, used: &mut [bool]) {
        for at in 0..self.words.len() {
            if used[at] {
                continue;
            }
            let word = self.word(at).to_owned();
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
            let is_better = self.kind.is_none() || matches!(self.kind.as_deref(), Some("namespaces" | "events"));
            used[at..(at + length).min(self.words.len())].fill(true);
            if is_better && !(kind.plural == "namespaces" && self.kind.is_some()) {
                self.is_plural = is_plural(&word);
                self.kind = Some(kind.plural);
            }
        }
    }

    pub(super) fn read_verb(&mut self, joined: &str, used: &mut [bool]) {
        let padded = format!(" {joined} ");
        let at_word = |phrase: &str| padded.find(&format!(" {phrase} "));
        // Of several verbs, a change counts before a read, and a specific read before "show" and "what".
        let rank = |verb: Verb| match verb {
            Verb::Get => 3,
            Verb::Describe => 2,
            verb if verb.is_read() => 1,
            _ => 0,
        };
        // "Before the restart", "how many restarts".
        let is_noun = |phrase: &str| {
            phrase == "restart"
                && ["the restart", "last restart", "each restart", "a restart", "every restart"]
                    .iter()
                    .any(|noun| at_word(noun).is_some())
        };
        let found: Vec<(&str, Verb)> =
            VERBS.iter().filter(|(phrase, _)| at_word(phrase).is_some() && !is_noun(phrase)).copied().collect();
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
            "wrong",
            "trouble",
            "issues",
            "stuck",
            "pending",
            "unhappy",
            "flapping",
            "dying",
        ]) || self.says("whats down")
            || self.says("what is down")
            || self.says("not running")
            || self.says("not ready")
            || self.says("not healthy");
        self.counts = self.says("how many") || self.says("number of");
        self.previous |= self.has_any(&["previous", "previously", "prev"]) && self.verb == Some(Verb::Logs)
            || [
                "before it died",
                "before it crashed",
                "before the crash",
                "before the restart",
                "before it restarted",
                "last run",
                "before that",
                "previous run",
                "before it was killed",
                "crashed container",
            ]
            .iter()
            .any(|phrase| self.says(phrase));
        self.imply_verb();
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

    /// "Scheduler replicas?", "count now", "hows it now": the state of an object.
    fn imply_from_question(&mut self) {
        let asks = self.is_question || self.has("now");
        let states = ["replicas", "count", "image", "version", "status", "staus"];
        if self.verb.is_some() || !asks || self.words.len() > 5 || self.replicas.is_some() {
            return;
        }
        let is_first = self.words.first().is_some_and(|word| matches!(&**word, "hows" | "how" | "count" | "replicas"));
        if self.has_any(&states) || is_first && self.has("now") {
            self.verb = Some(Verb::Get);
            self.is_implied = true;
            self.asks_state = true;
        }
    }

    /// Finds what a message asks for that has no verb of a command, or that means more than its verb.
    fn imply_verb(&mut self) {
        let is_weak = matches!(self.verb, None | Some(Verb::Get | Verb::Describe));
        let wants_more = self.has_any(&[
            "raise", "increase", "bump", "lower", "decrease", "reduce", "set", "change", "give", "make", "grow",
            "shrink", "up", "down", "take", "drop", "bring", "crank", "want", "need",
        ]);
        if is_weak && (!self.limits.is_empty() || !self.requests.is_empty()) && wants_more {
            self.verb = Some(Verb::SetResources);
        } else if is_weak && self.image.is_some() {
            let words = [
                "update",
                "upgrade",
                "deploy",
                "set",
                "change",
                "use",
                "switch",
                "bump",
                "roll",
                "ship",
                "put",
                "move",
                "release",
                "downgrade",
                "run",
            ];
            if self.has_any(&words) {
                self.verb = Some(Verb::SetImage);
            }
        } else if is_weak
            && self.version.is_some()
            && !self.is_question
            && (wants_more
                || self.has_any(&[
                    "roll",
                    "update",
                    "upgrade",
                    "deploy",
                    "use",
                    "switch",
                    "ship",
                    "put",
                    "move",
                    "release",
                    "downgrade",
                    "should",
                    "fix",
                ]))
        {
            self.verb = Some(Verb::SetImage);
        } else if is_weak && self.replicas.is_some() && wants_more && self.manifest.is_none() {
            self.verb = Some(Verb::Scale);
        } else if is_weak && self.manifest.is_some() {
            self.verb = Some(Verb::Apply);
        } else if is_weak && self.has_any(&["lines"]) && (self.tail.is_some() || self.previous) {
            self.verb = Some(Verb::Logs);
        } else if is_weak
            && self.has_any(&["cpu", "memory", "ram", "usage", "consuming"])
            && self.has_any(&[
                "usage",
                "using",
                "use",
                "uses",
                "consuming",
                "consumption",
                "most",
                "least",
                "much",
                "top",
            ])
            && !self.has_any(&["limit", "limits", "request", "requests"])
        {
            self.verb = Some(Verb::Top);
        } else if is_weak
            && self.has_any(&["rollout", "rollouts"])
            && self
                .has_any(&["status", "done", "finished", "complete", "progress", "how", "hows", "going", "state", "ok"])
        {
            self.verb = Some(Verb::RolloutStatus);
        } else if self.verb.is_none() && (self.unhealthy || (self.is_plural && self.words.len() <= 5)) {
            self.verb = Some(Verb::Get);
            self.is_implied = true;
        } else if is_weak && self.has("roll") && self.has("back") {
            self.verb = Some(Verb::RolloutUndo);
        } else if self.verb.is_none() && self.asks_for_state() {
            self.verb = Some(Verb::Get);
            self.is_implied = true;
        }
        self.imply_from_question();
        let is_setting = self.has_any(&["put", "set", "add", "tag", "stick", "mark"]) && !self.values.is_empty();
        if matches!(self.verb, None | Some(Verb::Get | Verb::Describe)) && is_setting {
            // Names of environment variables are in upper case.
            let is_env = self.values.keys().all(|name| !name.chars().any(|c| c.is_ascii_lowercase()));
            self.verb = Some(if is_env { Verb::SetEnv } else { Verb::Label });
        }
        if self.verb == Some(Verb::Scale) {
            if self.has_any(&["double"]) {
                self.replicas = Some(Replicas::Times(2));
            } else if self.has_any(&["halve", "half"]) {
                self.replicas = Some(Replicas::Half);
            }
        } else if self.has_any(&["double", "halve"]) && is_weak {
            self.verb = Some(Verb::Scale);
            self.replicas = Some(if self.has("double") { Replicas::Times(2) } else { Replicas::Half });
        }
        if self.verb == Some(Verb::Logs) && self.says("last line") {
            self.tail = Some(1);
        }
    }
}
