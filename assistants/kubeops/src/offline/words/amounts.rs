//! Numbers of a message that are amounts, those that relate to another number, and those that count something else.

use crate::command::Verb;
use crate::kinds::{is_plural, kind_word};

use super::arguments::number_of;
use super::references::count_of;
use super::{Reading, Replicas};

/// Nouns for the number of replicas.
const NUMBERS: [&str; 6] = ["number", "count", "amount", "size", "replicas", "total"];

impl Reading {
    /// Reads a number of replicas that relates to another one: "one more", "half of that", "the same number +1", "scale it back".
    pub(super) fn read_relative_amount(&mut self) {
        let is_weak = matches!(self.verb, None | Some(Verb::Get | Verb::Describe));
        // "Give it double the memory" scales nothing: the amount is missing.
        let is_resource = self.has_any(&["memory", "mem", "ram", "cpu", "limit", "limits", "cores"]);
        let is_multiple = self.has_any(&["double", "twice", "triple", "half", "halve", "more", "less"]);
        let gives =
            self.has_any(&["give", "double", "triple", "halve", "raise", "increase", "set", "cut", "reduce", "lower"]);
        if is_resource && is_multiple && gives && self.limits.is_empty() && self.requests.is_empty() {
            if matches!(self.verb, None | Some(Verb::Get | Verb::Scale)) && (!self.asks() || self.asks_politely()) {
                (self.verb, self.replicas) = (Some(Verb::SetResources), None);
            }
            return;
        }
        let is_plain = !self.asks() && !self.is_question || self.asks_politely();
        if let Some(multiple) = self.multiple()
            && (self.verb == Some(Verb::Scale) || is_weak && (self.has_any(&["double", "halve"]) || is_plain))
        {
            (self.verb, self.replicas) = (Some(Verb::Scale), Some(multiple));
        }
        if let Some(step) = self.same_and_step()
            && is_plain
            && (is_weak || self.verb == Some(Verb::Scale))
        {
            (self.verb, self.replicas) = (Some(Verb::Scale), Some(Replicas::Same(step)));
        }
        // "Back to the old number".
        let returns = self.says("back to the")
            && self.has_any(&["old", "previous", "original", "earlier", "first"])
            && self.has_any(&NUMBERS);
        if returns && is_plain && (is_weak || self.verb == Some(Verb::RolloutUndo)) {
            (self.verb, self.replicas) = (Some(Verb::Scale), Some(Replicas::Before));
        }
        let names_before = self.has_any(&["back", "before", "original", "originally", "initially"])
            || self.has_any(&["previous", "old", "earlier"]) && self.has_any(&NUMBERS);
        if self.verb == Some(Verb::Scale) && self.replicas.is_none() && self.amount().is_none() && names_before {
            self.replicas = Some(Replicas::Before);
        }
    }

    /// "Double", "half of that", "three times as many".
    fn multiple(&self) -> Option<Replicas> {
        // "Half of it is broken" asks for nothing.
        let end = self.words.iter().rposition(|word| !matches!(&**word, "please" | "pls" | "then" | "now" | "instead"));
        let of_that = end
            .filter(|end| *end > 0)
            .is_some_and(|end| self.word(end - 1) == "of" && matches!(self.word(end), "that" | "it" | "this" | "them"));
        let as_many = of_that || self.says("as many") || self.says("that many");
        let cuts = self.verb == Some(Verb::Scale) || self.has_any(&["cut", "reduce", "bring", "take"]);
        let times = self.words.windows(2).find(|pair| pair[1] == "times").and_then(|pair| number_of(&pair[0]));
        match () {
            () if self.has("double") || self.has("twice") && as_many => Some(Replicas::Times(2)),
            () if self.has("triple") => Some(Replicas::Times(3)),
            () if self.has("halve") || self.has("half") && (as_many || cuts) => Some(Replicas::Half),
            () => times.filter(|_| self.says("as many")).map(Replicas::Times),
        }
    }

    /// "The same number", "same number +1", "as many plus one": how many more than the number that was requested last.
    fn same_and_step(&self) -> Option<i64> {
        let at = (0..self.words.len()).find(|at| self.word(*at) == "same" && NUMBERS.contains(&self.word(at + 1)))?;
        // "The same number as web": that of another object.
        if matches!(self.word(at + 2), "as" | "of" | "like") {
            return None;
        }
        let rest = &self.words[at + 2..];
        let sign = |word: &str| match word {
            "plus" | "and" => Some(1),
            "minus" => Some(-1),
            _ => None,
        };
        let step = rest.iter().enumerate().find_map(|(at, word)| {
            let next = rest.get(at + 1).and_then(|next| number_of(next));
            let signed = word.strip_prefix('+').and_then(|digits| digits.parse::<i64>().ok());
            signed.or_else(|| Some(sign(word)? * i64::from(next?)))
        });
        Some(step.unwrap_or(0))
    }

    /// "Add a replica", "one less", "another copy": a step up or down.
    pub(super) fn step(&self) -> Option<i64> {
        let says = |phrases: &[&str]| phrases.iter().any(|phrase| self.says(phrase));
        if says(&["take one away", "one less", "one fewer", "take one off"]) {
            return Some(-1);
        }
        if says(&["add one", "one more replica", "one more copy", "one more of", "add another"]) {
            return Some(1);
        }
        // "Add two more of these", "one replica less for it", "take three replicas away", "take away only one".
        let is_noun =
            |word: &str| matches!(word, "replica" | "replicas" | "copy" | "copies" | "instance" | "instances");
        let counted = (0..self.words.len()).find_map(|at| {
            let count = number_of(self.word(at)).map(i64::from)?;
            let next = at + 1 + usize::from(is_noun(self.word(at + 1)));
            let before = &self.words[at.saturating_sub(3)..at];
            let takes = before.iter().any(|word| matches!(&**word, "take" | "remove" | "drop" | "cut"));
            match self.word(next) {
                "more" => Some(count),
                "less" | "fewer" => Some(-count),
                "away" | "off" if takes => Some(-count),
                _ if takes && before.iter().any(|word| matches!(&**word, "away" | "off")) => Some(-count),
                _ => None,
            }
        });
        let gives = self.has_any(&[
            "add", "give", "start", "spawn", "spin", "get", "gets", "need", "needs", "want", "make", "bring", "take",
            "remove", "drop", "just", "cut",
        ]) || self.words.len() <= 6;
        let is_than = self.has_any(&[
            "than", "lines", "log", "logs", "minutes", "min", "mins", "times", "time", "thing", "question", "try",
            "look", "pod", "pods",
        ]);
        if let Some(count) = counted.filter(|_| gives && !is_than) {
            return Some(count);
        }
        let is_noun = |word: &str| matches!(word, "replica" | "copy" | "instance");
        (1..self.words.len()).filter(|at| is_noun(self.word(*at))).find_map(|at| {
            let before = &self.words[at.saturating_sub(4)..at];
            let is_one = matches!(self.word(at - 1), "a" | "an" | "one" | "another" | "extra" | "1" | "more");
            let has = |verbs: &[&str]| before.iter().any(|word| verbs.contains(&&**word));
            match self.word(at + 1) {
                "more" if is_one => Some(1),
                "less" | "fewer" if is_one => Some(-1),
                _ if !is_one => None,
                _ if has(&["add", "spawn", "start"]) => Some(1),
                _ if has(&["remove", "drop", "lose"]) => Some(-1),
                _ => None,
            }
        })
    }

    /// "Ok ok 2 then": a number and nothing else that has a meaning.
    pub(in crate::offline) fn is_only_number(&self) -> bool {
        const FILLERS: [&str; 17] = [
            "to", "ok", "okay", "then", "just", "please", "fine", "well", "so", "lets", "say", "alright", "hm", "hmm",
            "pls", "plz", "only",
        ];
        self.words.len() <= 5
            && self.only_number().is_some()
            && self.words.iter().all(|word| FILLERS.contains(&&**word) || number_of(word).is_some())
    }

    /// "5 is too many": not an addition.
    pub(in crate::offline) fn is_too_much(&self) -> bool {
        self.words.windows(2).any(|pair| {
            let is_degree = matches!(&*pair[1], "many" | "much" | "few" | "little" | "high" | "low" | "big" | "small");
            pair[0] == "too" && is_degree
        })
    }

    /// Whether the number of a message is one of lines, minutes or people: "back in 10", "1 sec".
    pub(in crate::offline) fn counts_something_else(&self) -> bool {
        const UNITS: [&str; 30] = [
            "lines",
            "times",
            "minute",
            "minutes",
            "min",
            "mins",
            "hour",
            "hours",
            "sec",
            "secs",
            "second",
            "seconds",
            "restarts",
            "percent",
            "day",
            "days",
            "week",
            "weeks",
            "month",
            "months",
            "people",
            "persons",
            "users",
            "guys",
            "approvals",
            "approval",
            "requests",
            "pm",
            "am",
            "priority",
        ];
        let is_other =
            self.tail.is_some() || self.since_seconds.is_some() || self.revision.is_some() || self.version.is_some();
        let is_time = self.words.windows(2).any(|pair| {
            matches!(&*pair[0], "in" | "by" | "until" | "till" | "after" | "before") && number_of(&pair[1]).is_some()
        });
        is_other || is_time || self.has_any(&UNITS)
    }

    /// Returns the number of a message that stands for an amount: not for lines, minutes, a revision or a position.
    pub(in crate::offline) fn amount(&self) -> Option<u32> {
        if let Some(Replicas::To(number)) = self.replicas {
            return Some(number);
        }
        if self.counts_something_else() || self.pick.is_some() || self.state.is_some() || self.replicas.is_some() {
            return None;
        }
        // "The other two" counts objects.
        let counts_objects = |at: usize| {
            at > 0 && matches!(self.word(at - 1), "other" | "those" | "these" | "last" | "first" | "both" | "newest")
        };
        let mut numbers: Vec<u32> = (0..self.words.len())
            .filter(|at| self.word(*at) != "one" && !counts_objects(*at))
            .filter_map(|at| number_of(self.word(at)))
            .collect();
        numbers.dedup();
        if let [only] = numbers[..] { Some(only) } else { None }
    }

    /// Returns the number of a message that has only one.
    pub(in crate::offline) fn only_number(&self) -> Option<u32> {
        let mut numbers = self.words.iter().filter(|word| *word != "one").filter_map(|word| number_of(word));
        numbers.next().filter(|_| numbers.next().is_none())
    }

    /// "The two", "the two of them": two objects that were spoken of.
    pub(in crate::offline) fn refers_to_two(&self) -> bool {
        let is_end = |word: &str| {
            matches!(
                word,
                "" | "of" | "are" | "on" | "at" | "in" | "is" | "have" | "run" | "running" | "now" | "please"
            )
        };
        self.has("both")
            || (1..self.words.len()).any(|at| {
                self.word(at) == "two"
                    && (matches!(self.word(at - 1), "those" | "these")
                        || self.word(at - 1) == "the" && is_end(self.word(at + 1)))
            })
    }

    /// Returns how many objects a change means, if the message counts them: "restart the two you showed", "both".
    pub(in crate::offline) fn count_of_objects(&self) -> Option<usize> {
        let is_counted = |at: &usize| {
            let before = self.word(at - 1);
            let is_of = *at > 1 && matches!(self.word(at - 2), "of" | "than" | "as" | "like");
            let next = self.word(at + 1);
            let is_end =
                matches!(next, "" | "you" | "we" | "i" | "ones" | "please" | "pls" | "too" | "now" | "that" | "in")
                    || kind_word(next).is_some() && is_plural(next);
            matches!(before, "the" | "those" | "these") && !is_of && is_end
        };
        (1..self.words.len()).filter(is_counted).find_map(|at| count_of(self.word(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::words::{Lexicon, read};

    #[test]
    fn numbers_that_relate_to_another_one_are_read_in_one_form() {
        let number = |message: &str| {
            let reading = read(message, &Lexicon::default());
            reading.replicas.filter(|_| reading.verb == Some(Verb::Scale))
        };
        assert_eq!(number("too many.. half of that"), Some(Replicas::Half));
        assert_eq!(number("add a replica"), Some(Replicas::By(1)));
        assert_eq!(number("one less"), Some(Replicas::By(-1)));
        assert_eq!(number("take three replicas away"), Some(Replicas::By(-3)));
        assert_eq!(number("add two more of these"), Some(Replicas::By(2)));
        assert_eq!(number("remove a replica"), Some(Replicas::By(-1)));
        assert_eq!(number("same number +1"), Some(Replicas::Same(1)));
        assert_eq!(number("same count minus one"), Some(Replicas::Same(-1)));
        assert_eq!(number("then scale it back"), Some(Replicas::Before));
        assert_eq!(number("back to the old number"), Some(Replicas::Before));
        assert_eq!(number("8 for it"), Some(Replicas::To(8)));
        for message in
            ["half of it is broken", "both have 4", "give it double the memory", "does it have the same number?"]
        {
            assert_eq!(number(message), None, "{message}");
        }
        assert_eq!(Replicas::Same(-1).of(3), Some(2));
        assert_eq!(Replicas::Before.of(3), None);
    }
}
