//! Lines that a message refers to by what was said about them: "the first line I asked about", "the other one", "the delayed line",
//! "which of those had a problem?"

use std::ops::Range;

use threadkeep::Role;
use threadkeep::dialogue::{Extractor as _, Utterance};

use crate::lines::{LINES, LineInfo};
use crate::network::gazetteer;
use crate::routing::lines_of;

/// The maximum number of lines to which "those" refers.
const MAX_LINES: usize = 6;
/// Words about the state of a line.
const STATE_WORDS: [&str; 22] = [
    "ok",
    "okay",
    "fine",
    "running",
    "working",
    "delayed",
    "delays",
    "delay",
    "late",
    "problem",
    "problems",
    "issue",
    "issues",
    "trouble",
    "disrupted",
    "disruption",
    "suspended",
    "closed",
    "good",
    "bad",
    "up",
    "affected",
];
/// Words that refer to nothing themselves and stand around a reference.
const AROUND: [&str; 20] = [
    "and", "what", "about", "how", "hows", "is", "are", "the", "one", "line", "then", "s", "so", "ok", "ones", "doing",
    "too", "now", "today", "please",
];
/// Words of questions about the state of a line of several.
const MORE: [&str; 17] = [
    "why", "whys", "which", "whats", "wrong", "with", "any", "better", "worse", "still", "again", "it", "has", "that",
    "there", "slow", "or",
];
const NUMBERS: [(&str, usize); 6] = [("two", 2), ("both", 2), ("three", 3), ("four", 4), ("five", 5), ("six", 6)];

/// What was said about lines, up to a message.
#[derive(Debug, Default)]
pub(crate) struct SpokenLines {
    /// The lines that the user named or referred to, without repetitions, in the order of their first mention.
    asked: Vec<&'static LineInfo>,
    /// The line that the user named last.
    last_asked: Option<&'static LineInfo>,
    /// The lines of the newest answer.
    answered: Vec<&'static LineInfo>,
    /// The lines that the newest answer calls disrupted; `None` if the answer is not about the states of lines.
    disrupted: Option<Vec<&'static LineInfo>>,
    /// The lines of the newest route, in the order of its rides.
    ridden: Vec<&'static LineInfo>,
    /// The lines that the newest answer with states called disrupted.
    last_disrupted: Vec<&'static LineInfo>,
    /// The lines of the newest answer that called several disrupted.
    listed: Vec<&'static LineInfo>,
    /// The lines of the newest route or board.
    trip: Vec<&'static LineInfo>,
    /// The lines of the newest answer that names two without their states, until the user names another one.
    pair: Vec<&'static LineInfo>,
    /// The lines of each answer that names several without their states.
    named: Vec<Vec<&'static LineInfo>>,
    /// The lines of the newest answer about several lines, in its order, and which of them run well, if it says so.
    compared: Vec<(&'static LineInfo, Option<bool>)>,
}

impl SpokenLines {
    /// Collects the lines of messages, oldest first.
    pub(crate) fn of<T: AsRef<str>>(messages: impl IntoIterator<Item = (Role, T)>) -> Self {
        let mut spoken = Self::default();
        for (role, text) in messages {
            match role {
                Role::User => spoken.add_question(text.as_ref()),
                Role::Assistant => spoken.add_answer(text.as_ref()),
                _ => {}
            }
        }
        spoken
    }

    /// The lines that the user named or referred to, in the order of their first mention.
    pub(crate) fn asked(&self) -> &[&'static LineInfo] {
        &self.asked
    }

    /// The line that the user named last.
    pub(crate) fn last_asked(&self) -> Option<&'static LineInfo> {
        self.last_asked
    }

    /// The lines that the newest answer with states called disrupted.
    pub(crate) fn disrupted(&self) -> &[&'static LineInfo] {
        &self.last_disrupted
    }

    /// The lines of the newest route or board.
    pub(crate) fn of_trip(&self) -> Vec<&'static LineInfo> {
        self.trip.clone()
    }

    fn add_question(&mut self, text: &str) {
        let named = lines_of(&Utterance::new(text));
        let lines = if named.is_empty() { self.referred(text) } else { named };
        if lines.iter().any(|line| !self.pair.contains(line)) {
            self.pair.clear();
        }
        for line in &lines {
            if !self.asked.contains(line) {
                self.asked.push(line);
            }
        }
        self.last_asked = lines.last().copied().or(self.last_asked);
    }

    fn add_answer(&mut self, text: &str) {
        // A step of a turn that only calls tools.
        if text.is_empty() {
            return;
        }
        self.answered = lines_of(&Utterance::new(text));
        let is_route = text.contains("Take the ");
        if is_route {
            self.ridden.clone_from(&self.answered);
        }
        if is_route || text.starts_with("Next trains of ") {
            self.trip.clone_from(&self.answered);
        }
        let states: Vec<(&'static LineInfo, bool)> = text.lines().filter_map(state_of).collect();
        if !is_route && states.len() > 1 {
            self.compared = states.iter().map(|(line, is_good)| (*line, Some(*is_good))).collect();
        } else if states.is_empty() && text.starts_with("You asked about the ") && self.answered.len() > 1 {
            self.compared = self.answered.iter().map(|line| (*line, None)).collect();
        }
        match states[..] {
            [(line, _)] if !is_route => self.last_asked = Some(line),
            [] if self.answered.len() > 1 => {
                if let [_, _] = self.answered[..] {
                    self.pair.clone_from(&self.answered);
                }
                self.named.push(self.answered.clone());
            }
            _ => {}
        }
        let disrupted = states.iter().filter(|(_, is_good)| !is_good).map(|(line, _)| *line);
        self.disrupted = (!states.is_empty() && !is_route).then(|| {
            let mut lines: Vec<&'static LineInfo> = Vec::new();
            disrupted.for_each(|line| {
                if !lines.contains(&line) {
                    lines.push(line)
                }
            });
            lines
        });
        if let Some(lines) = &self.disrupted {
            self.last_disrupted.clone_from(lines);
            if lines.len() > 1 {
                self.listed.clone_from(lines);
            }
        }
    }

    /// Returns the lines to which a message refers.
    pub(crate) fn referred(&self, text: &str) -> Vec<&'static LineInfo> {
        let message = Utterance::new(text);
        self.reference(&message).map(|(_, lines)| lines).unwrap_or_default()
    }

    /// Returns the message with the names of the lines to which it refers; `None` if it refers to none.
    pub(crate) fn with_names(&self, text: &str) -> Option<String> {
        let message = Utterance::new(text);
        let (words, lines) = self.reference(&message)?;
        let names: Vec<String> = lines.iter().map(|line| format!("the {}", line.name)).collect();
        let (start, end) = (message.words()[words.start].span.start, message.words()[words.end - 1].span.end);
        let named = names.join(" and ");
        let is_whole = words.start == 0 && words.end == message.words().len();
        // A question about several lines asks how they are.
        let named = match asks_why(&message) {
            true => format!("why is {named} delayed"),
            false if is_whole || lines.len() > 1 && words.start == 0 => format!("status of {named}"),
            false => named,
        };
        Some(format!("{}{named}{}", &text[..start], &text[end..]))
    }

    /// Finds the words that refer to lines, and the lines.
    fn reference(&self, message: &Utterance) -> Option<(Range<usize>, Vec<&'static LineInfo>)> {
        if !may_refer(message) || self.asked.is_empty() && self.answered.is_empty() || !lines_of(message).is_empty() {
            return None;
        }
        let one = |(words, line): (Range<usize>, &'static LineInfo)| (words, vec![line]);
        self.by_question(message)
            .or_else(|| self.by_place(message))
            .or_else(|| self.by_state(message))
            .map(one)
            .or_else(|| self.only_one(message).map(one))
            .or_else(|| self.both(message))
            .or_else(|| self.several(message))
            .or_else(|| self.other(message).or_else(|| self.of_answer(message)).map(one))
            .or_else(|| self.by_ride(message).or_else(|| self.of_cause(message)).map(one))
    }

    /// "The first line I asked about", "the line I asked about before".
    fn by_question(&self, message: &Utterance) -> Option<(Range<usize>, &'static LineInfo)> {
        const FIRST: [&str; 4] = ["first", "originally", "initially", "beginning"];
        const PREVIOUS: [&str; 4] = ["previous", "before", "earlier", "previously"];
        let noun = (1..message.words().len()).find(|at| matches!(message.word(*at), "line" | "one"))?;
        let mut at = noun + 1;
        at += usize::from(matches!(message.word(at), "that" | "which"));
        if !matches!(message.word(at), "i" | "we") {
            return None;
        }
        at += 1 + usize::from(matches!(message.word(at + 1), "was" | "first" | "originally" | "just"));
        if !matches!(message.word(at), "asked" | "asking" | "named" | "mentioned" | "checked" | "started" | "said") {
            return None;
        }
        at += 1;
        at += usize::from(message.word(at) == "you");
        at += usize::from(matches!(message.word(at), "about" | "for" | "after" | "with" | "on"));
        let mut end = at;
        at += usize::from(matches!(message.word(at), "at" | "in" | "to"));
        at += usize::from(message.word(at) == "the");
        if FIRST.contains(&message.word(at)) || PREVIOUS.contains(&message.word(at)) || message.word(at) == "start" {
            end = at + 1;
        }
        let is_about = |words: &[&str]| (noun - 1..end).any(|at| words.contains(&message.word(at)));
        let start = (0..noun).rev().find(|at| matches!(message.word(*at), "the" | "my" | "that")).unwrap_or(noun);
        // "What was the first line I asked you about?" asks for its name.
        let asks_name = |at: usize| {
            matches!(
                message.word(at),
                "and" | "so" | "ok" | "what" | "whats" | "which" | "was" | "is" | "remind" | "me" | "again"
            )
        };
        let is_open = (0..start).any(|at| matches!(message.word(at), "what" | "whats" | "which" | "remind"));
        if is_open && end == message.words().len() && (0..start).all(asks_name) {
            return None;
        }
        let line = if is_about(&FIRST) || is_about(&["start"]) {
            self.asked.first()
        } else if is_about(&["second"]) {
            self.asked.get(1)
        } else if is_about(&PREVIOUS) {
            self.asked.iter().rev().find(|line| Some(**line) != self.last_asked)
        } else {
            self.last_asked.as_ref()
        };
        Some((start..end, line?))
    }

    /// "Why is the second one late?", "and the last one?", about the lines of an answer.
    fn by_place(&self, message: &Utterance) -> Option<(Range<usize>, &'static LineInfo)> {
        const ORDINALS: [&str; 5] = ["first", "second", "third", "fourth", "fifth"];
        let at = (1..message.words().len()).find(|at| {
            message.word(at - 1) == "the" && (ORDINALS.contains(&message.word(*at)) || message.word(*at) == "last")
        })?;
        let line = match ORDINALS.iter().position(|ordinal| *ordinal == message.word(at)) {
            // After an answer about fewer lines, the order is that of the questions.
            Some(number) if !self.compared.is_empty() => {
                self.compared.get(number).map(|(line, _)| *line).or_else(|| self.asked.get(number).copied())?
            }
            Some(_) => return None,
            None => self.compared.last()?.0,
        };
        let end = match (message.word(at + 1), message.word(at + 2)) {
            ("one" | "line", _) => at + 2,
            ("of", "those" | "these" | "them") => at + 3,
            _ => at + 1,
        };
        let is_plain = |other: usize| {
            let word = message.word(other);
            (at..end).contains(&other) || AROUND.contains(&word) || STATE_WORDS.contains(&word) || MORE.contains(&word)
        };
        let places = gazetteer().find(message);
        // "The first one from Pinner" is a train.
        let is_of_them = message.word(at + 1) == "of";
        let is_place = |other: usize| {
            let is_way = matches!(message.word(other), "from" | "at" | "to" | "between") && is_of_them;
            is_way || places.iter().any(|place| place.words.contains(&other))
        };
        let is_known = (0..message.words().len()).all(|other| is_plain(other) || is_place(other))
            && (places.is_empty() || is_of_them);
        // After a route, "the second line" is that of its second ride.
        (is_known && self.ridden.is_empty()).then_some((at - 1..end, line))
    }

    /// "Which is the only one without delays?", "which of them is fine?", if the states of several lines differ so.
    fn only_one(&self, message: &Utterance) -> Option<(Range<usize>, &'static LineInfo)> {
        const GOOD: [&str; 7] = ["ok", "okay", "fine", "running", "working", "good", "unaffected"];
        const BAD: [&str; 12] = [
            "delay",
            "delays",
            "delayed",
            "problem",
            "problems",
            "trouble",
            "late",
            "disrupted",
            "disruption",
            "suspended",
            "closed",
            "bad",
        ];
        let has = |words: &[&str]| message.words().iter().any(|word| words.contains(&word.folded.as_str()));
        let is_negated = has(&["without", "no", "not", "isnt", "doesnt", "free"]);
        let asks_good = if has(&BAD) {
            is_negated
        } else if has(&GOOD) {
            !is_negated
        } else {
            return None;
        };
        let is_plain = |at: usize| {
            let word = message.word(at);
            let around = AROUND.contains(&word) || STATE_WORDS.contains(&word) || MORE.contains(&word);
            around || matches!(word, "only" | "without" | "no" | "not" | "isnt" | "of" | "them" | "those" | "any")
        };
        let asks = has(&["which", "whats", "only"]) && has(&["one", "only", "ones", "line"]);
        let mut fitting =
            self.compared.iter().filter(|(_, is_good)| *is_good == Some(asks_good)).map(|(line, _)| *line);
        let line = fitting.next().filter(|_| fitting.next().is_none())?;
        let is_known = asks && (0..message.words().len()).all(is_plain);
        is_known.then(|| (0..message.words().len(), line))
    }

    /// "Are they both working?", about the last two lines.
    fn both(&self, message: &Utterance) -> Option<(Range<usize>, Vec<&'static LineInfo>)> {
        let at = (0..message.words().len()).find(|at| message.word(*at) == "both")?;
        let start = at.checked_sub(1).filter(|before| matches!(message.word(*before), "they" | "them")).unwrap_or(at);
        let end = match (message.word(at + 1), message.word(at + 2), message.word(at + 3)) {
            ("of", "them" | "those" | "these", _) => at + 3,
            ("lines", ..) => at + 2,
            _ => at + 1,
        };
        let asks = |at: usize| STATE_WORDS.contains(&message.word(at));
        let opens = (0..start).any(|at| matches!(message.word(at), "are" | "is" | "do"));
        let lines = self.asked.get(self.asked.len().checked_sub(2)?..)?.to_vec();
        let is_meant = opens && (end..message.words().len()).any(asks) && gazetteer().find(message).is_empty();
        is_meant.then_some((start..end, lines))
    }

    /// "The delayed line", "the one with delays", if exactly one was called disrupted.
    fn by_state(&self, message: &Utterance) -> Option<(Range<usize>, &'static LineInfo)> {
        const STATES: [&str; 9] =
            ["delayed", "disrupted", "suspended", "affected", "problematic", "closed", "delays", "problems", "trouble"];
        let [line] = self.last_disrupted[..] else { return None };
        let is_noun = |at: usize| matches!(message.word(at), "line" | "one");
        let start = (0..message.words().len()).find(|at| matches!(message.word(*at), "the" | "that"))?;
        if STATES[..6].contains(&message.word(start + 1)) && is_noun(start + 2) {
            return Some((start..start + 3, line));
        }
        if !is_noun(start + 1) {
            return None;
        }
        let mut at = start + 2;
        while matches!(message.word(at), "that" | "which" | "thats" | "is" | "s" | "with" | "has" | "the" | "was") {
            at += 1;
        }
        (at > start + 2 && STATES.contains(&message.word(at))).then(|| (start..at + 1, line))
    }

    /// "Which of those four had a problem?"
    fn several(&self, message: &Utterance) -> Option<(Range<usize>, Vec<&'static LineInfo>)> {
        let has = |words: &[&str]| message.words().iter().any(|word| words.contains(&word.folded.as_str()));
        let at = (0..4).find(|at| matches!(message.word(*at), "which" | "are" | "any"))?;
        if !(0..at).all(|at| AROUND.contains(&message.word(at)) || message.word(at) == "but") {
            return None;
        }
        let of = (at..at + 3).find(|at| message.word(*at) == "of")?;
        let is_plural = matches!(message.word(of + 1), "those" | "these" | "them" | "the");
        if !is_plural || !has(&STATE_WORDS) || !gazetteer().find(message).is_empty() {
            return None;
        }
        let count = NUMBERS.iter().find(|(name, _)| message.word(of + 2) == *name).map(|(_, count)| *count);
        let lines = match count {
            Some(count) => {
                let asked = self.asked.len().checked_sub(count).and_then(|start| self.asked.get(start..));
                let named = self.named.iter().rfind(|lines| lines.len() == count);
                named.map(Vec::as_slice).or(asked)?.to_vec()
            }
            None => self.asked.clone(),
        };
        ((2..=MAX_LINES).contains(&lines.len())).then(|| (0..message.words().len(), lines))
    }

    /// "And the other one?", between two lines.
    fn other(&self, message: &Utterance) -> Option<(Range<usize>, &'static LineInfo)> {
        let at = (0..message.words().len()).find(|at| message.word(*at) == "other")?;
        let end = if matches!(message.word(at + 1), "one" | "line") { at + 2 } else { at + 1 };
        let is_plain = |other: usize| {
            (at..end).contains(&other)
                || [&AROUND[..], &STATE_WORDS[..]].iter().any(|words| words.contains(&message.word(other)))
        };
        if message.word(at.checked_sub(1)?) != "the"
            || !(0..message.words().len()).all(is_plain)
            || self.disrupted.is_none()
        {
            return None;
        }
        let pairs = [&self.listed, &self.pair, &self.asked];
        let pair = pairs
            .into_iter()
            .find(|lines| lines.len() == 2 && self.last_asked.is_some_and(|last| lines.contains(&last)))?;
        pair.iter().find(|line| Some(**line) != self.last_asked).map(|line| (at - 1..end, *line))
    }

    /// "Is that one running?", "any trouble on that?", after an answer that names one further line.
    fn of_answer(&self, message: &Utterance) -> Option<(Range<usize>, &'static LineInfo)> {
        let count = message.words().len();
        let one = (0..count)
            .find(|at| matches!(message.word(*at), "that" | "this") && matches!(message.word(*at + 1), "one" | "line"));
        let is_plain = |at: usize| {
            let word = message.word(at);
            AROUND.contains(&word) || STATE_WORDS.contains(&word) || MORE.contains(&word) || word == "on"
        };
        let it = (0..count).find(|at| matches!(message.word(*at), "that" | "it")).filter(|_| (0..count).all(is_plain));
        let (at, end) = one.map(|at| (at, at + 2)).or(it.map(|at| (at, at + 1)))?;
        let asks_state = message.words().iter().any(|word| STATE_WORDS.contains(&word.folded.as_str()));
        if !asks_state || self.disrupted.is_some() || !gazetteer().find(message).is_empty() {
            return None;
        }
        let mut further = self.answered.iter().filter(|line| Some(**line) != self.last_asked);
        match (further.next(), further.next()) {
            (Some(line), None) => Some((at..end, line)),
            _ => None,
        }
    }

    /// "Is the first line ok?", about the rides of a route, and then "and the second?"
    fn by_ride(&self, message: &Utterance) -> Option<(Range<usize>, &'static LineInfo)> {
        let (at, number) = (1..message.words().len()).find_map(|at| {
            let number = ["first", "second", "third"].iter().position(|ordinal| message.word(at) == *ordinal)?;
            (message.word(at - 1) == "the").then_some((at, number))
        })?;
        let line = self.ridden.get(number)?;
        let asks_state = message.words().iter().any(|word| STATE_WORDS.contains(&word.folded.as_str()));
        if matches!(message.word(at + 1), "line" | "one") && asks_state && gazetteer().find(message).is_empty() {
            return Some((at - 1..at + 2, line));
        }
        let is_plain = |other: usize| other == at || AROUND.contains(&message.word(other));
        let continues = self.last_asked.is_some_and(|last| self.ridden.contains(&last)) && self.disrupted.is_some();
        let end = if matches!(message.word(at + 1), "line" | "one") { at + 2 } else { at + 1 };
        (continues && (0..message.words().len()).all(is_plain)).then(|| (at - 1..end, *line))
    }

    /// "What happened there?" and "why?", after states of which one is a disruption.
    fn of_cause(&self, message: &Utterance) -> Option<(Range<usize>, &'static LineInfo)> {
        let [line] = self.disrupted.as_deref()? else { return None };
        asks_why(message).then(|| (0..message.words().len(), *line))
    }
}

/// Whether a message may refer to lines in this way. If not, what was said about lines does not have to be collected.
pub(crate) fn may_refer_to_lines(text: &str) -> bool {
    may_refer(&Utterance::new(text))
}

fn may_refer(message: &Utterance) -> bool {
    let is_noun = |at: usize| matches!(message.word(at), "line" | "one");
    let has_state = || message.words().iter().any(|word| STATE_WORDS.contains(&word.folded.as_str()));
    let refers = |at: usize| {
        let next = message.word(at + 1);
        match message.word(at) {
            "line" | "one" => {
                matches!(next, "i" | "we" | "that" | "which" | "thats" | "with")
                    || matches!(message.word(at + 2), "i" | "we")
            }
            "the" | "that" | "this" if is_noun(at + 1) => has_state(),
            "the" => {
                matches!(next, "other" | "first" | "second" | "third" | "fourth" | "fifth" | "last" | "only")
                    || is_noun(at + 2) && STATE_WORDS.contains(&next)
            }
            "both" | "it" | "that" => has_state(),
            "which" if matches!(next, "one" | "ones") => has_state(),
            "which" | "are" | "any" => {
                matches!(message.word(at + 2), "those" | "these" | "them" | "the") && has_state()
            }
            _ => false,
        }
    };
    (0..message.words().len()).any(refers) || asks_why(message)
}

/// Whether a message only asks for the cause of something: "what happened there?", "why is that?"
fn asks_why(message: &Utterance) -> bool {
    const WORDS: [&str; 26] = [
        "and",
        "so",
        "ok",
        "what",
        "whats",
        "why",
        "happened",
        "happening",
        "there",
        "is",
        "that",
        "it",
        "wrong",
        "with",
        "the",
        "matter",
        "cause",
        "reason",
        "how",
        "come",
        "s",
        "going",
        "on",
        "causing",
        "was",
        "has",
    ];
    const ASKING: [&str; 8] = ["why", "happened", "happening", "wrong", "matter", "cause", "causing", "reason"];
    let has = |words: &[&str]| message.words().iter().any(|word| words.contains(&word.folded.as_str()));
    has(&ASKING) && message.words().iter().all(|word| WORDS.contains(&word.folded.as_str()))
}

/// Returns the line whose state a line of an answer says ("Northern line: minor delays."), and whether its service is good.
fn state_of(text: &str) -> Option<(&'static LineInfo, bool)> {
    let line = LINES.iter().find(|line| text.starts_with(line.name))?;
    let state = text[line.name.len()..].strip_prefix(": ")?;
    Some((line, state.starts_with("good service")))
}

#[cfg(test)]
mod tests;
