//! Recognises the days that a question refers to: "in July", "on 7 May 2023", "last week", "hace tres días".
//!
//! Days are UTC days. A period is as wide as the wording permits. A period without a year matches every year. A single day
//! includes the days before and after it, because the speaker's time zone is unknown.

use std::collections::HashSet;
use std::sync::LazyLock;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Span, ToSpan};
use threadkeep_core::{Timestamp, text};

/// A period that a question refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// From one instant (inclusive) to another (exclusive).
    Range(Timestamp, Timestamp),
    /// A month (1 to 12) of any year.
    Month(i8),
}

impl Period {
    /// Whether an instant is in the period.
    #[must_use]
    pub fn contains(&self, at: Timestamp) -> bool {
        match self {
            Self::Range(start, end) => (*start..*end).contains(&at),
            Self::Month(month) => date_of(at).is_some_and(|date| date.month() == *month),
        }
    }
}

/// Recognises the periods in a question in English or Spanish, relative to `now`.
#[must_use]
pub fn periods(question: &str, now: Timestamp) -> Vec<Period> {
    let words = words_of(question);
    let named = absolute_periods(&words);
    if !named.is_empty() {
        return named;
    }
    date_of(now).map_or_else(Vec::new, |today| relative_periods(&words, today))
}

struct Word {
    folded: String,
    /// The English word “May” is a month only if it is capitalised.
    is_capitalised: bool,
}

fn words_of(question: &str) -> Vec<Word> {
    let pieces = question.split(|character: char| !character.is_alphanumeric()).filter(|piece| !piece.is_empty());
    let words =
        pieces.map(|piece| Word { folded: text::fold(piece), is_capitalised: piece.starts_with(char::is_uppercase) });
    words.collect()
}

const MONTHS: [[&str; 4]; 12] = [
    ["january", "jan", "enero", ""],
    ["february", "feb", "febrero", ""],
    ["march", "mar", "marzo", ""],
    ["april", "apr", "abril", ""],
    ["may", "", "mayo", ""],
    ["june", "jun", "junio", ""],
    ["july", "jul", "julio", ""],
    ["august", "aug", "agosto", ""],
    ["september", "sep", "septiembre", "sept"],
    ["october", "oct", "octubre", ""],
    ["november", "nov", "noviembre", ""],
    ["december", "dec", "diciembre", ""],
];

fn month_of(words: &[Word], at: usize) -> Option<i8> {
    let word = words.get(at)?;
    // The first word of a question is capitalised anyway, so its capital does not distinguish the month from the verb.
    let is_name = word.is_capitalised && (at > 0 || word.folded != "may");
    let is_full = word.folded.len() > 4 && word.folded != "march";
    let month = MONTHS.iter().position(|names| names.contains(&word.folded.as_str()))?;
    (is_name || is_full || word.folded == "mayo").then(|| i8::try_from(month + 1).unwrap_or(1))
}

fn year_of(word: &Word) -> Option<i16> {
    let year = word.folded.parse().ok()?;
    (word.folded.len() == 4 && (1900..2100).contains(&year)).then_some(year)
}

fn day_of(word: &Word) -> Option<i8> {
    let digits = word.folded.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let is_day = digits.len() <= 2 && ["", "st", "nd", "rd", "th"].contains(&&word.folded[digits.len()..]);
    digits.parse().ok().filter(|day| is_day && (1..=31).contains(day))
}

/// Returns the periods that are given as dates.
fn absolute_periods(words: &[Word]) -> Vec<Period> {
    let mut periods = Vec::new();
    let mut years: Vec<i16> = words.iter().filter_map(year_of).collect();
    for at in 0..words.len() {
        let Some(month) = month_of(words, at) else { continue };
        let near = |from: usize, to: usize| words.get(from.min(words.len())..to.min(words.len())).unwrap_or(&[]);
        let after = near(at + 1, at + 4).iter().find_map(year_of);
        // `7 May`, `7th of May`, `7 de mayo`, `May 7`.
        let day = near(at.saturating_sub(2), at).iter().rev().chain(near(at + 1, at + 2)).find_map(day_of);
        periods.extend(match (after.or(years.first().copied()), day) {
            (Some(year), Some(day)) => day_period(year, month, day),
            (Some(year), None) => month_period(year, month),
            (None, _) => Some(Period::Month(month)),
        });
        years.retain(|year| Some(*year) != after);
    }
    if periods.is_empty() {
        periods.extend(years.into_iter().filter_map(|year| range(Date::new(year, 1, 1).ok()?, 1.year())));
    }
    periods
}

fn day_period(year: i16, month: i8, day: i8) -> Option<Period> {
    around(Date::new(year, month, day).ok()?)
}

fn month_period(year: i16, month: i8) -> Option<Period> {
    range(Date::new(year, month, 1).ok()?, 1.month())
}

/// Returns a day with the days before and after it.
fn around(day: Date) -> Option<Period> {
    range(day.yesterday().ok()?, 3.days())
}

fn range(first: Date, length: Span) -> Option<Period> {
    Some(Period::Range(timestamp_of(first)?, timestamp_of(first.checked_add(length).ok()?)?))
}

#[derive(Clone, Copy)]
enum Unit {
    Day,
    Week,
    Month,
    Year,
}

fn unit_of(word: &str) -> Option<Unit> {
    match word {
        "day" | "days" | "dia" | "dias" => Some(Unit::Day),
        "week" | "weeks" | "semana" | "semanas" => Some(Unit::Week),
        "month" | "months" | "mes" | "meses" => Some(Unit::Month),
        "year" | "years" | "ano" | "anos" => Some(Unit::Year),
        _ => None,
    }
}

fn number_of(word: &str) -> Option<i64> {
    const NUMBERS: [[&str; 4]; 10] = [
        ["one", "a", "un", "una"],
        ["two", "", "dos", ""],
        ["three", "", "tres", ""],
        ["four", "", "cuatro", ""],
        ["five", "", "cinco", ""],
        ["six", "", "seis", ""],
        ["seven", "", "siete", ""],
        ["eight", "", "ocho", ""],
        ["nine", "", "nueve", ""],
        ["ten", "", "diez", ""],
    ];
    let spelt = NUMBERS.iter().zip(1..).find(|(names, _)| names.contains(&word)).map(|(_, number)| number);
    spelt.or_else(|| word.parse().ok().filter(|number| (1..=1000).contains(number)))
}

/// Returns the periods that are relative to today.
fn relative_periods(words: &[Word], today: Date) -> Vec<Period> {
    let folded: Vec<&str> = words.iter().map(|word| word.folded.as_str()).collect();
    let mut periods: Vec<Period> = folded.iter().filter_map(|word| one_day(word, today)).collect();
    periods.extend(folded.windows(2).filter_map(|pair| match pair {
        ["last", unit] | [unit, "pasado" | "pasada"] => past_unit(unit_of(unit)?, 1, today),
        ["this", unit] | ["este" | "esta", unit] => past_unit(unit_of(unit)?, 0, today),
        _ => None,
    }));
    periods.extend(folded.windows(3).filter_map(|triple| match triple {
        [number, unit, "ago"] | ["hace", number, unit] => past_unit(unit_of(unit)?, number_of(number)?, today),
        _ => None,
    }));
    periods
}

fn one_day(word: &str, today: Date) -> Option<Period> {
    match word {
        "today" | "hoy" => around(today),
        "yesterday" | "ayer" => around(today.yesterday().ok()?),
        _ => None,
    }
}

/// Returns the day, week, month or year that is `number` units in the past.
fn past_unit(unit: Unit, number: i64, today: Date) -> Option<Period> {
    match unit {
        Unit::Day => around(today.checked_sub(number.days()).ok()?),
        Unit::Week => {
            let day = today.checked_sub(number.weeks()).ok()?;
            let since_monday = day.weekday().since(Weekday::Monday);
            range(day.checked_sub(i64::from(since_monday).days()).ok()?, 1.week())
        }
        Unit::Month => range(today.checked_sub(number.months()).ok()?.first_of_month(), 1.month()),
        Unit::Year => range(today.checked_sub(number.years()).ok()?.first_of_year(), 1.year()),
    }
}

/// Words that indicate a time.
static TIME_WORDS: LazyLock<HashSet<&'static str>> = LazyLock::new(|| TIME_WORD_LIST.split_whitespace().collect());
const TIME_WORD_LIST: &str = "
    yesterday today tonight tomorrow ago last next week weeks month months year years weekend recently since
    monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december
    spring summer autumn winter birthday anniversary
    ayer hoy manana hace pasado pasada proximo proxima semana semanas mes meses ano anos
    lunes martes miercoles jueves viernes sabado domingo
    enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    primavera verano otono invierno cumpleanos aniversario";

/// Whether the text mentions a time.
pub(super) fn mentions_time(text: &str) -> bool {
    let words = words_of(text);
    words.iter().any(|word| TIME_WORDS.contains(word.folded.as_str()) || year_of(word).is_some())
}

fn date_of(at: Timestamp) -> Option<Date> {
    let at = jiff::Timestamp::from_microsecond(at.as_micros()).ok()?;
    Some(TimeZone::UTC.to_datetime(at).date())
}

fn timestamp_of(date: Date) -> Option<Timestamp> {
    let at = TimeZone::UTC.to_timestamp(date.to_datetime(jiff::civil::Time::midnight())).ok()?;
    Timestamp::from_micros(at.as_microsecond()).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn day(text: &str) -> Timestamp {
        format!("{text}T00:00:00Z").parse().unwrap()
    }

    #[test]
    fn periods_are_recognised_in_questions() {
        // A Saturday.
        let now = "2026-11-21T08:00:00Z".parse().unwrap();
        let range = |from: &str, to: &str| vec![Period::Range(day(from), day(to))];
        for (question, expected) in [
            ("What did Ana do on 7 May 2023?", range("2023-05-06", "2023-05-09")),
            ("What did Ana do on May 7th, 2023?", range("2023-05-06", "2023-05-09")),
            ("¿Qué hizo el 7 de mayo de 2023?", range("2023-05-06", "2023-05-09")),
            ("Where was she in July 2023?", range("2023-07-01", "2023-08-01")),
            ("Where was she in July?", vec![Period::Month(7)]),
            ("How often in 2022?", range("2022-01-01", "2023-01-01")),
            ("What did I buy last week?", range("2026-11-09", "2026-11-16")),
            ("¿Qué compré la semana pasada?", range("2026-11-09", "2026-11-16")),
            ("What did I say yesterday?", range("2026-11-19", "2026-11-22")),
            ("What was planned two months ago?", range("2026-09-01", "2026-10-01")),
            ("¿Qué pasó hace 3 días?", range("2026-11-17", "2026-11-20")),
            ("And this year?", range("2026-01-01", "2027-01-01")),
            ("31 February 2023", vec![]),
            ("May I ask what may come?", vec![]),
            ("We march on", vec![]),
            ("room 2300, 7 people", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(periods(question, now), expected, "{question}");
        }
        assert!(Period::Month(7).contains(day("2019-07-31")) && !Period::Month(7).contains(day("2019-08-01")));
    }

    #[test]
    fn mentions_of_time_are_recognised() {
        assert!(mentions_time("I went there last Friday") && mentions_time("fue en 2019") && mentions_time("Mañana"));
        assert!(!mentions_time("I like it") && !mentions_time(""));
    }

    proptest! {
        #[test]
        fn arbitrary_questions_and_instants_yield_valid_periods(question in ".{0,40}( ago| 2023| May|last year|hace 1000 años).{0,9}", micros: i64) {
            let span = Timestamp::MAX.as_micros() - Timestamp::MIN.as_micros();
            let now = Timestamp::from_micros(Timestamp::MIN.as_micros() + micros.rem_euclid(span)).unwrap();
            for period in periods(&question, now) {
                if let Period::Range(start, end) = period {
                    prop_assert!(start < end && period.contains(start) && !period.contains(end));
                }
            }
        }
    }
}
