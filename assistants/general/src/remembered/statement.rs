//! Statements that later statements change.

use threadkeep::agent::Excerpt;
use threadkeep::core::text::{content_terms, indexed_terms};
use threadkeep::dialogue::time::find_times;
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ThreadId, Timestamp};

use super::MAX_REFERENCE;
use super::change_words::{CHANGES, DATED_CHANGES, ENDS, HANDOVERS};
use super::references::{capitalized_words, names_in};
use crate::evidence::heading::{Heading, with_change, with_replaced_reference};
use crate::evidence::question::Question;
use crate::evidence::terms::has_clock_time_or_ordinal;

/// Marks excerpts that a later excerpt changes.
pub(super) fn mark_changed(excerpts: &mut [Excerpt], question: &Question) {
    let topic: Vec<&String> = question.topic.iter().flat_map(|word| word.iter()).collect();
    let statements: Vec<Option<Statement>> = excerpts.iter().map(Statement::of).collect();
    let change = |index: usize| -> Option<(usize, &Statement)> {
        let older = statements[index].as_ref()?;
        let is_only = |word: &str| {
            statements
                .iter()
                .flatten()
                .filter(|one| one.values != older.values)
                .all(|one| one.says_change || one.said_at > older.said_at || !one.has_word(word))
        };
        let changes =
            |newer: &&(usize, &Statement)| newer.1.changes(older, &topic) || newer.1.updates(older, &topic, &is_only);
        let all = statements.iter().enumerate().filter_map(|(at, statement)| Some((at, statement.as_ref()?)));
        all.collect::<Vec<_>>().iter().filter(changes).max_by_key(|(_, newer)| newer.said_at).copied()
    };
    let mut changes: Vec<Option<(usize, String)>> =
        (0..excerpts.len()).map(|index| change(index).map(|(at, newer)| (at, newer.day.clone()))).collect();
    let has_values = |index: usize| statements[index].as_ref().is_some_and(|older| !older.values.is_empty());
    // A message with a new value changes statements with a value, but not other statements about the same person.
    let with_values: Vec<usize> = (0..excerpts.len())
        .filter(|index| has_values(*index))
        .filter_map(|index| changes[index].as_ref().map(|(newer, _)| *newer))
        .collect();
    for (index, change) in changes.iter_mut().enumerate() {
        let is_other = |newer: usize| with_values.contains(&newer) && has_values(newer) && !has_values(index);
        if change.as_ref().is_some_and(|(newer, _)| is_other(*newer)) {
            *change = None;
        }
    }
    // If a newer statement changes several statements, it refers to the most similar one.
    let similarity = |index: usize, newer: usize| match (&statements[index], &statements[newer]) {
        (Some(older), Some(newer)) => {
            let asked = topic.iter().filter(|term| older.has_word(term)).count();
            (asked, older.terms.iter().filter(|term| newer.terms.contains(term)).count())
        }
        _ => (0, 0),
    };
    let mut order: Vec<usize> = (0..excerpts.len()).collect();
    order.sort_by_key(|index| changes[*index].as_ref().map(|(newer, _)| similarity(*index, *newer)));
    for index in order {
        let Some((newer, day)) = changes[index].clone() else { continue };
        // A message does not always change the message that it directly follows.
        let text: String = excerpts[index].text.chars().take(MAX_REFERENCE).collect();
        if let Some(heading) = with_replaced_reference(&excerpts[newer].heading, &text) {
            excerpts[newer].heading = heading;
        }
        excerpts[index].heading = with_change(&excerpts[index].heading, &day);
    }
}

/// A statement in a conversation.
struct Statement {
    said_at: Timestamp,
    day: String,
    speaker: String,
    /// The terms of its words, except times and numbers.
    terms: Vec<String>,
    /// The terms of the message that it refers to.
    reference: Vec<String>,
    has_reference: bool,
    /// The times and numbers in it.
    values: Vec<String>,
    /// The names in it.
    names: Vec<String>,
    /// Its capitalized words, including those that begin sentences.
    capitalized: Vec<String>,
    /// Whether it contains a time expression.
    names_time: bool,
    /// Whether it contains a number outside of time expressions.
    names_number: bool,
    /// The conversation.
    thread: Option<ThreadId>,
    says_change: bool,
    says_handover: bool,
    says_end: bool,
}

impl Statement {
    fn of(excerpt: &Excerpt) -> Option<Self> {
        let heading = Heading::parse(&excerpt.heading).filter(|heading| !heading.is_by_assistant())?;
        if is_question(&excerpt.text) {
            return None;
        }
        let utterance = Utterance::new(&*excerpt.text);
        let times: Vec<_> = find_times(&utterance).into_iter().map(|found| found.words).collect();
        let (mut words, mut values, mut names_number) = (Vec::new(), Vec::new(), false);
        for (at, word) in utterance.words().iter().enumerate() {
            let (is_time, is_number) =
                (times.iter().any(|range| range.contains(&at)), word.folded.chars().any(char::is_numeric));
            names_number |= is_number && !is_time;
            let is_value = is_time || is_number;
            if is_value { values.push(word.folded.clone()) } else { words.push(word.folded.as_str()) }
        }
        let all: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
        let (text, all) = (format!(" {} ", words.join(" ")), format!(" {} ", all.join(" ")));
        let is_within = |text: &str, cues: &[&str]| cues.iter().any(|cue| text.contains(&format!(" {cue} ")));
        let says = |cues: &[&str]| is_within(&text, cues);
        Some(Self {
            said_at: excerpt.source.fields.get("said_at")?.as_str()?.parse().ok()?,
            day: heading.day.to_owned(),
            speaker: heading.speaker.to_owned(),
            terms: content_terms(&words.join(" ")).into_iter().flat_map(|(_, stems)| stems).collect(),
            reference: heading.after.map(indexed_terms).unwrap_or_default(),
            has_reference: heading.after.is_some(),
            values,
            names: names_in(&excerpt.text),
            capitalized: capitalized_words(&excerpt.text),
            names_time: !times.is_empty() || has_clock_time_or_ordinal(&excerpt.text),
            names_number,
            thread: excerpt.source.message_position().map(|(thread, _)| thread),
            says_change: says(&CHANGES) || is_within(&all, &DATED_CHANGES),
            says_handover: says(&HANDOVERS),
            says_end: says(&ENDS),
        })
    }

    fn has_word(&self, word: &str) -> bool {
        self.terms.iter().chain(&self.values).any(|known| known == word)
    }

    /// Whether this statement reports, in other words, a change to what an older statement in the same conversation is
    /// about: "the bride moved the wedding to 24 October" after "Renata's wedding is on 17 October". The two share a word of the
    /// question that no earlier statement about another subject contains.
    fn updates(&self, older: &Self, topic: &[&String], is_only: &impl Fn(&str) -> bool) -> bool {
        let is_later = self.said_at > older.said_at && self.speaker == older.speaker;
        let shared_value = self.values.iter().any(|value| older.values.contains(value));
        let has_value = self.values.iter().any(|value| !older.values.contains(value));
        let is_same_kind =
            (!self.names_time || older.names_time) && (!self.names_number || older.names_number || older.names_time);
        let replaces = older.values.is_empty() || shared_value || has_value && is_same_kind;
        let shares = || topic.iter().any(|word| self.has_word(word) && older.has_word(word) && is_only(word));
        // In another conversation, only the old value shows that both statements are about the same subject.
        let is_near = self.thread == older.thread || shared_value;
        is_later && self.says_change && replaces && is_near && shares()
    }

    /// Whether this statement replaces an older one: it refers to the older one, repeats its words with other times or numbers, or
    /// states that something changed. It must answer every question that the older one answers.
    fn changes(&self, older: &Self, topic: &[&String]) -> bool {
        if self.said_at <= older.said_at || self.speaker != older.speaker {
            return false;
        }
        let has_other_name = !older.names.is_empty() && self.names.iter().any(|name| !older.names.contains(name));
        let has_answer = older.values.is_empty()
            || self.says_end
            || (!self.values.is_empty() && self.values != older.values)
            || (self.says_change && has_other_name);
        let shared = |terms: &[String]| older.terms.iter().filter(|term| terms.contains(term)).count();
        // The newer statement must contain every topic word of the question that the older one contains.
        let topic_of_older: Vec<_> = topic.iter().filter(|term| older.terms.contains(term)).collect();
        let shares_topic =
            |terms: &[String]| !topic_of_older.is_empty() && topic_of_older.iter().all(|term| terms.contains(term));
        let refers = self.has_reference && shared(&self.reference) * 2 >= older.terms.len() && !older.terms.is_empty();
        let is_same_sentence = !older.values.is_empty()
            && !older.terms.is_empty()
            && shared(&self.terms) == older.terms.len()
            && older.terms.iter().all(|term| self.terms.contains(term));
        // "Priya handed Falcon over to Tom" changes "Priya leads Falcon" without its verb.
        let shares_some = topic_of_older.iter().any(|term| self.terms.contains(term)) && shared(&self.terms) > 1;
        let says_change =
            (self.says_change || self.says_end) && shares_topic(&self.terms) || self.says_handover && shares_some;
        // "Yusuf cancelled, Pavel takes the 9:30 slot" changes "Yusuf speaks at 9:30".
        let shares_name = self.capitalized.iter().any(|name| older.capitalized.contains(name));
        let shares_value = self.values.iter().any(|value| older.values.contains(value));
        let reports = self.says_change || self.says_end || self.says_handover;
        let is_same_subject = reports && shares_name && (shares_value || shares_some);
        (has_answer && (refers || is_same_sentence || says_change)) || is_same_subject
    }
}
