//! Selects and formats the quotations that answer a question.

use threadkeep::agent::DynamicContext;
use threadkeep::core::text::Language;

use crate::evidence::heading::Heading;
use crate::evidence::question::Question;
use crate::evidence::{Candidate, answers};

const PREFERENCES: &str = "What the user prefers:\n";
/// The most characters of a quotation.
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

/// A text that may be quoted, with the number by which it is cited.
struct Quotable {
    number: Option<usize>,
    heading: String,
    text: String,
}

/// Answers a question with quotations from the model's instructions. Returns `None` if none answers it.
pub(super) fn quote(question: &Question, instructions: &str, language: Language) -> Option<String> {
    let mut quotable: Vec<Quotable> = preferences(instructions, language);
    for (number, heading, text) in DynamicContext::parse_excerpts(instructions) {
        quotable.push(Quotable { number: Some(number), heading, text: text.trim().to_owned() });
    }
    let candidates: Vec<Candidate<'_>> =
        quotable.iter().map(|one| Candidate { heading: &one.heading, text: &one.text }).collect();
    let best = answers(question, &candidates);
    let quotations: Vec<String> =
        best.into_iter().map(|index| quotation(question, &quotable[index], language)).collect();
    (!quotations.is_empty()).then(|| quotations.join("\n"))
}

fn quotation(question: &Question, quotable: &Quotable, language: Language) -> String {
    let Some(number) = quotable.number else { return quotable.text.clone() };
    let text = without_headings(&quotable.heading, &quotable.text);
    let text = truncated(&best_paragraph(question, &quotable.heading, text));
    // A list of everything that was said at a time is in the order in which it was said.
    let is_list = question.time_of_messages().is_some() && question.has_no_topic();
    format!("{} “{text}” [{number}]", origin(&quotable.heading, language, is_list))
}

/// Formats the origin of a quotation for the user.
fn origin(heading: &str, language: Language, is_list: bool) -> String {
    let Some(parsed) = Heading::parse(heading) else { return format!("{heading}:") };
    let (day, speaker) = (formatted_day(parsed.day, language), parsed.speaker);
    match (language, parsed.is_of_user(), parsed.changed_on.is_some() && !is_list) {
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

fn preferences(instructions: &str, language: Language) -> Vec<Quotable> {
    let Some((_, lines)) = instructions.rsplit_once(PREFERENCES) else { return Vec::new() };
    let lines = lines.lines().map_while(|line| line.strip_prefix("- ")?.split_once(": "));
    let quotable = |(name, value)| {
        let text = match language {
            Language::English => format!("Your {name} is {value}."),
            Language::Spanish => format!("Tu preferencia «{name}» es {value}."),
        };
        Quotable { number: None, heading: String::new(), text }
    };
    lines.map(quotable).collect()
}

/// Removes the headings of a passage if they are in its origin.
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

fn truncated(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => {
            let whole = text[..end].rfind(char::is_whitespace).unwrap_or(end);
            format!("{}…", text[..whole].trim_end())
        }
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_formatted() {
        assert_eq!(formatted_day("2026-05-03", Language::English), "3 May 2026");
        assert_eq!(formatted_day("2026-05-03", Language::Spanish), "3 de mayo de 2026");
        assert_eq!(formatted_day("someday", Language::English), "someday");
    }
}
