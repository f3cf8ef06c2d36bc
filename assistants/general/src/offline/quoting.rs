//! Selects and formats the quotations that answer a question.

use std::collections::HashSet;

use jiff::Span;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use threadkeep::agent::DynamicContext;
use threadkeep::core::text::Language;
use threadkeep::dialogue::Utterance;
use threadkeep::dialogue::time::{Direction, Period, Relation, TimeMention, Which, find_times};
use threadkeep::{ChatMessage, Role};

use super::results::ordinal;
use crate::evidence::heading::Heading;
use crate::evidence::question::{Question, WantedValue};
use crate::evidence::{Candidate, answers, contains_topic, matches_word, missing_words};

const PREFERENCES: &str = "What the user prefers:\n";
/// The maximum number of characters in a quotation.
const MAX_CHARACTERS: usize = 500;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const MONTHS_IN_SPANISH: [&str; 12] = [
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
];

/// Text that may be quoted, with its citation number.
struct QuotableText {
    number: Option<usize>,
    heading: String,
    text: String,
}

/// Answers a question with quotations from the model's instructions. Returns `None` if no quotation answers it.
pub(super) fn quote(question: &Question, instructions: &str, language: Language) -> Option<String> {
    let quotable = quotable(instructions, language);
    let candidates = candidates(&quotable);
    let best = answers(question, &candidates);
    let mut missing = best.first().map(|best| missing_words(question, &candidates[*best])).unwrap_or_default();
    for other in best.iter().skip(1) {
        let lacks = missing_words(question, &candidates[*other]);
        missing.retain(|word| lacks.contains(word));
    }
    let found = quoted(question, &quotable, best, language)?;
    Some(if missing.is_empty() { found } else { format!("{}\n{found}", no_mention(&missing, language)) })
}

/// Reports that the quotations lack words of the question: "I found nothing about “die”. The closest …".
fn no_mention(missing: &[&str], language: Language) -> String {
    let words: Vec<String> = missing.iter().map(|word| format!("“{word}”")).collect();
    match language {
        Language::English => format!("I found nothing about {}. The closest thing you told me:", words.join(" and ")),
        Language::Spanish => {
            format!("No encontré nada sobre {}. Lo más parecido que me contaste:", words.join(" ni "))
        }
    }
}

/// Answers a question with the quotations that contain all words of its topic. Returns `None` if there is no such quotation.
pub(super) fn quote_complete_matches(question: &Question, instructions: &str, language: Language) -> Option<String> {
    let quotable = quotable(instructions, language);
    let candidates = candidates(&quotable);
    let mut best = answers(question, &candidates);
    best.retain(|index| contains_topic(question, &candidates[*index]));
    quoted(question, &quotable, best, language)
}

fn quotable(instructions: &str, language: Language) -> Vec<QuotableText> {
    let mut quotable: Vec<QuotableText> = preferences(instructions, language);
    for (number, heading, text) in DynamicContext::parse_excerpts(instructions) {
        quotable.push(QuotableText { number: Some(number), heading, text: text.trim().to_owned() });
    }
    quotable
}

fn candidates(quotable: &[QuotableText]) -> Vec<Candidate<'_>> {
    quotable.iter().map(|one| Candidate { heading: &one.heading, text: &one.text }).collect()
}

fn quoted(question: &Question, quotable: &[QuotableText], best: Vec<usize>, language: Language) -> Option<String> {
    let quotations: Vec<String> =
        best.into_iter().map(|index| quotation(question, &quotable[index], language)).collect();
    (!quotations.is_empty()).then(|| quotations.join("\n"))
}

fn quotation(question: &Question, quotable: &QuotableText, language: Language) -> String {
    let Some(number) = quotable.number else { return quotable.text.clone() };
    let text = without_headings(&quotable.heading, &quotable.text);
    let text = best_part(question, &best_paragraph(question, &quotable.heading, text));
    // A list of everything that was said at a time is in chronological order.
    let is_list = question.time_of_messages().is_some() && question.has_no_topic();
    let said_on = Heading::parse(&quotable.heading).filter(|_| question.wanted == WantedValue::Time);
    let day = said_on.and_then(|heading| named_day(&text, heading.day, language));
    let day = day.map(|day| format!(" ({day})")).unwrap_or_default();
    let meaning = Heading::parse(&quotable.heading).and_then(|heading| heading.meaning);
    let meaning = meaning.map(|meaning| format!(" ({meaning})")).unwrap_or_default();
    format!("{} “{text}”{day}{meaning} [{number}]", origin(&quotable.heading, language, is_list))
}

/// Returns the day that "yesterday" or "last week" means in a text of a day. `None` if the text names no such day, or several.
fn named_day(text: &str, day: &str, language: Language) -> Option<String> {
    let is_relative = |found: &TimeMention| {
        found.time.relation == Relation::At
            && match found.time.period {
                Some(Period::RelativeDay(days)) => days != 0,
                Some(Period::RelativeWeek(weeks)) => weeks != 0,
                Some(Period::Weekday(_, which)) => which != Which::Nearest,
                _ => false,
            }
    };
    let [ref named] = find_times(&Utterance::new(text)).into_iter().filter(is_relative).collect::<Vec<_>>()[..] else {
        return None;
    };
    let said_on: Date = day.parse().ok()?;
    let now = said_on.to_zoned(TimeZone::UTC).ok()?;
    let (start, end) = named.time.span(&now, Direction::Future)?;
    let (start, last) = (start?.date(), end?.checked_sub(Span::new().seconds(1)).ok()?.date());
    let formatted = |day: Date| formatted_day(&day.to_string(), language);
    Some(match (start == last, language) {
        (true, _) => formatted(start),
        (false, Language::English) => format!("{} to {}", formatted(start), formatted(last)),
        (false, Language::Spanish) => format!("del {} al {}", formatted(start), formatted(last)),
    })
}

/// Formats the origin of a quotation for the user.
pub(super) fn origin(heading: &str, language: Language, is_list: bool) -> String {
    let Some(parsed) = Heading::parse(heading) else { return format!("{heading}:") };
    let (day, speaker) = (formatted_day(parsed.day, language), parsed.speaker);
    match (language, parsed.is_by_user(), parsed.changed_on.is_some() && !is_list) {
        (Language::English, true, false) => format!("You said on {day}:"),
        (Language::English, true, true) => format!("Before that, you said on {day}:"),
        (Language::English, false, false) => format!("{speaker} said on {day}:"),
        (Language::English, false, true) => format!("Before that, {speaker} said on {day}:"),
        (Language::Spanish, true, false) => format!("El {day} dijiste:"),
        (Language::Spanish, true, true) => format!("Antes, el {day}, dijiste:"),
        (Language::Spanish, false, false) => format!("El {day} {speaker} dijo:"),
        (Language::Spanish, false, true) => format!("Antes, el {day}, {speaker} dijo:"),
    }
}

/// Returns the quoted texts of an answer.
pub(super) fn quoted_texts(answer: &str) -> String {
    let parts = answer.split('“').skip(1).filter_map(|rest| rest.split('”').next());
    parts.collect::<Vec<_>>().join(". ")
}

/// Returns one of several quotations of the last answer: "the second one". After it, "and the other one?" is the other of two.
pub(super) fn picked(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const FILLERS: [&str; 9] = ["and", "the", "one", "i", "mean", "meant", "what", "about", "please"];
    let message = Utterance::new(text);
    let words: Vec<&str> =
        message.words().iter().map(|word| word.folded.as_str()).filter(|word| !FILLERS.contains(word)).collect();
    let [word] = words[..] else { return None };
    let replies = earlier.iter().rev().filter(|message| message.role == Role::Assistant);
    let mut replies = replies.map(ChatMessage::plain_text).filter(|reply| !reply.is_empty()).map(quotations);
    let last = replies.next().filter(|last| !last.is_empty())?;
    if word == "other" {
        let all = replies.next().filter(|all| all.len() == 2 && last.len() == 1)?;
        return all.into_iter().find(|line| quoted_texts(line) != quoted_texts(&last[0]));
    }
    let position = ordinal(word, last.len()).filter(|_| last.len() > 1)?;
    last.into_iter().nth(position)
}

/// Returns what the last answer quoted as no longer true: "what was the original date?"
pub(super) fn replaced(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    const WORDS: [&str; 26] = [
        "and", "so", "what", "whats", "which", "was", "were", "is", "the", "it", "one", "date", "day", "time", "price",
        "number", "value", "plan", "place", "again", "y", "cual", "que", "era", "la", "fecha",
    ];
    const REPLACED: [&str; 5] = ["original", "initial", "originally", "initially", "inicial"];
    let message = Utterance::new(text);
    let has_replaced = message.words().iter().any(|word| REPLACED.contains(&&*word.folded));
    let is_all = message.words().iter().all(|word| WORDS.contains(&&*word.folded) || REPLACED.contains(&&*word.folded));
    let mut replies = earlier.iter().rev().filter(|message| message.role == Role::Assistant);
    let last = replies.next().filter(|_| has_replaced && is_all).map(|message| quotations(message.plain_text()))?;
    let is_replaced = |line: &String| line.starts_with("Before that,") || line.starts_with("Antes, el ");
    last.into_iter().rfind(is_replaced)
}

/// Returns the lines of an answer that quote, without the numbers of their sources, which belong to that answer.
fn quotations(reply: String) -> Vec<String> {
    let lines = reply.lines().filter(|line| line.contains('“'));
    lines.map(|line| line.rsplit_once(" [").map_or(line, |(text, _)| text).to_owned()).collect()
}

/// Formats `2026-05-03` as `3 May 2026`.
pub(super) fn formatted_day(day: &str, language: Language) -> String {
    let mut parts = day.split('-').map(str::parse::<usize>);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(year)), Some(Ok(month @ 1..=12)), Some(Ok(day))) => match language {
            Language::English => format!("{day} {} {year}", MONTHS[month - 1]),
            Language::Spanish => format!("{day} de {} de {year}", MONTHS_IN_SPANISH[month - 1]),
        },
        _ => day.to_owned(),
    }
}

fn preferences(instructions: &str, language: Language) -> Vec<QuotableText> {
    let Some((_, lines)) = instructions.rsplit_once(PREFERENCES) else { return Vec::new() };
    let lines = lines.lines().map_while(|line| line.strip_prefix("- ")?.split_once(": "));
    let quotable = |(name, value)| {
        let text = match language {
            Language::English => format!("Your {name} is {value}."),
            Language::Spanish => format!("Tu preferencia «{name}» es {value}."),
        };
        QuotableText { number: None, heading: String::new(), text }
    };
    lines.map(quotable).collect()
}

/// Removes the headings from a passage if its origin contains them.
fn without_headings<'a>(origin: &str, text: &'a str) -> &'a str {
    match text.split_once("\n\n") {
        Some((first, rest)) if origin.contains(first.trim()) => rest.trim_start(),
        _ => text,
    }
}

/// Returns the paragraph of a passage that answers the question best.
fn best_paragraph(question: &Question, heading: &str, text: &str) -> String {
    let paragraphs: Vec<&str> = text.split("\n\n").collect();
    let candidates: Vec<Candidate<'_>> = paragraphs.iter().map(|text| Candidate { heading, text }).collect();
    answers(question, &candidates).first().map_or(text, |index| paragraphs[*index]).to_owned()
}

/// Returns the text or, if it is long, the part of it that contains the most words of the question.
fn best_part(question: &Question, text: &str) -> String {
    let text = text.trim();
    if text.chars().nth(MAX_CHARACTERS).is_none() {
        return text.to_owned();
    }
    let words: Vec<(usize, &str)> = word_places(text);
    let topic: Vec<_> = question.topic.iter().chain(&question.earlier_topic).chain(&question.time_words).collect();
    let matched: Vec<Option<usize>> =
        words.iter().map(|(_, word)| topic.iter().position(|stems| matches_word(stems, word))).collect();
    // Selects the window that contains the most distinct words of the question. Of several such windows, it selects the one whose
    // words are closest to each other.
    let windows = (0..words.len()).filter(|start| matched[*start].is_some()).map(|start| {
        let end = window_end(text, &words, start);
        let found: HashSet<usize> = matched[start..end].iter().flatten().copied().collect();
        let last = (start..end).rfind(|at| matched[*at].is_some()).unwrap_or(start);
        (found.len(), std::cmp::Reverse(last - start), start)
    });
    let Some((_, _, first)) = windows.max() else { return part(text, 0, window_end(text, &words, 0), &words) };
    // The words of the sentence before the first match introduce it.
    let start = sentence_start(text, &words, first);
    part(text, start, window_end(text, &words, start), &words)
}

/// Returns the words of the text with their positions in it.
fn word_places(text: &str) -> Vec<(usize, &str)> {
    let start = text.as_ptr() as usize;
    text.split_whitespace().map(|word| (word.as_ptr() as usize - start, word)).collect()
}

/// Returns the exclusive end, in words, of a quotation of the maximum length that begins at a word.
fn window_end(text: &str, words: &[(usize, &str)], start: usize) -> usize {
    let from = words.get(start).map_or(0, |(at, _)| *at);
    let fits = |(at, word): &&(usize, &str)| text[from..at + word.len()].chars().count() <= MAX_CHARACTERS;
    start + words[start..].iter().take_while(fits).count().max(1).min(words.len() - start)
}

/// The maximum number of words in a quotation before the first word of the question.
const MAX_INTRODUCTION: usize = 25;

/// Returns the index of the first word of the sentence that contains the word at an index. If the sentence begins too
/// far before that word, returns the index of a word shortly before it.
fn sentence_start(text: &str, words: &[(usize, &str)], at: usize) -> usize {
    let begins = |index: &usize| {
        let before = text[..words[*index].0].trim_end_matches(' ');
        *index == 0 || before.ends_with(['.', '!', '?', '\n', ';'])
    };
    let reach = at.saturating_sub(MAX_INTRODUCTION);
    (reach..=at).rfind(begins).unwrap_or_else(|| at.saturating_sub(MAX_INTRODUCTION / 3))
}

/// Returns an excerpt of the text, with an ellipsis where words are omitted.
fn part(text: &str, start: usize, end: usize, words: &[(usize, &str)]) -> String {
    let from = words.get(start).map_or(0, |(at, _)| *at);
    let to = words.get(end.saturating_sub(1)).map_or(text.len(), |(at, word)| at + word.len());
    // A single word may be longer than a quotation.
    let to = text[from..to].char_indices().nth(MAX_CHARACTERS).map_or(to, |(length, _)| from + length);
    let (before, after) = (if from > 0 { "…" } else { "" }, if to < text.len() { "…" } else { "" });
    format!("{before}{}{after}", &text[from..to])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_of_a_long_text_contains_the_answer() {
        let filler = "we walked around the lake and it was fine and then we went on for a while ".repeat(10);
        let text = format!("{filler} the spare key is under the blue pot and {filler}");
        let part = best_part(&Question::new("where is the spare key", ""), &text);
        assert!(
            part.contains("the spare key is under the blue pot") && part.starts_with('…') && part.ends_with('…'),
            "{part}"
        );
        assert!(part.chars().count() <= MAX_CHARACTERS + 2, "{part}");
        assert!(best_part(&Question::new("who is Ana", ""), &text).starts_with("we walked"));
        assert_eq!(best_part(&Question::new("who is Ana", ""), &"x".repeat(2_000)).chars().count(), MAX_CHARACTERS + 1);
    }

    #[test]
    fn what_was_replaced_is_quoted_again() {
        let reply = "You said on 4 May 2026: “no wait, its 10 June” [1]\nBefore that, you said on 4 May 2026: “the exam is on 3 June” [2]";
        let earlier = [ChatMessage::text(Role::Assistant, reply)];
        let expected = "Before that, you said on 4 May 2026: “the exam is on 3 June”";
        assert_eq!(replaced("what was the original date?", &earlier).as_deref(), Some(expected));
        assert_eq!(replaced("what was the original film?", &earlier), None);
        assert_eq!(replaced("what was the original date?", &[ChatMessage::text(Role::Assistant, "Hello.")]), None);
    }

    #[test]
    fn relative_days_are_named() {
        for (text, expected) in [
            ("paid Ana yesterday", Some("12 May 2026")),
            ("the plumber comes tomorrow at 9", Some("14 May 2026")),
            ("it broke last week", Some("4 May 2026 to 10 May 2026")),
            ("the party is on 3 June", None),
            ("yesterday I was ill, and tomorrow I rest", None),
        ] {
            assert_eq!(named_day(text, "2026-05-13", Language::English).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn days_are_formatted() {
        assert_eq!(formatted_day("2026-05-03", Language::English), "3 May 2026");
        assert_eq!(formatted_day("2026-05-03", Language::Spanish), "3 de mayo de 2026");
        assert_eq!(formatted_day("someday", Language::English), "someday");
    }
}
