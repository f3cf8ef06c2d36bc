//! Messages that are no commands: greetings, consent, questions about the outcome.

use crate::command::Verb;

use super::vocabulary::REFUSED;
use super::{Act, Reading};

impl Reading {
    pub(super) fn find_act(&self, joined: &str) -> Option<Act> {
        let short = self.words.len() <= 6;
        let is_plain = self.kind.is_none() && self.names.is_empty() && self.replicas.is_none() && self.image.is_none();
        let starts = |phrases: &[&str]| {
            phrases.iter().any(|phrase| joined == *phrase || joined.starts_with(&format!("{phrase} ")))
        };
        if let Some((_, reason)) = REFUSED.iter().find(|(word, _)| self.is_command_word(word, joined)) {
            return Some(Act::Refused(reason));
        }
        let is_change = self.verb.is_some_and(|verb| !verb.is_read());
        if is_change && self.names.is_empty() && self.words.len() <= 7 && self.says("what happened") {
            return Some(Act::Outcome);
        }
        if is_change && is_spoken_of(joined) {
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
        if [
            "waiting for approval",
            "waiting for an approval",
            "pending approval",
            "pending approvals",
            "supposed to approve",
            "open requests",
        ]
        .iter()
        .any(|phrase| self.says(phrase))
        {
            return Some(Act::Consent);
        }
        const OUTCOMES: [&str; 37] = [
            "new one there",
            "new pod name",
            "did it come up",
            "come back up",
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
            && matches!(self.verb, None | Some(Verb::Get | Verb::RolloutStatus));
        let is_participle = self.words.len() <= 2
            && ["scaled", "restarted", "deleted", "done", "gone", "finished", "worked", "rolled"]
                .iter()
                .any(|word| self.words.first().is_some_and(|first| first == word));
        let asks_outcome = OUTCOMES.iter().any(|phrase| self.says(phrase));
        if self.names.is_empty() && (is_question_of_it || is_participle) || asks_outcome && self.namespace.is_none() {
            return Some(Act::Outcome);
        }
        if self.has_any(&["differ", "differs", "different", "difference", "differences", "compare"]) {
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
        if short
            && (joined == "why"
                || starts(&[
                    "why is it",
                    "why is that",
                    "how come",
                    "why did it",
                    "why are they",
                    "whats wrong with it",
                    "what is wrong with it",
                    "why though",
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
        self.social_act(joined, &starts, is_plain, short)
    }

    fn social_act(&self, joined: &str, starts: &dyn Fn(&[&str]) -> bool, is_plain: bool, short: bool) -> Option<Act> {
        if self.says("what can you do")
            || self.says("what do you do")
            || joined == "help"
            || self.says("who are you")
            || self.says("how do you work")
            || self.says("what are you able")
            || self.says("how can you help")
        {
            return Some(Act::Capabilities);
        }
        let has_request = matches!(self.verb, Some(verb) if !(verb == Verb::Get && self.kind.is_none() && !self.pronoun))
            || self.pick.is_some();
        if is_plain
            && !has_request
            && short
            && starts(&["hi", "hello", "hey", "good morning", "good afternoon", "good evening", "yo", "howdy"])
        {
            return Some(Act::Greeting);
        }
        if !has_request
            && (starts(&[
                "thanks",
                "thank you",
                "thx",
                "cheers",
                "great",
                "perfect",
                "nice",
                "cool",
                "awesome",
                "ty",
                "brilliant",
                "excellent",
                "wonderful",
                "lovely",
                "amazing",
            ]) || self.says("thank you"))
            && short
            && !self.is_question
        {
            return Some(Act::Thanks);
        }
        if !has_request
            && (starts(&[
                "yes",
                "yep",
                "yeah",
                "approve",
                "approved",
                "i approve",
                "go ahead",
                "do it",
                "confirm",
                "confirmed",
                "lgtm",
                "ok do it",
                "sure",
                "proceed",
                "y",
                "ship it",
                "ok",
                "okay",
            ]) || self.says("i approve")
                || self.says("go ahead"))
            && (self.kind.is_none() || self.says("i approve"))
        {
            return Some(Act::Consent);
        }
        if is_plain
            && !has_request
            && starts(&[
                "no",
                "nope",
                "never mind",
                "nevermind",
                "cancel",
                "stop",
                "forget it",
                "dont",
                "abort",
                "deny",
            ])
        {
            return Some(Act::Refusal);
        }
        None
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
        is_plain
            && self.namespace.is_none()
            && REPEATS.iter().any(|phrase| self.says(phrase))
            && self.words.len() <= 7
            && !joined.contains("how many")
    }

    /// Whether a word is used as the command that it names, not as a part of a sentence.
    fn is_command_word(&self, word: &str, joined: &str) -> bool {
        let starts = |prefix: &str| joined == prefix || joined.starts_with(&format!("{prefix} "));
        let leads =
            ["", "please ", "kubectl ", "can you ", "could you ", "can you please ", "lets ", "i want to ", "just "];
        let is_first = leads.iter().any(|lead| starts(&format!("{lead}{word}")));
        let needs_more = matches!(word, "run" | "edit" | "debug" | "proxy" | "attach" | "cp");
        is_first && (!needs_more || self.words.len() > 1)
            || matches!(word, "port-forward" | "port forward" | "exec" | "ssh") && self.says(word)
    }
}

/// Whether a change is spoken of instead of requested: it is refused, imagined, asked about, or was done before.
fn is_spoken_of(joined: &str) -> bool {
    const QUESTIONS: [&str; 33] = [
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
        "should",
        "do you think",
        "does",
        "would it",
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
    const ANYWHERE: [&str; 16] = [
        "dont",
        "do not",
        "never",
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
    let asks_to = ["is it possible to", "why dont you", "how about you", "do not forget to", "dont forget to"];
    !asks_to.iter().any(|phrase| padded.contains(&format!(" {phrase} ")))
        && (QUESTIONS.iter().any(starts) || ANYWHERE.iter().any(|phrase| padded.contains(&format!(" {phrase} "))))
}
