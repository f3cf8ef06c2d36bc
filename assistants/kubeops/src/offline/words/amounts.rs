//! Numbers of a message that are amounts, and those that count something else.

use super::arguments::number_of;
use super::{Reading, Replicas};

impl Reading {
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
}
