//! The verb and the kind of a request.

use crate::command::{Verb, is_name};
use crate::kinds::{Kind, is_plural, kind_word};

use super::arguments::number_of;
use super::vocabulary::VERBS;
use super::{Lexicon, Reading, Replicas};

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
            phrase == "restart"
                && !(gives && at_word("a restart").is_some())
                && ["the restart", "last restart", "each restart", "a restart", "every restart"]
                    .iter()
                    .any(|noun| at_word(noun).is_some())
                || phrase == "restart"
                    && (self.asks_about_restarts()
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
                "before it was killed",
                "crashed container",
            ]
            .iter()
            .any(|phrase| self.says(phrase));
        self.imply_verb();
    }

    /// Whether a message has the words of a change, also as a noun: "cancel the restart".
    pub(in crate::offline) fn mentions(&self, verb: Verb) -> bool {
        VERBS.iter().any(|(phrase, own)| *own == verb && self.says(phrase))
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

    /// "Scheduler replicas?", "count now", "hows it now": the state of an object.
    fn imply_from_question(&mut self) {
        let tells = ["tell me", "confirm the", "confirm its", "just tell", "let me know"]
            .iter()
            .any(|phrase| self.says(phrase));
        let asks = self.is_question || self.has("now") || tells;
        let states = ["replicas", "count", "image", "version", "status", "staus", "number", "tag", "state"];
        if self.verb.is_some() || !asks || self.words.len() > if tells { 12 } else { 5 } || self.replicas.is_some() {
            return;
        }
        let is_first = self.words.first().is_some_and(|word| matches!(&**word, "hows" | "how" | "count" | "replicas"));
        if self.has_any(&states) || is_first && self.has("now") {
            self.verb = Some(Verb::Get);
            self.is_implied = true;
            self.asks_state = true;
        }
    }

    /// "Stop anything new being scheduled on worker-2", "open it up for scheduling again".
    fn imply_scheduling(&mut self) {
        let schedules = self.has_any(&["schedule", "scheduled", "scheduling", "schedules"])
            || self.has_any(&["landing", "placed", "land", "lands"]) && self.has_any(&["on", "there"]);
        let is_weak = matches!(self.verb, None | Some(Verb::Get));
        if !schedules
            || !is_weak
            || self.has("why")
            || self.asks() && !self.asks_politely()
            || self.is_question && !self.asks_politely()
        {
            return;
        }
        // "Pods don't get scheduled on worker-2" is a complaint, not a request.
        let is_filler = |word: &str| {
            matches!(
                word,
                "ok" | "please"
                    | "pls"
                    | "now"
                    | "then"
                    | "so"
                    | "and"
                    | "hey"
                    | "can"
                    | "could"
                    | "you"
                    | "u"
                    | "we"
                    | "lets"
                    | "to"
                    | "just"
                    | "fine"
                    | "want"
                    | "need"
                    | "i"
            )
        };
        let is_order = |at: usize| at == 0 || is_filler(self.word(at - 1));
        let stops = (0..self.words.len()).any(|at| {
            let is_ban = matches!(self.word(at), "no" | "nothing") && matches!(self.word(at + 1), "new" | "more");
            let is_verb = matches!(self.word(at), "stop" | "prevent" | "block" | "avoid" | "dont" | "keep");
            is_order(at) && (is_verb || is_ban)
        });
        let opens = (0..self.words.len()).any(|at| {
            let is_verb =
                matches!(self.word(at), "open" | "allow" | "let" | "enable" | "reopen" | "unblock" | "return" | "make");
            let has_object =
                matches!(self.word(at + 1), "it" | "that" | "scheduling" | "pods" | "new" | "the" | "this" | "them");
            let is_negated = at > 0
                && matches!(
                    self.word(at - 1),
                    "not" | "dont" | "doesnt" | "didnt" | "wont" | "cant" | "never" | "to" | "does"
                );
            is_verb && has_object && !is_negated
        });
        self.verb = match (stops, opens) {
            (_, true) if !self.has_any(&["dont", "stop", "prevent"]) => Some(Verb::Uncordon),
            (true, _) => Some(Verb::Cordon),
            _ => self.verb,
        };
    }

    /// "Give web a second replica", "add a third one".
    fn imply_nth_replica(&mut self) {
        // "The edge one reduced to a single replica".
        let is_single = self
            .words
            .windows(2)
            .any(|pair| matches!(&*pair[0], "single" | "one") && matches!(&*pair[1], "replica" | "copy" | "instance"));
        let reduces = self.words.iter().enumerate().any(|(at, word)| {
            let is_told = at > 0
                && matches!(
                    self.word(at - 1),
                    "was" | "were" | "been" | "got" | "is" | "are" | "has" | "have" | "it" | "they" | "you"
                );
            matches!(&**word, "reduced" | "reduce" | "shrink" | "shrunk" | "lowered" | "brought") && !is_told
        });
        if is_single && reduces && matches!(self.verb, None | Some(Verb::Get)) && (!self.asks() || self.asks_politely())
        {
            (self.verb, self.replicas) = (Some(Verb::Scale), Some(Replicas::To(1)));
            return;
        }
        const NTH: [(&str, u32); 4] = [("second", 2), ("third", 3), ("fourth", 4), ("fifth", 5)];
        let gives = self.has_any(&["give", "add", "want", "need", "spin"]) || self.has("have") && self.asks_politely();
        let is_weak = matches!(self.verb, None | Some(Verb::Get)) && self.replicas.is_none();
        if !gives || !is_weak || self.asks() && !self.asks_politely() {
            return;
        }
        let wanted = (1..self.words.len()).find_map(|at| {
            let (_, number) = NTH.iter().find(|(word, _)| *word == self.word(at))?;
            let counts = self.word(at - 1) == "a" && super::references::is_replica(self.word(at + 1));
            counts.then_some(*number)
        });
        if let Some(number) = wanted {
            self.verb = Some(Verb::Scale);
            self.replicas = Some(Replicas::To(number));
        }
    }

    /// "Give v2 3", "park it at 0", "can we have two more runners": a number of replicas, without the word for it.
    fn imply_scale(&mut self) {
        let reads = self
            .has_any(&["show", "list", "get", "check", "see", "find", "fetch", "display", "what", "which", "status"]);
        let is_weak = self.verb.is_none() || self.verb == Some(Verb::Get) && !reads;
        let gives = self.has_any(&[
            "give", "put", "set", "make", "need", "want", "bring", "take", "have", "park", "crank", "bump", "drop",
            "run", "keep", "go", "up", "down", "turn", "dial", "shrink", "grow", "increase", "decrease", "raise",
            "lower", "reduce", "add", "move", "to",
        ]);
        let is_other = !self.values.is_empty() || self.image.is_some() || self.previous || self.manifest.is_some();
        let counts = self.replicas.is_some() && self.has_any(&["replicas", "copies", "instances"]);
        let is_relative = matches!(self.replicas, Some(Replicas::By(_))) || counts;
        if !is_weak
            || !gives && !is_relative
            || is_other
            || self.asks() && !self.asks_politely()
            || self.says("how many")
        {
            return;
        }
        let quantity = !self.limits.is_empty() || !self.requests.is_empty();
        if quantity || self.has_any(&["memory", "ram", "cpu", "logs", "log", "lines", "revision"]) {
            return;
        }
        if let Some(number) = self.amount() {
            self.replicas = Some(Replicas::To(number));
        }
        if self.replicas.is_none()
            && self.has_any(&["another", "extra"])
            && self.has_any(&["replica", "copy", "instance", "one", "pod"])
            && self.has_any(&["add", "need", "want", "give", "have"])
        {
            self.replicas = Some(Replicas::By(1));
        }
        if self.replicas.is_some() {
            self.verb = Some(Verb::Scale);
        }
    }

    /// "The queue is exploding, 8 please": a number at the end.
    fn imply_number_wanted(&mut self) {
        let Some(at) = self.words.len().checked_sub(2) else { return };
        let ends = matches!(self.word(at + 1), "please" | "pls" | "plz" | "then");
        if self.verb.is_none() && ends && number_of(self.word(at)).is_some() && self.names.is_empty() && !self.asks() {
            self.replicas = self.amount().map(Replicas::To);
            if self.replicas.is_some() {
                self.verb = Some(Verb::Scale);
            }
        }
    }

    /// Whether a question asks for something to be done: "can we have two more runners?"
    pub(in crate::offline) fn asks_politely(&self) -> bool {
        let mut words =
            self.words.iter().filter(|word| !matches!(&***word, "hey" | "hi" | "ok" | "so" | "and" | "please" | "pls"));
        let first = words.next().map_or("", String::as_str);
        let second = words.next().map_or("", String::as_str);
        matches!(first, "can" | "could" | "would" | "will" | "may") && matches!(second, "we" | "you" | "i" | "u")
            || matches!(first, "make" | "give" | "set" | "put" | "bring" | "scale")
    }

    /// Finds what a message asks for if it has no command verb, or means more than its verb.
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
            // "It should be web:1.9", but not "do we need web:1.9?"
            let is_statement = !self.asks() && !self.is_question;
            let is_wanted = self.has_any(&["should", "fix", "go", "make", "want", "need", "correct"]);
            if self.has_any(&words) || is_wanted && is_statement {
                self.verb = Some(Verb::SetImage);
            }
        } else if is_weak
            && self.version.is_some()
            && !self.is_question
            && (self.has_any(&["should", "change", "fix", "set", "use"])
                || !self.has_any(&[
                    "pushed",
                    "deployed",
                    "released",
                    "shipped",
                    "went",
                    "ago",
                    "since",
                    "yesterday",
                    "upgraded",
                ]))
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
                "eating",
                "eats",
                "hogging",
                "hogs",
                "hungry",
                "hungriest",
                "biggest",
                "heaviest",
                "highest",
                "taking",
                "takes",
                "eater",
                "load",
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
        } else if self.verb.is_none() && !self.previous && (self.unhealthy || (self.is_plural && self.words.len() <= 5))
        {
            self.verb = Some(Verb::Get);
            self.is_implied = true;
        } else if is_weak && self.has("roll") && self.has("back") {
            self.verb = Some(Verb::RolloutUndo);
        } else if self.verb.is_none() && self.asks_for_state() {
            self.verb = Some(Verb::Get);
            self.is_implied = true;
        }
        // "And cpu 500m".
        let is_quantity = !self.limits.is_empty() || !self.requests.is_empty();
        if self.verb.is_none() && is_quantity && self.words.len() <= 6 && !self.asks() && !self.is_question {
            self.verb = Some(Verb::SetResources);
        }
        // "What did its pod say?"
        let first = self.words.iter().find(|word| !matches!(&***word, "and" | "so" | "ok" | "but"));
        let asks_what = first.is_some_and(|word| matches!(&**word, "what" | "whats"))
            || [
                "show me what",
                "see what",
                "what does it say",
                "what does that say",
                "what did it say",
                "what did that say",
            ]
            .iter()
            .any(|phrase| self.says(phrase));
        let asks_what = asks_what && !self.says("how many");
        let says = self.has_any(&["say", "says", "saying", "complain", "complains", "complaining"])
            && !self.has_any(&["you", "i", "we", "they", "who", "runbook", "docs", "he", "she"]);
        if matches!(self.verb, None | Some(Verb::Get)) && asks_what && says {
            self.verb = Some(Verb::Logs);
        }
        self.imply_scheduling();
        // "Bring node-b back".
        let brings = self.has_any(&["bring", "put"]) && self.has("back");
        if matches!(self.verb, None | Some(Verb::Get))
            && brings
            && self.replicas.is_none()
            && self.version.is_none()
            && self.values.is_empty()
            && !self.asks()
        {
            self.verb = Some(Verb::RolloutUndo);
        }
        // "Customers complain. Go back!"
        let goes_back = ["go back", "step back", "back out", "back it out"]
            .iter()
            .any(|end| self.words.join(" ").ends_with(end) && !self.says(&format!("to {end}")));
        if goes_back && matches!(self.verb, None | Some(Verb::Get)) && !self.asks() && !self.is_question {
            self.verb = Some(Verb::RolloutUndo);
        }
        let throws = self.has_any(&["throw", "toss", "chuck"]) && self.has_any(&["away", "out"]);
        if throws && matches!(self.verb, None | Some(Verb::Get)) && !self.asks() && !self.is_question {
            self.verb = Some(Verb::Delete);
        }
        let goes = ["can go", "has to go", "must go"].iter().any(|phrase| self.says(phrase));
        if goes && matches!(self.verb, None | Some(Verb::Get)) && !self.asks() && !self.is_question {
            self.verb = Some(Verb::Delete);
        }
        let is_saying = |phrases: &[&str]| phrases.iter().any(|phrase| self.says(phrase));
        if self.replicas.is_none() && matches!(self.verb, None | Some(Verb::Get | Verb::Delete)) && !self.asks() {
            if is_saying(&["take one away", "one less", "one fewer", "take one off"]) {
                self.replicas = Some(Replicas::By(-1));
            } else if is_saying(&["add one", "one more replica", "one more copy", "one more of", "add another"]) {
                self.replicas = Some(Replicas::By(1));
            }
        }
        self.imply_nth_replica();
        self.imply_scale();
        self.imply_number_wanted();
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
        } else if is_weak && self.has("half") && self.has_any(&["cut", "reduce", "bring", "take"]) {
            self.verb = Some(Verb::Scale);
            self.replicas = Some(Replicas::Half);
        } else if self.has_any(&["double", "halve"]) && is_weak {
            self.verb = Some(Verb::Scale);
            self.replicas = Some(if self.has("double") { Replicas::Times(2) } else { Replicas::Half });
        }
        let is_off = [
            "shut down",
            "shut it down",
            "shut them down",
            "turn off",
            "turn it off",
            "switch off",
            "switch it off",
            "spin down",
            "take offline",
        ];
        if self.verb == Some(Verb::Scale) && self.replicas.is_none() && is_off.iter().any(|phrase| self.says(phrase)) {
            self.replicas = Some(Replicas::To(0));
        }
        if self.verb == Some(Verb::Scale) && self.replicas.is_none() {
            self.replicas = self.amount().map(Replicas::To);
        }
        if self.verb == Some(Verb::Logs) && self.says("last line") {
            self.tail = Some(1);
        }
    }
}
