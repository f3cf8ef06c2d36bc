//! The day of the week of a date in the last answer: "which day of the week is that?"

use jiff::civil::{Date, Weekday};
use threadkeep::core::text::Language;
use threadkeep::dialogue::Utterance;
use threadkeep::{ChatMessage, Role};

use super::quoting::{MONTHS, MONTHS_IN_SPANISH, formatted_day, quoted_texts};

/// Words of such a question.
const WORDS: [&str; 30] = [
    "and", "so", "ok", "which", "what", "whats", "day", "of", "the", "week", "weekday", "is", "was", "that", "it",
    "this", "date", "will", "be", "on", "does", "fall", "a", "que", "dia", "de", "la", "semana", "es", "eso",
];
/// Words that refer to the date.
const REFERRING: [&str; 5] = ["that", "it", "this", "eso", "es"];

/// Answers a question for the day of the week of a date in the last answer; `None` if the message is no such question.
pub(super) fn describe(text: &str, earlier: &[ChatMessage], language: Language) -> Option<String> {
    let utterance = Utterance::new(text);
    let words: Vec<&str> = utterance.words().iter().map(|word| word.folded.as_str()).collect();
    let has = |word: &str| words.contains(&word);
    let asks = has("day") && has("week") || has("weekday") || has("dia") && has("semana");
    let refers = words.iter().any(|word| REFERRING.contains(word));
    if !asks || !refers || !words.iter().all(|word| WORDS.contains(word)) {
        return None;
    }
    let reply = earlier.iter().rev().find(|message| message.role == Role::Assistant)?.plain_text();
    let named = dates(&reply).first().copied();
    let quoted = quoted_texts(&reply);
    // The date of a quotation is when it was said.
    let date = match (&dates(&quoted)[..], quoted.is_empty()) {
        ([only], _) => *only,
        ([], true) => named?,
        // "… yesterday” (12 May 2026)"
        ([], false) if dates(&reply).len() == 2 => dates(&reply)[1],
        _ => return None,
    };
    let said_on = named.and_then(DayAndMonth::with_year);
    let date = date.with_year().or_else(|| date.next_after(said_on?))?;
    let day = formatted_day(&date.to_string(), language);
    let (weekday, weekday_in_spanish) = names(date.weekday());
    Some(match language {
        Language::English => format!("{day} is a {weekday}."),
        Language::Spanish => format!("El {day} es {weekday_in_spanish}."),
    })
}

fn names(weekday: Weekday) -> (&'static str, &'static str) {
    match weekday {
        Weekday::Monday => ("Monday", "lunes"),
        Weekday::Tuesday => ("Tuesday", "martes"),
        Weekday::Wednesday => ("Wednesday", "miércoles"),
        Weekday::Thursday => ("Thursday", "jueves"),
        Weekday::Friday => ("Friday", "viernes"),
        Weekday::Saturday => ("Saturday", "sábado"),
        Weekday::Sunday => ("Sunday", "domingo"),
    }
}

/// A date, possibly without its year.
#[derive(Clone, Copy, Debug, PartialEq)]
struct DayAndMonth {
    day: i8,
    month: i8,
    year: Option<i16>,
}

impl DayAndMonth {
    fn with_year(self) -> Option<Date> {
        Date::new(self.year?, self.month, self.day).ok()
    }

    /// Returns the first such date on or after another one.
    fn next_after(self, other: Date) -> Option<Date> {
        let in_year = |year: i16| Date::new(year, self.month, self.day).ok();
        in_year(other.year()).filter(|date| *date >= other).or_else(|| in_year(other.year() + 1))
    }
}

/// Returns the dates in a text: "4 May 2026", "May 4", "4 de mayo".
fn dates(text: &str) -> Vec<DayAndMonth> {
    let utterance = Utterance::new(text);
    let word = |at: usize| utterance.word(at);
    let month = |word: &str| {
        let is_name = |name: &&str| {
            let name = name.to_lowercase();
            name == word || word.len() == 3 && name.starts_with(word)
        };
        let position = MONTHS.iter().position(&is_name);
        position.or_else(|| MONTHS_IN_SPANISH.iter().position(is_name))
    };
    let day = |word: &str| {
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        digits.parse::<i8>().ok().filter(|day| (1..=31).contains(day))
    };
    let year = |word: &str| word.parse::<i16>().ok().filter(|year| (1900..2200).contains(year));
    let mut found = Vec::new();
    for at in 0..utterance.words().len() {
        let Some(position) = month(word(at)) else { continue };
        let before = |back: usize| at.checked_sub(back).and_then(|at| day(word(at)));
        let is_of = at > 0 && matches!(word(at - 1), "of" | "de");
        let (day, next) = match (before(1 + usize::from(is_of)), day(word(at + 1))) {
            (Some(day), _) => (day, at + 1 + usize::from(word(at + 1) == "de")),
            (None, Some(day)) => (day, at + 2),
            (None, None) => continue,
        };
        let month = i8::try_from(position + 1).unwrap_or(1);
        found.push(DayAndMonth { day, month, year: year(word(next)) });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_day_of_the_week_follows_from_the_date() {
        let asked =
            |reply: &str, text: &str| describe(text, &[ChatMessage::text(Role::Assistant, reply)], Language::English);
        let question = "and which day of the week is that?";
        let quoted = "You said on 4 May 2026: “The party is on 12 June.” [1]";
        assert_eq!(asked(quoted, question).as_deref(), Some("12 June 2026 is a Friday."));
        assert_eq!(
            asked("It is 09:15 UTC on 10 March 2026.", question).as_deref(),
            Some("10 March 2026 is a Tuesday.")
        );
        let relative = "You said on 4 May 2026: “I met Ana yesterday” (3 May 2026) [1]";
        assert_eq!(asked(relative, question).as_deref(), Some("3 May 2026 is a Sunday."));
        let passed = "You said on 4 May 2026: “My birthday is March 3rd.” [1]";
        assert_eq!(asked(passed, "what weekday is it?").as_deref(), Some("3 March 2027 is a Wednesday."));
        assert_eq!(asked("You said on 4 May 2026: “The party is soon.” [1]", question), None);
        assert_eq!(asked(quoted, "which day of the week is choir?"), None);
    }
}
