//! Selects and formats the quotations that answer a question.

use threadkeep::agent::DynamicContext;
use threadkeep::dialogue::Passage;

use crate::evidence::is_quotable;

const SAID_BY_USER: &str = "said by the user on ";
pub(crate) const SAID_BY: &str = "said by ";
pub(crate) const SAID_BY_ASSISTANT: &str = "said by the assistant on ";
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

/// Answers a question with quotations from the model's instructions. Returns `None` if none answers it.
pub(super) fn quote(question: &str, instructions: &str) -> Option<String> {
    let mut passages: Vec<Passage> = preferences(instructions);
    for (number, heading, text) in DynamicContext::parse_excerpts(instructions) {
        if is_quotable(&heading, &text) {
            let origin = format!("[{number}]{}", origin(&heading));
            passages.push(Passage { origin, text: text.trim().to_owned() });
        }
    }
    // The last of equal passages wins, so the order is reversed to prefer the first one.
    passages.reverse();
    let best = Passage::best(question, &passages);
    let quotations: Vec<String> = best.into_iter().map(|passage| quotation(question, passage)).collect();
    (!quotations.is_empty()).then(|| quotations.join("\n"))
}

fn quotation(question: &str, passage: &Passage) -> String {
    let (number, origin) = match passage.origin.split_once(']') {
        Some((number, origin)) => (format!(" {number}]"), origin),
        None => (String::new(), passage.origin.as_str()),
    };
    if origin.is_empty() {
        return passage.text.clone();
    }
    // The origin contains the headings of the passage already.
    format!("{origin} “{}”{number}", truncated(&best_paragraph(question, without_headings(origin, &passage.text))))
}

/// Formats the origin of a quotation for the user.
fn origin(heading: &str) -> String {
    if let Some(day) = heading.strip_prefix(SAID_BY_USER) {
        return format!("You said on {}:", formatted_day(day));
    }
    match heading.strip_prefix(SAID_BY).and_then(|heading| heading.rsplit_once(" on ")) {
        Some((author, day)) => format!("{author} said on {}:", formatted_day(day)),
        None => format!("{heading}:"),
    }
}

/// Formats `2026-05-03` as `3 May 2026`.
fn formatted_day(day: &str) -> String {
    let mut parts = day.split('-').map(str::parse::<usize>);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(year)), Some(Ok(month @ 1..=12)), Some(Ok(day))) => format!("{day} {} {year}", MONTHS[month - 1]),
        _ => day.to_owned(),
    }
}

fn preferences(instructions: &str) -> Vec<Passage> {
    let Some((_, lines)) = instructions.rsplit_once(PREFERENCES) else { return Vec::new() };
    let lines = lines.lines().map_while(|line| line.strip_prefix("- ")?.split_once(": "));
    let passage = |(name, value)| Passage { origin: String::new(), text: format!("Your {name} is {value}.") };
    lines.map(passage).collect()
}

/// Removes the headings of a passage if they are in its origin.
fn without_headings<'a>(origin: &str, text: &'a str) -> &'a str {
    match text.split_once("\n\n") {
        Some((first, rest)) if origin.contains(first.trim()) => rest.trim_start(),
        _ => text,
    }
}

/// Returns the paragraph of a passage that answers the question best.
fn best_paragraph(question: &str, text: &str) -> String {
    let paragraph = |text: &str| Passage { origin: String::new(), text: text.to_owned() };
    let paragraphs: Vec<Passage> = text.split("\n\n").map(paragraph).collect();
    let best = Passage::best(question, &paragraphs);
    best.first().map_or_else(|| text.to_owned(), |passage| passage.text.clone())
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
        assert_eq!(formatted_day("2026-05-03"), "3 May 2026");
        assert_eq!(formatted_day("someday"), "someday");
    }
}
