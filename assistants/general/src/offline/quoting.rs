//! Quotations: which of what was found answers a question, and how it is told.

use threadkeep::agent::DynamicContext;
use threadkeep::core::text::fold;
use threadkeep::models::Passage;

use crate::evidence::is_quotable;

const SAID_BY_USER: &str = "said by the user on ";
pub(crate) const SAID_BY: &str = "said by ";
pub(crate) const SAID_BY_ASSISTANT: &str = "said by the assistant on ";
const PREFERENCES: &str = "What the user prefers:\n";
/// Characters of a quotation.
const CHARACTERS: usize = 500;
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

/// Answers a question by what stands in the text that the model was told; `None` where nothing does.
pub(super) fn quote(question: &str, told: &str) -> Option<String> {
    let mut passages: Vec<Passage> = preferences(told);
    for (number, heading, text) in DynamicContext::read(told) {
        if is_quotable(&heading, &text) {
            let origin = format!("[{number}]{}", origin(&heading));
            passages.push(Passage { origin, text: text.trim().to_owned() });
        }
    }
    // Between equals the last wins: what was found first shall.
    passages.reverse();
    let best = Passage::best(question, &passages);
    let quotations: Vec<String> = best.into_iter().map(|passage| told_of(question, passage)).collect();
    (!quotations.is_empty()).then(|| quotations.join("\n"))
}

fn told_of(question: &str, passage: &Passage) -> String {
    let (number, origin) = match passage.origin.split_once(']') {
        Some((number, origin)) => (format!(" {number}]"), origin),
        None => (String::new(), passage.origin.as_str()),
    };
    if origin.is_empty() {
        return passage.text.clone();
    }
    // The headings above a passage help to find it, and its place tells them.
    format!("{origin} “{}”{number}", cut(&part(question, without_headings(origin, &passage.text))))
}

/// Where a quotation comes from, as the user reads it.
fn origin(heading: &str) -> String {
    if let Some(day) = heading.strip_prefix(SAID_BY_USER) {
        return format!("You said on {}:", spelled(day));
    }
    match heading.strip_prefix(SAID_BY).and_then(|said| said.rsplit_once(" on ")) {
        Some((author, day)) => format!("{author} said on {}:", spelled(day)),
        None => format!("{heading}:"),
    }
}

/// `2026-05-03` as `3 May 2026`.
fn spelled(day: &str) -> String {
    let mut parts = day.split('-').map(str::parse::<usize>);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Ok(year)), Some(Ok(month @ 1..=12)), Some(Ok(day))) => format!("{day} {} {year}", MONTHS[month - 1]),
        _ => day.to_owned(),
    }
}

fn preferences(told: &str) -> Vec<Passage> {
    let Some((_, lines)) = told.rsplit_once(PREFERENCES) else { return Vec::new() };
    let lines = lines.lines().map_while(|line| line.strip_prefix("- ")?.split_once(": "));
    let passage = |(name, value)| Passage { origin: String::new(), text: format!("Your {name} is {value}.") };
    lines.map(passage).collect()
}

/// A passage without the headings above it, which its place tells.
fn without_headings<'a>(place: &str, text: &'a str) -> &'a str {
    match text.split_once("\n\n") {
        Some((first, rest)) if place.contains(first.trim()) => rest.trim_start(),
        _ => text,
    }
}

/// The paragraph of a passage that answers best.
fn part(question: &str, text: &str) -> String {
    let paragraph = |text: &str| Passage { origin: String::new(), text: text.to_owned() };
    let paragraphs: Vec<Passage> = text.split("\n\n").map(paragraph).collect();
    let best = Passage::best(question, &paragraphs);
    best.first().map_or_else(|| text.to_owned(), |passage| passage.text.clone())
}

fn cut(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(CHARACTERS) {
        Some((end, _)) => {
            let whole = text[..end].rfind(char::is_whitespace).unwrap_or(end);
            format!("{}…", text[..whole].trim_end())
        }
        None => text.to_owned(),
    }
}

/// Words without case and accents; apostrophes are left out.
pub(super) fn folded_words(text: &str) -> Vec<String> {
    let text: String = text.chars().filter(|c| !matches!(c, '\'' | '’')).collect();
    fold(&text).split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_spelled() {
        assert_eq!(spelled("2026-05-03"), "3 May 2026");
        assert_eq!(spelled("someday"), "someday");
    }
}
