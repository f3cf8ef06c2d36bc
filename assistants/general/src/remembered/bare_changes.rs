//! Messages that report a change without saying what has changed.

use threadkeep::agent::{Excerpt, Failure, SourceQuery};
use threadkeep::core::text::content_terms;
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
            let (Some(kind), true) = (value_kind(text), is_bare_change(text) && !refers_back(text)) else { continue };
            let is_changed = |(_, older): &&(&Message, String)| {
                value_kind(older) == Some(kind) && !is_question(older) && !is_bare_change(older)
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
                None => last_quotation_before(message.seq)
                    .into_iter()
                    .flat_map(|answer| &answer.content.sources)
                    .map(|it| it.id.clone())
                    .collect(),
            };
            let is_older =
                |excerpt: &Excerpt| ids.contains(&excerpt.source.id) && value_kind(&excerpt.text) == Some(kind);
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
