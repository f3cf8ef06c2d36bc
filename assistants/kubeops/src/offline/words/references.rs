//! Words that refer to objects of the conversation, and names.

use crate::command::{Verb, is_name};
use crate::kinds::{is_plural, kind_word};

use super::vocabulary::{is_candidate, is_ordinary};
use super::{Lexicon, Pick, Reading};

/// Words that follow a position in a list: "second to last", "the first please".
const FOLLOWING: [&str; 26] = [
    "run",
    "crash",
    "and",
    "then",
    "two",
    "three",
    "pods",
    "ones",
    "from",
    "first",
    "one",
    "pod",
    "deployment",
    "service",
    "to",
    "in",
    "please",
    "pls",
    "container",
    "statefulset",
    "job",
    "node",
    "of",
    "secret",
    "again",
    "key",
];

impl Reading {
    /// "The one you described before": the command that was applied to the object that is meant.
    fn verb_of_one(&self) -> Option<Verb> {
        const DONE: [(&str, Verb); 9] = [
            ("described", Verb::Describe),
            ("restarted", Verb::RolloutRestart),
            ("scaled", Verb::Scale),
            ("deleted", Verb::Delete),
            ("updated", Verb::SetImage),
            ("upgraded", Verb::SetImage),
            ("cordoned", Verb::Cordon),
            ("drained", Verb::Drain),
            ("labelled", Verb::Label),
        ];
        let is_filler = |word: &str| matches!(word, "that" | "which" | "just" | "already");
        let at = (1..self.words.len()).find(|at| self.word(*at) == "one" && self.word(*at - 1) == "the")?;
        let rest: Vec<&str> =
            self.words[at + 1..].iter().map(String::as_str).filter(|word| !is_filler(word)).take(2).collect();
        let [who, done] = rest[..] else { return None };
        let found = DONE.iter().find(|(word, _)| *word == done).map(|(_, verb)| *verb);
        found.filter(|_| matches!(who, "you" | "we" | "i" | "u"))
    }

    pub(super) fn read_references(&mut self, joined: &str, lexicon: &Lexicon, used: &mut [bool]) {
        const ORDINALS: [(&str, Pick); 17] = [
            ("middle", Pick::Middle),
            ("remaining", Pick::Untouched),
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
            ("others", Pick::Other),
        ];
        // Words after "the first", "the other" that name no object of a list.
        const NO_OBJECTS: [&str; 62] = [
            "time",
            "times",
            "thing",
            "things",
            "place",
            "line",
            "lines",
            "replica",
            "replicas",
            "copy",
            "step",
            "part",
            "half",
            "minute",
            "minutes",
            "hour",
            "hours",
            "day",
            "days",
            "week",
            "month",
            "attempt",
            "try",
            "run",
            "batch",
            "few",
            "couple",
            "case",
            "question",
            "message",
            "point",
            "word",
            "letter",
            "release",
            "version",
            "revision",
            "approval",
            "request",
            "party",
            "way",
            "side",
            "team",
            "guys",
            "people",
            "namespace",
            "ns",
            "env",
            "environment",
            "cluster",
            "room",
            "channel",
            "night",
            "quarter",
            "guess",
            "look",
            "lot",
            "reason",
            "problem",
            "error",
            "crash",
            "image",
            "tag",
        ];
        for (at, word) in self.words.clone().iter().enumerate() {
            // "The other crashing one".
            let is_state =
                matches!(self.word(at + 1), "crashing" | "failing" | "broken" | "unhealthy" | "pending" | "bad");
            // "The second gpu node": a part of the names is between.
            let is_between = !is_state && kind_word(self.word(at + 2)).is_some() && is_candidate(self.word(at + 1));
            let next = self.word(at + 1 + usize::from(is_state || is_between));
            // "I want to see a few pods first" counts nothing.
            let before = if at > 0 { self.word(at - 1) } else { "the" };
            let is_adverb = word == "first"
                && next.is_empty()
                && !matches!(before, "the" | "my" | "that" | "this")
                && (self.words.len() > 2 || matches!(before, "logs" | "log" | "events" | "status"));
            // "Give web a second replica" counts replicas.
            let is_count = before == "a" && is_replica(next);
            // "Make it 3 like the other" compares.
            let is_compared = at > 1 && before == "the" && matches!(self.word(at - 2), "like" | "unlike" | "than");
            let is_object = !is_adverb && !is_count && !is_compared;
            let ordinal = ORDINALS.iter().find(|(name, _)| name == word && is_object);
            // "Take the first down to 5".
            let is_article = matches!(before, "the" | "that") && !lexicon.has_namespace(next);
            // "The first broker", "the other fetcher".
            let is_name = before == "the"
                && next.len() > 2
                && lexicon.is_complete()
                && lexicon.linked(next).is_some()
                && !lexicon.has_namespace(next);
            if let Some((_, pick)) = ordinal
                && (is_name
                    || next.is_empty()
                    || FOLLOWING.contains(&next)
                    || is_article && !NO_OBJECTS.contains(&next))
            {
                let pick = match (*pick, count_of(next)) {
                    (Pick::At(0), Some(count)) => Pick::First(count),
                    (pick, _) => pick,
                };
                match self.pick {
                    None => self.pick = Some(pick),
                    Some(_) => self.picks.push(pick),
                }
                used[at] = true;
            }
        }
        let ends_list = ["the last in", "the last of", "last on the list"].iter().any(|phrase| self.says(phrase));
        if self.says("last one") || self.says("bottom one") || self.says("last pod") || ends_list {
            self.pick = Some(Pick::Last);
        }
        if self.pick.is_none() && self.has("one") && (self.says("in between") || self.says("between those")) {
            self.pick = Some(Pick::Middle);
        }
        // "The first and the last".
        let ends_with_last = self.words.ends_with(&["the".to_owned(), "last".to_owned()]);
        match self.pick {
            None if ends_with_last => self.pick = Some(Pick::Last),
            Some(Pick::At(_)) if ends_with_last => self.picks.push(Pick::Last),
            _ => {}
        }
        let newest = self.words.windows(2).find(|pair| pair[0] == "last").and_then(|pair| count_of(&pair[1]));
        // "Describe the last two" counts objects, not lines.
        let counts_lines =
            self.tail.is_some() && (self.verb == Some(Verb::Logs) || self.has_any(&["log", "logs", "line", "lines"]));
        if let Some(count) = newest.filter(|_| !counts_lines && self.since_seconds.is_none()) {
            self.pick = Some(Pick::Newest(count));
        }
        let precedes = [
            "one before it",
            "one before that",
            "one above",
            "above it",
            "above that",
            "pod before it",
            "right before it",
            "right before that",
        ];
        if self.pick.is_none() && precedes.iter().any(|phrase| self.says(phrase)) {
            self.pick = Some(Pick::Previous);
            self.previous = false;
        }
        let is_before = self.says("previous one") || self.says("previous pod") || self.says("the one before");
        if is_before && self.pick.is_none() && self.verb != Some(Verb::RolloutUndo) {
            self.pick = Some(Pick::Before);
            self.previous = false;
        }
        if self.pick.is_none()
            && self.has("first")
            && (self.says("asked about")
                || self.says("asked for")
                || self.says("looked at")
                || self.says("started with"))
        {
            self.pick = Some(Pick::AskedFirst);
        }
        let follows = [
            "next one",
            "next pod",
            "right after it",
            "right after that",
            "after that one",
            "one after it",
            "one after that",
            "one below",
            "below it",
            "below that",
        ];
        let is_untouched =
            ["havent touched", "not touched", "still untouched", "thats left", "that is left", "left over"]
                .iter()
                .chain(&["we kept", "i kept", "you kept", "we left", "didnt touch", "didnt delete", "didnt restart"])
                .chain(&["didnt change", "the remaining"])
                .copied()
                .collect::<Vec<&str>>();
        if self.pick.is_none() && follows.iter().any(|phrase| self.says(phrase)) {
            self.pick = Some(Pick::Next);
        }
        let has_noun = self.has("one") || self.kind.is_some();
        if self.pick.is_none() && has_noun && is_untouched.iter().any(|phrase| self.says(phrase)) {
            self.pick = Some(Pick::Untouched);
        }
        if let Some(verb) = self.verb_of_one().filter(|_| self.pick.is_none()) {
            self.pick = Some(Pick::Done(verb));
        }
        // "Logs of the new one": the pod that replaced another one.
        let is_fresh = [
            "newcomer",
            "new ones",
            "new one",
            "new pod",
            "newest one",
            "newest pod",
            "fresh one",
            "fresh pod",
            "replacement",
        ]
        .iter()
        .any(|phrase| self.says(&format!("the {phrase}")) && (phrase != &"new ones" || self.has("name")));
        let is_order =
            matches!(self.verb, Some(Verb::Describe | Verb::Logs | Verb::Events | Verb::Delete | Verb::Exec));
        let asks_name = self.has_any(&["name", "called"]) && (self.asks() || self.is_question);
        // "Its replacement", "the new consumer pod".
        let is_fresh = is_fresh
            || asks_name
                && ["its replacement", "the replacement", "its successor", "the successor"]
                    .iter()
                    .any(|phrase| self.says(phrase))
            || asks_name && self.pronoun_is_renamed()
            || asks_name
                && self
                    .words
                    .windows(4)
                    .any(|four| four[0] == "the" && four[1] == "new" && matches!(&*four[3], "pod" | "one"));
        if is_fresh && (is_order && !self.asks() || asks_name) && self.pick.is_none() {
            self.pick = Some(Pick::Fresh);
            self.verb = self.verb.or(Some(Verb::Describe));
        }
        if self.says("top one") {
            self.pick = Some(Pick::At(0));
            if self.verb == Some(Verb::Top) {
                self.verb = None;
            }
        }
        let is_read = self.verb.is_none_or(Verb::is_read);
        self.each = self.has_any(&["both", "them", "those", "these", "each"])
            || is_read && self.has("they") && self.has_any(&["which", "what", "how"])
            || self.says("all of them")
            || ["the ones you", "the ones we", "ones you just"].iter().any(|phrase| self.says(phrase))
            || self.refers_to_two();
        self.pronoun = self.each
            || self.has_any(&["it", "ours"])
            || self.words.windows(2).any(|pair| {
                pair[1] == "thing"
                    && matches!(
                        &*pair[0],
                        "the"
                            | "that"
                            | "this"
                            | "stupid"
                            | "damn"
                            | "bloody"
                            | "dumb"
                            | "silly"
                            | "annoying"
                            | "cursed"
                            | "whole"
                    )
            })
            || ["that one", "this one", "the same one", "that thing", "its", "that name", "same name"]
                .iter()
                .any(|phrase| self.says(phrase))
            || (self.has_any(&["that", "this"]) && is_object_pronoun(joined));
    }

    /// "Same list for staging", "same question for web": what was read is read again, and no change is repeated.
    pub(in crate::offline) fn repeats_look(&self) -> bool {
        const LOOKS: [&str; 12] = [
            "list",
            "listing",
            "lists",
            "question",
            "questions",
            "check",
            "look",
            "query",
            "info",
            "view",
            "columns",
            "overview",
        ];
        self.words.windows(2).any(|pair| pair[0] == "same" && LOOKS.contains(&&*pair[1]))
            || self.has_any(&["question", "questions"])
    }

    /// "What's its name now?", "what is it called now?", after a pod was replaced.
    fn pronoun_is_renamed(&self) -> bool {
        ["its name", "it called", "its new name"].iter().any(|phrase| self.says(phrase))
            && self.has_any(&["now", "new"])
    }

    /// Whether a namespace belongs to a remark, not to the object that is meant: "delete it, the staging one is enough", "it runs in
    /// staging too, so delete it".
    pub(in crate::offline) fn remarks_on_namespace(&self) -> bool {
        let Some(namespace) = &self.namespace else { return false };
        let is_place = |word: &String| {
            crate::cluster::likeness(namespace, word).is_some_and(|fit| fit < 3)
                || word == "production"
                || word == "stage"
        };
        let Some(place) = self.words.iter().position(is_place) else { return false };
        let is_pronoun = |word: &String| matches!(&**word, "it" | "that" | "this" | "its");
        // A verb or a conjunction separates two clauses.
        let separates = |word: &String| {
            matches!(
                &**word,
                "is" | "are"
                    | "was"
                    | "were"
                    | "has"
                    | "have"
                    | "had"
                    | "runs"
                    | "works"
                    | "exists"
                    | "stays"
                    | "suffices"
                    | "does"
                    | "lives"
                    | "remains"
                    | "keeps"
                    | "we"
                    | "they"
                    | "there"
                    | "because"
                    | "cause"
                    | "since"
                    | "while"
                    | "but"
                    | "only"
                    | "another"
                    | "so"
                    | "keep"
                    | "leave"
                    | "still"
            )
        };
        let after = &self.words[place + 1..(place + 3).min(self.words.len())];
        let between = match self.words.iter().position(is_pronoun) {
            Some(pronoun) if pronoun < place => &self.words[pronoun..place],
            Some(pronoun) => &self.words[place..pronoun],
            None => &[],
        };
        // "The staging one" is an object, unless a remark about it follows.
        let between = if self.word(place + 1) == "one" { &[] } else { between };
        after.iter().chain(between).any(separates)
    }

    /// "Kafka 1", "tracking ui": two words that are the name of an object without its hyphen.
    pub(super) fn read_joined_names(&mut self, lexicon: &Lexicon, used: &mut [bool]) {
        for at in 0..self.words.len().saturating_sub(1) {
            let is_number = self.word(at + 1).parse::<u32>().is_ok();
            if used[at] || used[at + 1] || is_number && self.has_any(&["scale", "replicas", "give", "to"]) {
                continue;
            }
            let joined = format!("{}-{}", self.word(at), self.word(at + 1));
            if lexicon.has(&joined) {
                used[at..at + 2].fill(true);
                self.names.push(joined);
            }
        }
    }

    pub(super) fn read_names(&mut self, originals: &[String], used: &[bool], lexicon: &Lexicon) {
        for (at, original) in originals.iter().enumerate() {
            if used[at] || original.starts_with('-') {
                continue;
            }
            let Some(name) = self.name_at(at, lexicon) else {
                self.unknown += usize::from(is_candidate(self.word(at)));
                continue;
            };
            self.names_several |= self
                .word(at)
                .strip_suffix('s')
                .is_some_and(|singular| name.starts_with(singular) && name != self.word(at));
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        // What looks like a full name comes first.
        self.names.sort_by_key(|name| !(name.contains('-') || name.chars().any(|c| c.is_ascii_digit())));
    }

    /// Returns the name that a word stands for. If the names of the cluster are known, other words count only where a name is expected.
    fn name_at(&self, at: usize, lexicon: &Lexicon) -> Option<String> {
        let word = self.word(at);
        if self.is_named_by_kind(at) {
            return Some(word.to_owned());
        }
        // "Cordon c": a letter that is part of a name.
        let is_letter =
            word.len() == 1 && word.chars().all(|c| c.is_ascii_lowercase()) && !matches!(word, "a" | "i" | "u");
        if is_letter && lexicon.is_complete() && self.is_after_command(at) {
            return lexicon.linked(word);
        }
        if !is_candidate(word) {
            let next = self.word(at + 1);
            const NOUNS: [&str; 18] = [
                "sync",
                "search",
                "match",
                "story",
                "traffic",
                "flight",
                "customers",
                "pager",
                "chat",
                "team",
                "format",
                "kernel",
                "print",
                "port",
                "role",
                "touch",
                "flapping",
                "ship",
            ];
            if NOUNS.contains(&word) && lexicon.is_complete() {
                return lexicon.linked(word);
            }
            let is_qualified = next == "one" || next == "ones" || kind_word(next).is_some();
            let is_object = lexicon.is_complete() && is_name(word) && word.len() > 2 && self.is_after_command(at);
            // "The api one", "restart search": an ordinary word, and a name.
            let is_meant = is_qualified && lexicon.linked(word).is_some() || lexicon.has(word);
            return (is_object && is_meant && (kind_word(word).is_none() || next == "one")).then(|| word.to_owned());
        }
        if !lexicon.is_complete() {
            return Some(word.to_owned());
        }
        if let Some(linked) = lexicon.linked(word) {
            return Some(linked);
        }
        let is_part_of_namespace =
            lexicon.namespaces.iter().any(|name| crate::cluster::likeness(name, word).is_some_and(|fit| fit < 3));
        let is_alias = matches!(word, "prod" | "production" | "stage" | "staging" | "stg" | "dev" | "development");
        (is_part_of_namespace || is_alias || looks_like_name(word) || self.is_in_place_of_name(at))
            .then(|| word.to_owned())
    }

    /// Whether the words before one are a command, a kind or an article.
    fn is_after_command(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).map(|before| self.word(before)) else { return false };
        matches!(before, "the" | "of" | "for" | "and" | "now" | "that" | "on")
            || kind_word(before).is_some()
            || super::vocabulary::VERBS.iter().any(|(phrase, _)| *phrase == before)
    }

    /// Whether a word that names nothing known is meant as a name: "restart ledger", "logs of ledger", "the ledger pod".
    fn is_in_place_of_name(&self, at: usize) -> bool {
        if self.pronoun || self.pick.is_some() || self.state.is_some() {
            return false;
        }
        let mut before = at;
        while before > 0 && matches!(self.word(before - 1), "the" | "our" | "my" | "a") {
            before -= 1;
        }
        let previous = if before > 0 { self.word(before - 1) } else { "" };
        let is_verb = super::vocabulary::VERBS.iter().any(|(phrase, verb)| {
            let last = phrase.rsplit(' ').next().unwrap_or_default();
            let is_whole = phrase
                .rsplit(' ')
                .enumerate()
                .all(|(back, part)| before.checked_sub(back + 1).is_some_and(|at| self.word(at) == part));
            last == previous
                && is_whole
                && !matches!(last, "what" | "which" | "back" | "it" | "there" | "say" | "on")
                && (!verb.is_read() || matches!(verb, Verb::Logs | Verb::Describe))
        });
        let is_of = matches!(previous, "called" | "named")
            || matches!(previous, "of" | "for") && self.verb.is_some_and(|verb| verb != Verb::Get);
        let is_kind = |word: &str| kind_word(word).is_some() && !is_plural(word);
        is_verb || is_of || is_kind(previous) || is_kind(self.word(at + 1))
    }

    /// Whether an ordinary word is the name of an object, because it follows its kind in a command: "scale deploy match to 3".
    fn is_named_by_kind(&self, at: usize) -> bool {
        const NO_NAMES: [&str; 32] = [
            "to", "in", "on", "at", "for", "with", "from", "by", "of", "and", "or", "is", "it", "its", "that", "this",
            "now", "please", "pls", "again", "up", "down", "back", "so", "then", "if", "when", "too", "also", "asap",
            "instead", "rather",
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

/// Whether a word stands for one of the replicas of a workload.
pub(super) fn is_replica(word: &str) -> bool {
    matches!(word, "one" | "replica" | "copy" | "instance" | "pod")
}

/// Returns the number of objects that a word counts: "the first two".
pub(super) fn count_of(word: &str) -> Option<usize> {
    ["two", "three", "four", "five"].iter().position(|number| *number == word).map(|at| at + 2)
}

/// Whether a word has the form of a name: with a hyphen or a digit, but not that of a number with a unit such as "5xx" or "10x".
fn looks_like_name(word: &str) -> bool {
    let has_parts =
        word.contains('-') && !word.split('-').all(is_ordinary) && word.split('-').all(|part| !part.is_empty());
    let has_digit = word.chars().any(|c| c.is_ascii_digit()) && word.starts_with(|c: char| c.is_ascii_alphabetic());
    has_parts || has_digit && word.len() > 2
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
