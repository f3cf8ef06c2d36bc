//! The text of answers, for users to read and for models to quote.
//!
//! Every answer states the source of its times and the assumptions made about station names, and contains no invented
//! times.

mod meeting;
mod query_error;
mod route;
mod station;

pub use meeting::meeting;
pub use query_error::query_error;
pub use route::{DIRECT, assumptions, conditions, direct, route, sign, source, steps};
pub use station::{LAST_STOP, common_trips, line_stations, place, whole_place, with_lines};

use crate::{Assumption, System};

/// Formats the assumption about a name.
#[must_use]
pub fn assumption(system: &System, assumption: &Assumption) -> String {
    const OTHERS: usize = 6;
    let others: Vec<String> = assumption.others.iter().take(OTHERS).map(|other| place(system, other)).collect();
    let sentence = format!("I took \"{}\" to mean {}", assumption.said, with_lines(system, &assumption.taken));
    match others.is_empty() {
        true => format!("{sentence}."),
        false => format!("{sentence}; it may also mean {}.", join_with_and(&others)),
    }
}

/// Formats a duration in minutes, rounded.
#[must_use]
pub fn minutes(seconds: i64) -> String {
    format!("{} min", (seconds + 30).div_euclid(60))
}

/// Formats the time until an event.
#[must_use]
pub fn time_until(minutes: i64) -> String {
    if minutes < 1 { "in less than a minute".to_owned() } else { format!("in {minutes} min") }
}

/// Formats a count with its noun.
#[must_use]
pub fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {many}"),
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

/// Joins words with commas, and "and" before the last.
#[must_use]
pub fn join_with_and<T: AsRef<str>>(words: &[T]) -> String {
    match words {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [init @ .., last] => {
            let init: Vec<&str> = init.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", init.join(", "), last.as_ref())
        }
    }
}

/// Removes duplicates, keeping the first occurrence.
pub(crate) fn distinct<'a>(words: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut distinct: Vec<&str> = Vec::new();
    for word in words {
        if !distinct.contains(&word.as_str()) {
            distinct.push(word);
        }
    }
    distinct
}

/// Joins the lines of text that are present.
pub fn join_lines(lines: impl IntoIterator<Item = Option<String>>) -> String {
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Capitalises the first letter.
#[must_use]
pub fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
