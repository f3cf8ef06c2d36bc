//! The total of hours that the user states day by day: "7.5h mon", "6h tue", "how many hours is that so far?"

use threadkeep::dialogue::{Utterance, is_question};
use threadkeep::{ChatMessage, Role};

/// The minimum number of days of a total.
const MIN_DAYS: usize = 2;
const DAYS: [&[&str]; 7] = [
    &["mon", "monday", "lunes"],
    &["tue", "tues", "tuesday", "martes"],
    &["wed", "weds", "wednesday", "miercoles"],
    &["thu", "thur", "thurs", "thursday", "jueves"],
    &["fri", "friday", "viernes"],
    &["sat", "saturday", "sabado"],
    &["sun", "sunday", "domingo"],
];
const UNITS: [&str; 7] = ["h", "hr", "hrs", "hour", "hours", "hora", "horas"];

/// Returns the sum of the hours of the conversation, if a message asks for their total. Two numbers for one day may be a correction or
/// another week, so they have no total.
pub(super) fn total(text: &str, earlier: &[ChatMessage]) -> Option<String> {
    asks_total(text).then_some(())?;
    let mut stated: Vec<(usize, String)> = Vec::new();
    for message in earlier.iter().filter(|message| message.role == Role::User).map(ChatMessage::plain_text) {
        if is_question(&message) {
            continue;
        }
        let first = Utterance::new(&*message).word(0).to_owned();
        let corrects = matches!(&*first, "no" | "sorry" | "wait" | "oops" | "actually" | "correction" | "perdon");
        for (day, hours) in entries(&message) {
            match stated.iter_mut().find(|(known, _)| *known == day) {
                Some((_, known)) if corrects => *known = hours,
                Some(_) => return None,
                None => stated.push((day, hours)),
            }
        }
    }
    let hours: Vec<&str> = stated.iter().map(|(_, hours)| hours.as_str()).collect();
    (hours.len() >= MIN_DAYS).then(|| hours.join("+"))
}

/// Whether a message only states the hours of days: "7.5h mon".
pub(in super::super) fn states_hours(text: &str) -> bool {
    const MAX_WORDS: usize = 6;
    !text.contains('?') && !entries(text).is_empty() && text.split_whitespace().count() <= MAX_WORDS
}

/// Whether a message asks for the total of the stated hours, of no particular day or amount.
fn asks_total(text: &str) -> bool {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let is_pair = |one: &str, other: &str| words.windows(2).any(|pair| pair[0] == one && pair[1] == other);
    let is_total = words.iter().any(|word| matches!(*word, "total" | "altogether" | "together" | "overall" | "sum"))
        || is_pair("so", "far")
        || is_pair("in", "all")
        || is_pair("this", "week");
    let asks_hours = is_pair("many", "hours") || is_pair("total", "hours") || is_pair("cuantas", "horas");
    let names_day = words.iter().any(|word| DAYS.iter().any(|names| names.contains(word)));
    asks_hours && is_total && !names_day && !text.contains(|c: char| c.is_ascii_digit())
}

/// Returns the days and hours of a statement, whose parts each name one of both.
fn entries(text: &str) -> Vec<(usize, String)> {
    let parts = text.split([',', ';', '\n']).flat_map(|part| part.split(" and "));
    parts.filter_map(entry).collect()
}

fn entry(part: &str) -> Option<(usize, String)> {
    let pieces: Vec<String> = part
        .split_whitespace()
        .map(|piece| piece.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase())
        .filter(|piece| !piece.is_empty())
        .collect();
    let days: Vec<usize> = pieces
        .iter()
        .filter_map(|piece| {
            let folded = Utterance::new(piece.as_str()).word(0).to_owned();
            DAYS.iter().position(|names| names.contains(&&*folded))
        })
        .collect();
    let hours: Vec<&str> = (0..pieces.len())
        .filter_map(|at| {
            let (number, unit) =
                pieces[at].split_at(pieces[at].find(|c: char| c.is_alphabetic()).unwrap_or(pieces[at].len()));
            let next = pieces.get(at + 1).map_or("", String::as_str);
            let is_number = number.parse::<f64>().is_ok();
            (is_number && (UNITS.contains(&unit) || unit.is_empty() && UNITS.contains(&next))).then_some(number)
        })
        .collect();
    let has_other_number = pieces.iter().filter(|piece| piece.starts_with(|c: char| c.is_ascii_digit())).count() > 1;
    match (&days[..], &hours[..]) {
        ([day], [hours]) if !has_other_number => Some((*day, (*hours).to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_of_days_are_added() {
        let total = |said: &[&str], text: &str| {
            let said: Vec<ChatMessage> = said.iter().map(|text| ChatMessage::text(Role::User, *text)).collect();
            total(text, &said)
        };
        let days = ["7.5h mon", "6h tue", "8.25 hours on Wednesday"];
        assert_eq!(total(&days, "how many hours is that so far?").as_deref(), Some("7.5+6+8.25"));
        assert_eq!(total(&["hours: 7.5h mon, 6h tue"], "how many hours in total?").as_deref(), Some("7.5+6"));
        assert_eq!(total(&["7h mon", "6h tue", "sorry, 5h tue"], "total hours this week?").as_deref(), Some("7+5"));
        assert_eq!(total(&["7h mon", "6h tue", "5h tue"], "total hours this week?"), None);
        assert_eq!(total(&days, "how many hours was it on tuesday in total?"), None);
        assert_eq!(total(&["the shop is open 8 hours"], "how many hours in total?"), None);
        assert!(states_hours("7.5h mon") && !states_hours("7.5h mon?") && !states_hours("mon at 7.30"));
    }
}
