//! Verbs that a message only implies: "give web a second replica", "open it up for scheduling again", "hows it now".

use crate::command::Verb;

use super::arguments::number_of;
use super::{Reading, Replicas};

impl Reading {
    /// "Scheduler replicas?", "count now", "hows it now": the state of an object.
    fn imply_from_question(&mut self) {
        let tells = ["tell me", "confirm the", "confirm its", "just tell", "let me know"]
            .iter()
            .any(|phrase| self.says(phrase));
        let asks = self.is_question || self.has("now") || tells;
        let states = [
            "replicas", "count", "counts", "image", "images", "version", "status", "staus", "number", "numbers", "tag",
            "state",
        ];
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
        // "8 for it".
        let gives = gives || self.words.len() <= 5 && self.says("for it") && !self.is_question;
        // "Broker should be at 3".
        let gives =
            gives || self.has("should") && self.has_any(&["at", "have"]) && !self.has_any(&["still", "already"]);
        let is_other = !self.values.is_empty() || self.image.is_some() || self.previous || self.manifest.is_some();
        // "1 replica is enough for that".
        let is_enough = self.has_any(&["enough", "suffices"]) && !self.has("not");
        let counts = self.replicas.is_some() && (self.has_any(&["replicas", "copies", "instances"]) || is_enough);
        let is_relative = matches!(self.replicas, Some(Replicas::By(_))) || counts;
        // "Both have 4" states a number.
        let states = self.words.windows(3).any(|three| {
            matches!(&*three[0], "both" | "they" | "all" | "these" | "those" | "it")
                && matches!(&*three[1], "have" | "has" | "had" | "run" | "runs")
                && number_of(&three[2]).is_some()
        });
        if !is_weak
            || states
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
        // "Give it as many as docs has": the number is that of another object.
        let is_number_of_another =
            self.has("same") && self.has("as") && self.has_any(&["number", "count", "amount", "replicas"]);
        let is_like_another =
            (self.says("as many") || is_number_of_another) && self.has_any(&["give", "make", "set", "put", "bring"]);
        if self.replicas.is_some() || is_like_another {
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
    pub(super) fn imply_verb(&mut self) {
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
            && !self.has_any(&["limit", "limits", "request", "requests", "allowed", "may"])
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
        // "History?", after a look at a deployment.
        let is_short = self.words.len() <= 3 && self.names.is_empty();
        if is_short && matches!(self.verb, None | Some(Verb::Get)) && self.has_any(&["history", "revisions"]) {
            (self.verb, self.pronoun) = (Some(Verb::RolloutHistory), true);
        }
        // "Make that as big as the one in staging".
        let gives = self.has_any(&["make", "bring", "set", "get", "put"]);
        if self.says("as big as") && gives && matches!(self.verb, None | Some(Verb::Get)) && !self.asks() {
            self.verb = Some(Verb::Scale);
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
        let takes = self.has_any(&["take", "remove", "drop"]) && self.has_any(&["away", "off"]);
        if (self.replicas.is_none() || takes)
            && (matches!(self.verb, None | Some(Verb::Get | Verb::Delete)) || takes && self.verb == Some(Verb::Scale))
            && (!self.asks() || self.asks_politely())
            && let Some(step) = self.step()
        {
            self.replicas = Some(Replicas::By(step));
            // "Remove a replica" deletes no object.
            self.verb = self.verb.filter(|verb| *verb != Verb::Delete);
        }
        self.imply_nth_replica();
        // "What is its memory limit?"
        let asks_limit = self.has_any(&["limit", "limits"]) && self.limits.is_empty() && self.requests.is_empty();
        let is_of_object = self.pronoun || !self.names.is_empty() || self.has("its");
        if asks_limit && is_of_object && !self.is_plural && matches!(self.verb, None | Some(Verb::Get)) && self.asks() {
            self.verb = Some(Verb::Describe);
        }
        // "Bring it back up with 2".
        let has_number = ["with", "at", "to"]
            .iter()
            .any(|word| self.words.windows(2).any(|pair| pair[0] == *word && number_of(&pair[1]).is_some()))
            || self.words.windows(3).any(|three| {
                // "Put it back to the 3 it had at the start".
                three[0] == "to" && three[1] == "the" && three[2] != "one" && number_of(&three[2]).is_some()
            });
        // "Set it back to 3".
        let sets = self.has_any(&["set", "put", "bring", "take", "scale"]) && self.has("back");
        let is_revision = self.has_any(&["revision", "version", "roll", "rollback", "rollout"]);
        if self.verb == Some(Verb::RolloutUndo) && (self.says("back up") || sets && !is_revision) && has_number {
            self.replicas = self.amount().map(Replicas::To);
            self.verb = self.replicas.map(|_| Verb::Scale).or(self.verb);
        }
        self.imply_scale();
        self.imply_number_wanted();
        self.imply_from_question();
        // "Go back to 1.8".
        let returns = self.says("back to") && self.has_any(&["go", "set", "put", "switch", "move"]);
        if matches!(self.verb, None | Some(Verb::Get | Verb::RolloutUndo)) && returns && self.version.is_some() {
            self.verb = Some(Verb::SetImage);
            self.pronoun = true;
        }
        // "Try the other one with api:2.1".
        let tries = self.has_any(&["try", "run", "use"]) && self.image.is_some() && self.has("with");
        if matches!(self.verb, None | Some(Verb::Get)) && tries && (!self.asks() || self.asks_politely()) {
            self.verb = Some(Verb::SetImage);
        }
        let is_setting = self.has_any(&["put", "set", "add", "tag", "stick", "mark"]) && !self.values.is_empty();
        if matches!(self.verb, None | Some(Verb::Get | Verb::Describe)) && is_setting {
            // Names of environment variables are in upper case.
            let is_env = self.values.keys().all(|name| !name.chars().any(|c| c.is_ascii_lowercase()));
            self.verb = Some(if is_env { Verb::SetEnv } else { Verb::Label });
        }
        self.read_relative_amount();
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
        if matches!(self.verb, None | Some(Verb::Logs)) && self.says("last line") && self.tail.is_none() {
            self.tail = Some(1);
        }
    }
}
