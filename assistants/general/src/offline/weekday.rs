//! The day of the week of a date in the last answer: "which day of the week is that?"

use jiff::civil::{Date, Weekday};
use threadkeep::core::text::Language;
use threadkeep::dialogue::Utterance;
use threadkeep::dialogue::time::{Period, find_times};
use threadkeep::{ChatMessage, Role};

use super::quoting::{formatted_day, quoted_texts};

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
    let of_period = |period: Option<Period>| match period? {
        Period::Date { year, month, day } => Some(DayAndMonth { day, month, year }),
        _ => None,
    };
    find_times(&Utterance::new(text)).into_iter().filter_map(|found| of_period(found.time.period)).collect()
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
