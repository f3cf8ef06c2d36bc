//! The text of answers, for users to read and for models to quote.
//!
//! Every answer states the source of its times and the assumptions made about station names. It contains no invented times.

mod arrivals;
mod comparison;
mod query_error;
mod route;
mod station;

pub(crate) use arrivals::arrivals;
pub(crate) use comparison::comparison;
pub(crate) use query_error::query_error;
pub(crate) use route::{route, route_with_arrivals, transfer_timing};
pub(crate) use station::{common_trips, line_stations, place, station_info, whole_place};

use crate::arrivals::LiveStatus;
use crate::place::Assumption;

/// Returns a sentence about missing live times; `None` if all are available.
fn live(status: &LiveStatus) -> Option<String> {
    match status {
        LiveStatus::Available => None,
        LiveStatus::Partly { unavailable } => Some(format!("Live times unavailable for {}.", enumerated(unavailable))),
        LiveStatus::Unavailable => Some("Live times unavailable: the MTA's feeds give no current data.".to_owned()),
    }
}

fn assumption(assumption: &Assumption) -> String {
    const OTHERS: usize = 6;
    let others: Vec<String> = assumption.others.iter().take(OTHERS).map(place).collect();
    let taken = format!("I took \"{}\" for {}", assumption.said, station::with_lines(&assumption.taken));
    match others.is_empty() {
        true => format!("{taken}."),
        false => format!("{taken}; it may also mean {}.", enumerated(&others)),
    }
}

fn minutes(seconds: i64) -> String {
    format!("{} min", (seconds + 30).div_euclid(60))
}

/// Formats the time until an event.
fn wait(minutes: i64) -> String {
    if minutes < 1 { "in less than a minute".to_owned() } else { format!("in {minutes} min") }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    match count {
        0 => format!("no {one}"),
        1 => format!("1 {one}"),
        count => format!("{count} {many}"),
    }
}

fn enumerated<T: AsRef<str>>(words: &[T]) -> String {
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
fn distinct<'a>(words: impl Iterator<Item = &'a String>) -> Vec<&'a str> {
    let mut distinct: Vec<&str> = Vec::new();
    for word in words {
        if !distinct.contains(&word.as_str()) {
            distinct.push(word);
        }
    }
    distinct
}

fn lines_of(lines: impl IntoIterator<Item = Option<String>>) -> String {
    lines.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
