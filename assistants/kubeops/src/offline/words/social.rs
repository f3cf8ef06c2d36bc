//! Messages of a conversation: greetings, thanks, consent, refusals.

use crate::command::Verb;

use super::{Act, Reading};

impl Reading {
    pub(super) fn social_act(&self, joined: &str, is_plain: bool, short: bool) -> Option<Act> {
        // "Lol ok".
        const LAUGHS: [&str; 6] = ["lol", "haha", "hehe", "ha", "heh", "lmao"];
        let plain: Vec<&str> = self.words.iter().map(String::as_str).skip_while(|word| LAUGHS.contains(word)).collect();
        let plain = plain.join(" ");
        let joined = if plain.is_empty() { joined } else { &*plain };
        let starts = |phrases: &[&str]| {
            phrases.iter().any(|phrase| joined == *phrase || joined.starts_with(&format!("{phrase} ")))
        };
        if self.says("what can you do")
            || self.says("what do you do")
            || joined == "help"
            || self.says("who are you")
            || self.says("how do you work")
            || self.says("what are you able")
            || self.says("how can you help")
            || [
                "can you make",
                "can you change",
                "what can you",
                "what are you able",
                "what else can",
                "what are your",
                "your commands",
            ]
            .iter()
            .any(|phrase| self.says(phrase) && self.has_any(&["what", "which"]))
        {
            return Some(Act::Capabilities);
        }
        let has_request = matches!(self.verb, Some(verb) if !(verb == Verb::Get && self.kind.is_none() && !self.pronoun))
            || self.pick.is_some();
        if is_plain
            && !has_request
            && short
            && self.namespace.is_none()
            && !self.unhealthy
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
            && !(self.namespace.is_some() && self.has_any(&["what", "whats", "which", "how", "show", "list"]))
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
                "+1",
                "looks good",
                "fine by me",
                "fine with me",
                "ok do it",
                "sure",
                "proceed",
                "y",
                "ship it",
                "ok",
                "okay",
            ]) || self.says("i approve")
                || self.says("go ahead"))
            && (self.kind.is_none() && self.names.is_empty() || self.says("i approve"))
            && !["confirm the", "confirm that", "confirm how", "confirm its"].iter().any(|phrase| self.says(phrase))
            && (self.words.len() <= 6 || self.says("i approve") || self.says("go ahead"))
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
}
