//! Messages that report a change without saying what has changed.

use threadkeep::agent::{Excerpt, Failure, SourceQuery};
use threadkeep::core::text::{content_terms, indexed_terms};
use threadkeep::dialogue::time::{Period, find_times};
use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{Message, Role, Source, ThreadId};

use super::change_words::{CHANGES, UNINFORMATIVE_WORDS};
use super::references::refers_back;
use super::{MAX_REFERENCE, messages_within};
use crate::evidence::heading::{DATE_LENGTH, with_change, with_reference};
use crate::evidence::question::is_light;
use crate::evidence::spelling::is_misspelling;
use crate::evidence::terms::has_clock_time_or_ordinal;

/// The maximum number of threads with excerpts that are searched for changes, besides the current thread.
const MAX_SEARCHED_THREADS: usize = 4;

/// Adds the messages that change an excerpt without naming what they change: "me han cambiado la hora, ahora es a las 10:30". Such a
/// message changes the newest earlier statement in its conversation that has a value of the same kind.
pub(super) async fn add_bare_changes(
    source_query: &SourceQuery<'_>,
    excerpts: &mut Vec<Excerpt>,
) -> Result<(), Failure> {
    let mut threads: Vec<ThreadId> = Vec::new();
    for (thread, _) in excerpts.iter().filter_map(|excerpt| excerpt.source.message_position()) {
        if !threads.contains(&thread) && threads.len() < MAX_SEARCHED_THREADS {
            threads.push(thread);
        }
    }
    if !threads.contains(&source_query.thread) {
        threads.push(source_query.thread);
    }
    for thread in threads {
        let messages = messages_within(source_query, thread, None, None).await?;
        let last_quotation_before = |before: u64| -> Option<&Message> {
            let is_answer = |message: &&Message| message.seq < before && !message.content.sources.is_empty();
            messages.iter().rev().find(is_answer)
        };
        let is_by_user = |message: &&Message| message.content.role == Role::User;
        let statements: Vec<(&Message, String)> =
            messages.iter().filter(is_by_user).map(|message| (message, message.plain_text().into_owned())).collect();
        for (at, (message, text)) in statements.iter().enumerate() {
            let Some(kind) = value_kind(text) else { continue };
            // A message that refers back is linked when it is found; "no wait, 13 November" has no word by which it is found.
            let is_found = excerpts.iter().any(|excerpt| excerpt.source.id == Source::of_message(thread, message).id);
            let is_bare = is_bare_change(text) && !(refers_back(text) && is_found);
            let named: Vec<String> = if is_bare { Vec::new() } else { named_subject(text) };
            if !is_bare && named.is_empty() {
                continue;
            }
            // "Deadline moved to 13 November" changes the newest statement with a deadline.
            let has_subject = |older: &str| {
                let terms = indexed_terms(older);
                named.iter().all(|stem| terms.contains(stem))
            };
            let has_kind = |older: &str| match (kind, is_bare) {
                (ValueKind::Time, false) => names_date(older) || value_kind(older) == Some(kind),
                _ => value_kind(older) == Some(kind),
            };
            let is_changed = |(_, older): &&(&Message, String)| {
                has_kind(older) && !is_question(older) && !is_bare_change(older) && has_subject(older)
            };
            let Some(mut change) = Excerpt::of_message(thread, message) else { continue };
            // A report such as "final: 26 September" changes a date; "no, 26 September" directly corrects what was said last.
            let has_same_form = |older: &&(&Message, String)| is_changed(older) && names_date(&older.1);
            let reports_date = names_date(text) && !corrects_last(text);
            let of_same_form = || statements[..at].iter().rev().find(has_same_form).filter(|_| reports_date);
            let older = of_same_form().or_else(|| statements[..at].iter().rev().find(is_changed));
            // If there is no such statement, the message changes what the assistant quoted last.
            let ids: Vec<String> = match older {
                Some((older, _)) => vec![Source::of_message(thread, older).id],
                None if !is_bare => continue,
                None => last_quotation_before(message.seq)
                    .into_iter()
                    .flat_map(|answer| &answer.content.sources)
                    .map(|it| it.id.clone())
                    .collect(),
            };
            let is_older = |excerpt: &Excerpt| ids.contains(&excerpt.source.id) && has_kind(&excerpt.text);
            let Some(position) = excerpts.iter().position(is_older) else { continue };
            let older_text = &excerpts[position].text;
            let older_text: String = older_text.chars().take(MAX_REFERENCE).collect();
            change.heading = with_reference(&change.heading, &older_text);
            let day = message.created_at.to_string().chars().take(DATE_LENGTH).collect::<String>();
            excerpts[position].heading = with_change(&excerpts[position].heading, &day);
            excerpts.retain(|excerpt| excerpt.source.id != change.source.id);
            excerpts.push(change);
        }
    }
    Ok(())
}

/// The kind of value in a short statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Time,
    /// A number with the given number of digits.
    Number(usize),
}

fn value_kind(text: &str) -> Option<ValueKind> {
    let utterance = Utterance::new(text);
    if !find_times(&utterance).is_empty() || has_clock_time_or_ordinal(text) {
        return Some(ValueKind::Time);
    }
    let digits = |word: &str| word.bytes().filter(u8::is_ascii_digit).count();
    utterance.words().iter().map(|word| digits(&word.folded)).max().filter(|most| *most > 0).map(ValueKind::Number)
}

/// Whether a text names a date: "26 September".
fn names_date(text: &str) -> bool {
    find_times(&Utterance::new(text)).iter().any(|found| matches!(found.time.period, Some(Period::Date { .. })))
}

/// Whether a message begins like a correction of what was said directly before it.
fn corrects_last(text: &str) -> bool {
    let utterance = Utterance::new(text);
    matches!(utterance.word(0), "no" | "sorry" | "wait" | "oops" | "actually" | "rather" | "typo" | "perdon" | "digo")
}

/// Whether a message reports a change without saying what has changed.
fn is_bare_change(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let times: Vec<_> = find_times(&utterance).into_iter().map(|found| found.words).collect();
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let is_change = |word: &str| CHANGES.iter().any(|change| *change == word || is_misspelling(word, change));
    let is_value =
        |at: usize| times.iter().any(|range| range.contains(&at)) || words[at].contains(|c: char| c.is_ascii_digit());
    let is_uninformative = |at: usize| {
        let word = words[at];
        is_value(at)
            || is_change(word)
            || CORRECTIONS.contains(&word)
            || UNINFORMATIVE_WORDS.contains(&word)
            || is_light(word)
            || content_terms(word).is_empty()
    };
    // "No, Tuesday"
    let corrects = words.first().is_some_and(|first| CORRECTIONS.contains(first))
        && words.len() <= MAX_CORRECTION_WORDS
        && (0..words.len()).any(is_value);
    // "And on Saturday, not Friday"
    let is_time = |at: usize| times.iter().any(|range| range.contains(&at));
    let rejects = (1..words.len()).any(|at| words[at - 1] == "not" && is_time(at) && (0..at).any(is_time));
    (corrects || rejects || words.iter().any(|word| is_change(word)))
        && !is_question(text)
        && (0..words.len()).all(is_uninformative)
}

/// Returns the stems of the words that name what a short message changes: "deadline" in "deadline moved to 13 November btw, phew". Returns
/// nothing if the message reports no change or says more.
fn named_subject(text: &str) -> Vec<String> {
    let utterance = Utterance::new(text);
    let times: Vec<_> = find_times(&utterance).into_iter().map(|found| found.words).collect();
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let is_change = |word: &str| CHANGES.contains(&word);
    let is_known = |at: usize| {
        times.iter().any(|range| range.contains(&at))
            || words[at].contains(|c: char| c.is_ascii_digit())
            || is_change(words[at])
            || CORRECTIONS.contains(&words[at])
            || INTERJECTIONS.contains(&words[at])
            || content_terms(words[at]).is_empty()
    };
    let Some(change) = words.iter().position(|word| is_change(word)).filter(|_| !is_question(text)) else {
        return Vec::new();
    };
    let named: Vec<usize> = (0..words.len()).filter(|at| !is_known(*at)).collect();
    let is_subject = (1..=MAX_SUBJECT_WORDS).contains(&named.len()) && named.iter().all(|at| *at < change);
    if !is_subject {
        return Vec::new();
    }
    named.into_iter().filter_map(|at| content_terms(words[at]).into_iter().next()?.1.into_iter().next()).collect()
}

/// The maximum number of words that name what a message changes.
const MAX_SUBJECT_WORDS: usize = 2;
/// Interjections of the chat.
const INTERJECTIONS: [&str; 18] = [
    "btw", "phew", "ugh", "lol", "haha", "damn", "argh", "oh", "well", "fyi", "anyway", "thanks", "ok", "hey", "phew",
    "yay", "sadly", "luckily",
];

/// Words that begin a correction of the value that was said last.
const CORRECTIONS: [&str; 13] = [
    "no",
    "sorry",
    "wait",
    "oops",
    "actually",
    "correction",
    "rather",
    "perdon",
    "digo",
    "typo",
    "update",
    "ugh",
    "final",
];
/// The maximum number of words in a correction of a value.
const MAX_CORRECTION_WORDS: usize = 6;
