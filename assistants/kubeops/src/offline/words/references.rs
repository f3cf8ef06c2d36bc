//! Words that refer to objects of the conversation, and names.

use crate::command::Verb;

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
            let next = self.word(at + 1);
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
            || ["that one", "this one", "the same one", "that thing", "its"].iter().any(|phrase| self.says(phrase))
            || (self.has_any(&["that", "this"]) && is_object_pronoun(joined));
    }

    pub(super) fn read_names(&mut self, originals: &[String], used: &[bool]) {
        for (at, original) in originals.iter().enumerate() {
            let word = &self.words[at];
            if used[at] || original.starts_with('-') || !is_candidate(word) {
                continue;
            }
            if !self.names.contains(word) {
                self.names.push(word.clone());
            }
        }
        // What looks like a full name comes first.
        self.names.sort_by_key(|name| !(name.contains('-') || name.chars().any(|c| c.is_ascii_digit())));
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
