//! Messages that are not commands: greetings, consent, questions about the outcome.

use crate::command::Verb;

use super::vocabulary::{REFUSED, VERBS};
use super::{Act, Reading};

impl Reading {
    pub(super) fn find_act(&self, joined: &str) -> Option<Act> {
        let short = self.words.len() <= 6;
        let is_plain = self.kind.is_none() && self.names.is_empty() && self.replicas.is_none() && self.image.is_none();
        let starts = |phrases: &[&str]| {
            phrases.iter().any(|phrase| joined == *phrase || joined.starts_with(&format!("{phrase} ")))
        };
        // A deployment may be called `proxy`.
        let names_object = |word: &str| self.names.iter().any(|name| name == word) && !self.has("kubectl");
        if let Some((_, reason)) = REFUSED.iter().find(|(word, _)| self.is_command_word(word) && !names_object(word)) {
            return Some(Act::Refused(reason));
        }
        let is_change = self.verb.is_some_and(|verb| !verb.is_read());
        if is_change && self.names.is_empty() && self.words.len() <= 7 && self.says("what happened") {
            return Some(Act::Outcome);
        }
        // "What became of my delete request?"
        if ["what became of", "whatever became of", "whatever happened to", "what happened to my"]
            .iter()
            .any(|phrase| self.says(phrase))
            && self.has_any(&["request", "restart", "deletion", "change", "update", "rollback", "rollout"])
        {
            return Some(Act::Outcome);
        }
        if is_change && self.forbids() {
            return Some(Act::Spoken);
        }
        if is_change && (is_spoken_of(joined) || self.is_negated() || self.is_statement_of_return()) {
            return Some(Act::Spoken);
        }
        if is_change {
            return self.align_act();
        }
        if self.has_any(&["value", "values", "decode", "decoded", "plaintext", "cleartext", "reveal"])
            || (self.has_any(&["password", "token"]) && self.has_any(&["what", "whats", "show", "give"]))
        {
            return Some(Act::SecretValue);
        }
        const HISTORY: [&str; 41] = [
            "what you just ran",
            "what you ran",
            "what did you run",
            "what did you just run",
            "what you changed",
            "waiting for approval",
            "waiting for an approval",
            "waits for approval",
            "waits for an approval",
            "wait for approval",
            "waiting on approval",
            "waiting for me",
            "needs approval",
            "need approval",
            "pending approval",
            "pending approvals",
            "pending requests",
            "supposed to approve",
            "open requests",
            "what did you change",
            "what did we change",
            "what have you changed",
            "what have we changed",
            "what did you do",
            "what have you done",
            "what did we do",
            "what changed so far",
            "anything pending",
            "what was it before",
            "still open",
            "still waiting",
            "whats waiting",
            "what is waiting",
            "whats open",
            "anything waiting",
            "anything open",
            "what waits",
            "what changed",
            "was it before",
            "did it have before",
            "who approved",
        ];
        // "What did you actually change?"
        let is_adverb =
            |word: &&String| matches!(&***word, "actually" | "really" | "exactly" | "already" | "just" | "now");
        let plain: Vec<&str> = self.words.iter().filter(|word| !is_adverb(word)).map(String::as_str).collect();
        let plain = format!(" {} ", plain.join(" "));
        // "Remind me how many it had before".
        let asks_before = self.words.ends_with(&["before".to_owned()])
            && self.has_any(&["had", "was", "were"])
            && self.has_any(&["what", "how", "which", "remind"]);
        if asks_before || HISTORY.iter().any(|phrase| plain.contains(&format!(" {phrase} "))) {
            return Some(Act::History);
        }
        // "Was my request refused?"
        let decided = ["refused", "denied", "rejected", "declined", "approved", "accepted", "granted", "expired"];
        if self.asks() && self.has_any(&["request", "approval"]) && self.has_any(&decided) {
            return Some(Act::Outcome);
        }
        if self.forbids() && !self.is_question && !is_change {
            return Some(Act::Spoken);
        }
        const OUTCOMES: [&str; 52] = [
            "new one come up",
            "new pod come up",
            "new one there",
            "a fresh one",
            "there a new one",
            "the fresh one",
            "a replacement",
            "replacement there",
            "new pod name",
            "whats the new name",
            "its new name",
            "and the new name",
            "did it come up",
            "come back up",
            "came back",
            "back up",
            "back again",
            "back already",
            "back yet",
            "did it finish rolling",
            "did it work",
            "did that work",
            "is it gone",
            "is it done",
            "what happened",
            "any luck",
            "did it go through",
            "was it deleted",
            "has it been deleted",
            "did it scale",
            "is it deleted",
            "did it restart",
            "is it finished",
            "did it finish",
            "did you do it",
            "was it approved",
            "is that done",
            "did it succeed",
            "did it fail",
            "how did it go",
            "has it worked",
            "did they approve",
            "is it back",
            "is it up",
            "did the rollout",
            "is it fixed",
            "did it help",
            "what was the result",
            "whats the result",
            "still pending",
            "is it approved",
            "has it finished",
        ];
        let is_question_of_it = self.words.len() <= 5
            && starts(&["did it", "did that", "did they", "has it", "have they", "was it", "was that", "is that"])
            && !self.says("that one")
            && !(self.kind.is_some() && self.asks_presence())
            && matches!(self.verb, None | Some(Verb::Get | Verb::RolloutStatus));
        let is_participle = matches!(joined, "new name" | "the new name")
            || self.words.len() <= 2
                && ["scaled", "restarted", "deleted", "done", "gone", "finished", "worked", "rolled"]
                    .iter()
                    .any(|word| self.words.first().is_some_and(|first| first == word));
        let asks_outcome = OUTCOMES.iter().any(|phrase| self.says(phrase)) && !self.counts_restarts();
        let asks_presence =
            self.says("still there") && self.words.len() <= 5 && self.kind.is_none() && self.is_question;
        if self.names.is_empty()
            && (is_question_of_it || is_participle || asks_presence || self.asks_for_change_to_end())
            || asks_outcome && self.namespace.is_none()
        {
            return Some(Act::Outcome);
        }
        if ["not the same", "isnt the same", "arent the same", "not equal", "not identical"]
            .iter()
            .any(|phrase| self.says(phrase))
            && !self.is_plural
        {
            return Some(Act::Compare);
        }
        // "Different thing: how many replicas has web".
        let changes_topic = ["thing", "topic", "question", "subject", "matter"]
            .iter()
            .any(|noun| self.says(&format!("different {noun}")));
        if !changes_topic
            && self.has_any(&[
                "disagree",
                "disagrees",
                "differ",
                "differs",
                "different",
                "difference",
                "differences",
                "compare",
                "behind",
                "outdated",
            ])
            || (self.has_any(&["which", "who"]) || self.is_question && self.namespace.is_some())
                && self.has_any(&["newer", "older", "ahead"])
                && self.names.len() <= usize::from(self.has("which"))
        {
            return Some(Act::Compare);
        }
        if let Some(act) = self.align_act() {
            return Some(act);
        }
        if self.is_repeat(joined, is_plain) {
            return Some(Act::Repeat);
        }
        let is_same = self.namespace.is_some()
            && (self.has("same")
                || self.verb.is_none() && self.words.len() <= 4 && !self.pronoun && self.pick.is_none()
                || starts(&["and in", "and", "what about", "how about", "now in", "now", "also in", "in", "for"]))
            && self.kind.is_none()
            && self.names.is_empty()
            && !is_change
            && !self.unhealthy;
        if is_same {
            return Some(Act::Same);
        }
        // "Hm, what went wrong?"
        let asks_why = ["what went wrong", "whats gone wrong", "so why did it", "so why is it", "and why did it"]
            .iter()
            .any(|phrase| self.says(phrase))
            && self.words.len() <= 8;
        if asks_why && self.kind.is_none() && self.names.is_empty() && self.namespace.is_none() {
            return Some(Act::Why);
        }
        if short
            && (matches!(
                joined,
                "why"
                    | "reason"
                    | "the reason"
                    | "cause"
                    | "the cause"
                    | "how so"
                    | "and the reason"
                    | "because of what"
            ) || [
                "whats the reason",
                "what was the reason",
                "what was the cause",
                "what is the reason",
                "whats the cause",
                "what caused it",
                "what caused that",
                "why cant",
                "why isnt it",
                "why doesnt it",
                "why wont it",
                "why not",
            ]
            .iter()
            .any(|phrase| starts(&[phrase]))
                || starts(&[
                    "why is it",
                    "why is that",
                    "how come",
                    "why did it",
                    "why are they",
                    "whats wrong with it",
                    "what is wrong with it",
                    "why though",
                    "why tho",
                    "but why",
                    "why exactly",
                    "why does it",
                ])
                || joined == "whats wrong")
            && self.kind.is_none()
            && self.names.is_empty()
        {
            return Some(Act::Why);
        }
        self.social_act(joined, is_plain, short)
    }

    /// "Did the update go through?"
    fn asks_for_change_to_end(&self) -> bool {
        const CHANGES: [&str; 12] = [
            "update",
            "upgrade",
            "downgrade",
            "restart",
            "rollout",
            "rollback",
            "change",
            "scaling",
            "deletion",
            "scale",
            "deploy",
            "drain",
        ];
        const ENDS: [&str; 12] = [
            "through",
            "work",
            "worked",
            "succeed",
            "succeeded",
            "finish",
            "finished",
            "happen",
            "happened",
            "complete",
            "completed",
            "successful",
        ];
        let first = self.words.iter().find(|word| !matches!(&***word, "so" | "and" | "ok" | "but" | "well"));
        let is_question = first.is_some_and(|word| matches!(&**word, "did" | "was" | "has" | "is" | "were"));
        let names_change = self.words.windows(2).any(|pair| {
            matches!(&*pair[0], "the" | "that" | "this" | "my" | "your" | "our") && CHANGES.contains(&&*pair[1])
        });
        is_question && names_change && self.has_any(&ENDS)
    }

    /// "No one delete anything", "don't run it": a message that forbids something requests nothing.
    pub(in crate::offline) fn forbids(&self) -> bool {
        const REFUSALS: [&str; 9] = [
            "told him no",
            "told her no",
            "told them no",
            "i said no",
            "we said no",
            "i refused",
            "we refused",
            "not doing that",
            "wont do that",
        ];
        if REFUSALS.iter().any(|phrase| self.says(phrase)) || self.rules_out_noun() {
            return true;
        }
        (0..self.words.len()).any(|at| {
            let is_ban = matches!(self.word(at), "dont" | "never" | "nobody" | "noone")
                || self.word(at) == "not" && at > 0 && self.word(at - 1) == "do"
                || self.word(at) == "one" && at > 0 && self.word(at - 1) == "no";
            let asks_to = self.word(at + 1) == "forget";
            let next: Vec<usize> = (at + 1..(at + 3).min(self.words.len())).collect();
            let acts = next.iter().any(|next| {
                matches!(self.word(*next), "do" | "run" | "execute" | "touch" | "try")
                    || super::is_change_phrase(&self.words[*next..])
                    || VERBS
                        .iter()
                        .any(|(phrase, verb)| !verb.is_read() && self.word(*next).strip_suffix('s') == Some(phrase))
            });
            is_ban && acts && !asks_to
        })
    }

    /// "No delete at all", "no restarts today", but not "no, restart it".
    fn rules_out_noun(&self) -> bool {
        const AFTER: [&str; 14] = [
            "",
            "at",
            "please",
            "pls",
            "yet",
            "now",
            "today",
            "tonight",
            "here",
            "anywhere",
            "whatsoever",
            "allowed",
            "and",
            "no",
        ];
        (0..self.words.len()).any(|at| {
            let noun = self.word(at + 1);
            let stem = noun.strip_suffix("ing").or_else(|| noun.strip_suffix('s')).unwrap_or(noun);
            let is_change = VERBS.iter().any(|(phrase, verb)| {
                !verb.is_read() && (*phrase == noun || *phrase == stem || phrase.strip_suffix('e') == Some(stem))
            });
            self.word(at) == "no" && is_change && AFTER.contains(&self.word(at + 2))
        })
    }

    /// "It's back to how it was": a statement, unless something is asked for.
    fn is_statement_of_return(&self) -> bool {
        self.verb == Some(Verb::RolloutUndo)
            && !self.has_any(&[
                "put", "bring", "set", "take", "turn", "switch", "change", "scale", "roll", "rollback", "revert",
                "undo", "restore", "get", "go", "return", "move", "make", "reset", "want", "need", "should", "please",
                "pls", "kubectl", "rollout", "back",
            ])
            || self.verb == Some(Verb::RolloutUndo)
                && !self.has_any(&["put", "bring", "set", "roll", "revert", "undo", "restore", "change", "turn"])
                && self.words.first().is_some_and(|word| matches!(&**word, "its" | "theyre" | "everythings" | "thats"))
    }

    /// Whether the only change of a message is one that it rules out: "please don't restart it", but not "we don't need it, delete it".
    fn is_negated(&self) -> bool {
        let is_negation =
            |at: usize| matches!(self.word(at), "dont" | "never" | "not" | "without" | "wont" | "shouldnt" | "mustnt");
        let begins = |at: usize| super::is_change_phrase(&self.words[at..]);
        let starts: Vec<usize> = (0..self.words.len()).filter(|at| begins(*at)).collect();
        let ruled_out = |at: &usize| {
            let asks_to = *at > 1 && self.word(at - 1) == "to" && self.word(at - 2) == "forget";
            !asks_to && (at.saturating_sub(3)..*at).any(is_negation)
        };
        !starts.is_empty() && starts.iter().all(ruled_out)
    }

    fn align_act(&self) -> Option<Act> {
        let aligns = |word: &str| {
            let at = self.words.iter().position(|own| own == word);
            at.is_some_and(|at| {
                at == 0 || matches!(self.word(at - 1), "to" | "and" | "please" | "should" | "must" | "lets")
            })
        };
        let is_same = (self.has("same") && self.has_any(&["version", "image", "tag", "release"]))
            || ["match", "align", "sync"].into_iter().any(aligns);
        let does = self.has_any(&[
            "bring", "make", "update", "upgrade", "set", "get", "put", "move", "roll", "align", "sync", "match",
            "bump", "give",
        ]);
        (is_same && does && self.image.is_none()).then_some(Act::Align)
    }

    fn is_repeat(&self, joined: &str, is_plain: bool) -> bool {
        const REPEATS: [&str; 18] = [
            "again",
            "once more",
            "retry",
            "refresh",
            "try again",
            "one more time",
            "repeat",
            "repeat that",
            "whats left",
            "what is left",
            "show again",
            "list again",
            "and now",
            "list them again",
            "show them again",
            "check again",
            "same again",
            "what remains",
        ];
        let asks_names =
            matches!(joined, "names" | "their names" | "the names" | "list them" | "which ones" | "names please");
        // "Is it running again?" asks for the state, not for the last answer.
        let asks_value =
            self.asks() && self.has_any(&["image", "version", "tag", "replicas", "limit", "limits", "restarts"]);
        // "Describe it again": the object, which may be gone.
        let describes = self.verb == Some(Verb::Describe) && self.has("it");
        let asks_state = asks_value
            || describes
            || (joined.starts_with("is ") || joined.starts_with("are "))
                && self.has_any(&["running", "up", "back", "healthy", "ready", "ok", "okay", "fine", "alive"]);
        is_plain && asks_names
            || is_plain
                && !asks_state
                && self.namespace.is_none()
                && self.state.is_none()
                && self.pick.is_none()
                && !self.unhealthy
                && REPEATS.iter().any(|phrase| self.says(phrase))
                && (self.words.len() <= 7 || self.words.len() <= 10 && self.says("try that"))
                && !joined.contains("how many")
    }

    /// Whether a word is used as the command that it names, not as part of a sentence.
    fn is_command_word(&self, word: &str) -> bool {
        let leads =
            ["", "please ", "kubectl ", "can you ", "could you ", "can you please ", "lets ", "i want to ", "just "];
        const FILLERS: [&str; 9] = ["then", "ok", "okay", "so", "and", "now", "well", "hm", "alright"];
        let first = self.words.iter().position(|word| !FILLERS.contains(&&**word)).unwrap_or(0);
        let joined = &*self.words[first..].join(" ");
        let starts = |prefix: &str| joined == prefix || joined.starts_with(&format!("{prefix} "));
        if self.says(&format!("kubectl {word}")) && word != "exec" && word != "run" {
            return true;
        }
        // "Please run kubectl delete pod web-1".
        if word == "run" && self.says("run kubectl") {
            return false;
        }
        let is_first = leads.iter().any(|lead| starts(&format!("{lead}{word}")));
        if matches!(word, "shell" | "copy")
            && !self.says(&format!("{word} into"))
            && word == "copy"
            && !self.words.iter().any(|word| word.contains('/'))
        {
            return false;
        }
        let needs_more = matches!(word, "run" | "edit" | "debug" | "proxy" | "attach" | "cp");
        is_first && (!needs_more || self.words.len() > 1)
            || matches!(word, "port-forward" | "port forward" | "exec" | "ssh") && self.says(word)
            || word == "shell"
                && ["a shell", "shell into", "shell in", "shell access", "open shell"]
                    .iter()
                    .any(|phrase| self.says(phrase))
            || matches!(word, "copy" | "cp")
                && self.says(word)
                && self.words.iter().any(|word| word.contains('/') && word.len() > 1)
    }
}

/// Whether a change is only mentioned, not requested: it is refused, imagined, asked about, or was done before.
fn is_spoken_of(joined: &str) -> bool {
    const QUESTIONS: [&str; 42] = [
        "what did",
        "what was",
        "is",
        "are",
        "im not",
        "who",
        "whos",
        "when",
        "why",
        "how",
        "hows",
        "has",
        "have",
        "did",
        "was",
        "were",
        "should i",
        "should we",
        "should it",
        "should that",
        "do you think",
        "does",
        "would it",
        "would that",
        "would going",
        "would a",
        "would the",
        "will it",
        "will that",
        "is it",
        "is that",
        "is this",
        "are we",
        "what would",
        "what happens",
        "what if",
        "whats the",
        "what does",
        "which",
        "where",
        "suppose",
        "imagine",
    ];
    const ANYWHERE: [&str; 29] = [
        "i may",
        "i might",
        "we may",
        "we might",
        "they may",
        "they might",
        "thinking of",
        "thinking about",
        "planning to",
        "plan to",
        "considering",
        "did u",
        "did you",
        "didnt you",
        "u didnt",
        "you didnt",
        "hold off",
        "no need to",
        "not yet",
        "what would happen",
        "what happens if",
        "what if",
        "if i",
        "if we",
        "should i",
        "should we",
        "shouldnt",
        "how do i",
        "how do we",
    ];
    let padded = format!(" {joined} ");
    let greeting = ["hey ", "hi ", "ok ", "so ", "and ", "but ", "hm ", "hmm "];
    let first = greeting.iter().find_map(|word| joined.strip_prefix(word)).unwrap_or(joined);
    let starts = |phrase: &&str| first == *phrase || first.starts_with(&format!("{phrase} "));
    let asks_to =
        ["have a look", "is it possible to", "why dont you", "how about you", "do not forget to", "dont forget to"];
    !asks_to.iter().any(|phrase| padded.contains(&format!(" {phrase} ")))
        && (QUESTIONS.iter().any(starts) || ANYWHERE.iter().any(|phrase| padded.contains(&format!(" {phrase} "))))
}
