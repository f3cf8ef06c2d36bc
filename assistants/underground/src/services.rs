//! First and last trains and trains per hour, from the timetables of the Tube.

use std::collections::HashMap;
use std::sync::LazyLock;

use jiff::civil::{Date, Weekday};
use serde::Serialize;

/// The table, made by `cargo xtask london-network`.
const TABLE: &str = include_str!("../data/services.tsv");
/// When TfL's timetables were read.
pub const TIMETABLE_DATE: &str = "1 May 2025";

/// The trains of a line at a station in one direction on one kind of day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Service {
    /// The id of the line.
    pub line: String,
    /// `inbound` or `outbound`.
    pub direction: String,
    /// The days, such as "Monday to Friday".
    pub days: &'static str,
    /// The first train, such as `05:31`.
    pub first: String,
    /// The last train; after midnight such as `00:43`.
    pub last: String,
    /// Whether trains run through the night.
    pub all_night: bool,
    /// Trains per hour from 07:00 to 10:00.
    pub peak: u32,
    /// Trains per hour from 10:00 to 16:00.
    pub midday: u32,
    /// Trains per hour from 19:00 to 23:00.
    pub evening: u32,
    #[serde(skip)]
    code: String,
}

impl Service {
    /// Whether it applies to a date.
    #[must_use]
    pub fn is_on(&self, date: Date) -> bool {
        matches!(
            (self.code.as_str(), date.weekday()),
            ("sa", Weekday::Saturday) | ("su", Weekday::Sunday) | ("fr" | "mf", Weekday::Friday)
        ) || matches!(self.code.as_str(), "mf" | "mt")
            && matches!(date.weekday(), Weekday::Monday | Weekday::Tuesday | Weekday::Wednesday | Weekday::Thursday)
    }
}

static SERVICES: LazyLock<HashMap<&'static str, Vec<Service>>> = LazyLock::new(|| {
    let mut services: HashMap<&'static str, Vec<Service>> = HashMap::new();
    for row in TABLE.lines() {
        let mut fields = row.split('\t');
        let (Some(line), Some(station), Some(direction)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        services.entry(station).or_default().extend(fields.filter_map(|field| service(line, direction, field)));
    }
    services
});

/// Returns the services at a station, given by its id.
pub fn services_at(station: &str) -> &'static [Service] {
    SERVICES.get(station).map_or(&[], Vec::as_slice)
}

/// The minutes after midnight from which a last train belongs to a service through the night.
const NIGHT_FROM: u32 = 26 * 60 + 20;

fn service(line: &str, direction: &str, field: &str) -> Option<Service> {
    let [code, first, last, peak, midday, evening] = field.split(' ').collect::<Vec<_>>()[..] else { return None };
    let minutes = |clock: &str| Some(clock.get(..2)?.parse::<u32>().ok()? * 60 + clock.get(2..)?.parse::<u32>().ok()?);
    let clock = |minutes: u32| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
    let (first, last) = (minutes(first)?, minutes(last)?);
    Some(Service {
        line: line.to_owned(),
        direction: direction.to_owned(),
        days: match code {
            "mf" => "Monday to Friday",
            "mt" => "Monday to Thursday",
            "fr" => "Friday",
            "sa" => "Saturday",
            _ => "Sunday",
        },
        first: clock(first),
        last: clock(last),
        all_night: last >= NIGHT_FROM && matches!(code, "fr" | "sa"),
        peak: peak.parse().ok()?,
        midday: midday.parse().ok()?,
        evening: evening.parse().ok()?,
        code: code.to_owned(),
    })
}

/// Returns the lines whose trains run through the night after Friday or Saturday.
#[must_use]
pub fn night_lines() -> Vec<&'static str> {
    let all = SERVICES.values().flatten().filter(|service| service.all_night);
    let mut lines: Vec<&str> = all.map(|service| service.line.as_str()).collect();
    lines.sort_unstable();
    lines.dedup();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let at = services_at("940GZZLUBXN");
        assert!(at.iter().any(|service| service.days == "Sunday" && service.line == "victoria"), "{at:?}");
        assert_eq!(night_lines(), ["central", "jubilee", "northern", "piccadilly", "victoria"]);
        let sunday: Date = "2026-06-14".parse().unwrap();
        assert!(at.iter().filter(|service| service.is_on(sunday)).all(|service| service.days == "Sunday"));
    }
}
