//! Words that refer to objects of the conversation, and names.

use crate::command::{Verb, is_name};
use crate::kinds::{is_plural, kind_word};

use super::vocabulary::is_candidate;
use super::{Pick, Reading};

impl Reading {
    pub(super) fn read_references(&mut self, joined: &str, used: &mut [bool]) {
        const ORDINALS: [(&str, Pick); 14] = [
            ("first", Pick::At(0)),
            ("1st", Pick::At(0)),
            ("second", Pick::At(1)),
            ("2nd", Pick::At(1)),
            ("third", Pick::At(2)),
            ("3rd", Pick::At(2)),
            ("fourth", Pick::At(3)),
            ("4th", Pick::At(3)),
            ("fifth", Pick::At(4)),
            ("5th", Pick::At(4)),
            ("sixth", Pick::At(5)),
            ("latter", Pick::Last),
            ("former", Pick::At(0)),
            ("other", Pick::Other),
        ];
        for (at, word) in self.words.clone().iter().enumerate() {
            // "The other crashing one".
            let is_state =
                matches!(self.word(at + 1), "crashing" | "failing" | "broken" | "unhealthy" | "pending" | "bad");
            let next = self.word(at + 1 + usize::from(is_state));
            let ordinal = ORDINALS.iter().find(|(name, _)| name == word);
            if let Some((_, pick)) = ordinal
                && self.pick.is_none()
                && (next.is_empty()
                    || matches!(
                        next,
                        "one"
                            | "pod"
                            | "deployment"
                            | "service"
                            | "to"
                            | "in"
                            | "please"
                            | "container"
                            | "statefulset"
                            | "job"
                            | "node"
                            | "of"
                            | "secret"
                            | "again"
                            | "key"
                    ))
            {
                self.pick = Some(*pick);
                used[at] = true;
            }
        }
        if self.says("last one") || self.says("bottom one") {
            self.pick = Some(Pick::Last);
        }
        if self.says("top one") {
            self.pick = Some(Pick::At(0));
            if self.verb == Some(Verb::Top) {
                self.verb = None;
            }
        }
        self.each =
            self.has_any(&["both", "them", "those", "these"]) || self.says("all of them") || self.says("each of");
        self.pronoun = self.each
            || self.has("it")
            || ["that one", "this one", "the same one", "that thing", "its", "that name", "same name"]
                .iter()
                .any(|phrase| self.says(phrase))
            || (self.has_any(&["that", "this"]) && is_object_pronoun(joined));
    }

    pub(super) fn read_names(&mut self, originals: &[String], used: &[bool]) {
        for (at, original) in originals.iter().enumerate() {
            let word = &self.words[at];
            let is_name = is_candidate(word) || self.is_named_by_kind(at);
            if used[at] || original.starts_with('-') || !is_name {
                continue;
            }
            if !self.names.contains(word) {
                self.names.push(word.clone());
            }
        }
        // What looks like a full name comes first.
        self.names.sort_by_key(|name| !(name.contains('-') || name.chars().any(|c| c.is_ascii_digit())));
    }

    /// Whether an ordinary word is the name of an object, because it follows its kind in a command: "scale deploy match to 3".
    fn is_named_by_kind(&self, at: usize) -> bool {
        const NO_NAMES: [&str; 30] = [
            "to", "in", "on", "at", "for", "with", "from", "by", "of", "and", "or", "is", "it", "its", "that", "this",
            "now", "please", "pls", "again", "up", "down", "back", "so", "then", "if", "when", "too", "also", "asap",
        ];
        let (word, next) = (self.word(at), self.word(at + 1));
        let Some(before) = at.checked_sub(1) else { return false };
        let is_kind = kind_word(self.word(before)).is_some() && !is_plural(self.word(before));
        let has_article =
            before > 0 && matches!(self.word(before - 1), "the" | "that" | "this" | "my" | "our" | "a" | "which");
        let is_change = self.verb.is_some_and(|verb| !verb.is_read());
        let is_followed = next.is_empty() || next.starts_with('-') || matches!(next, "to" | "in" | "from" | "for");
        is_change && is_kind && !has_article && is_followed && is_name(word) && !NO_NAMES.contains(&word)
    }
}

/// Whether "this" or "that" stands for an object: "delete that", "can you scale this to 2".
fn is_object_pronoun(joined: &str) -> bool {
    let words: Vec<&str> = joined.split(' ').collect();
    words.iter().enumerate().any(|(at, word)| {
        let next = words.get(at + 1).copied().unwrap_or_default();
        matches!(*word, "that" | "this")
            && (next.is_empty()
                || matches!(
                    next,
                    "to" | "in" | "please" | "again" | "by" | "for" | "down" | "up" | "back" | "now" | "with" | "too"
                ))
    })
}
