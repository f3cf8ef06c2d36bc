//! When lines usually run: for routes without a timetable, and for questions such as "does the B run on Sundays?".

use std::collections::HashSet;

use jiff::Timestamp;
use jiff::civil::Weekday;

use crate::system::network;
use crate::travel::new_york;

/// A part of the week with its own service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Period {
    /// The two rush hours of a working day.
    Rush,
    /// A working day outside the rush hours.
    Weekday,
    Weekend,
    /// From midnight until about 6 in the morning.
    Night,
}

/// When a line runs.
struct LineService {
    /// The line's name on signs.
    line: &'static str,
    /// What a rider needs to know, as a sentence.
    text: &'static str,
}

/// The lines' usual service, without changes on particular days.
const SERVICES: [LineService; 22] = [
    service("1", "The 1 runs all day and all night, always local."),
    service("2", "The 2 runs all day and all night; late at night it is local in Manhattan."),
    service("3", "The 3 runs all day; late at night only between Harlem-148 St and Times Sq-42 St."),
    service("4", "The 4 runs all day and all night; late at night it is local and continues to New Lots Av."),
    service(
        "5",
        "The 5 runs all day; late at night only between Eastchester-Dyre Av and E 180 St. It goes to Flatbush \
         Av-Brooklyn College on weekdays only.",
    ),
    service("6", "The 6 runs all day and all night; the express <6> only on weekdays, in the direction of the rush."),
    service("7", "The 7 runs all day and all night; the express <7> only on weekdays, in the direction of the rush."),
    service(
        "A",
        "The A runs all day and all night; late at night it is local. It goes to Rockaway Park only in rush hours: at \
         other times the shuttle from Broad Channel does.",
    ),
    service("B", "The B runs on weekdays only, until about 11 pm. It does not run at weekends or late at night."),
    service("C", "The C runs every day, but not late at night: then the A makes its stops."),
    service("D", "The D runs all day and all night; late at night it is local in Brooklyn."),
    service("E", "The E runs all day and all night; late at night it is local in Queens."),
    service("F", "The F runs all day and all night, and it is local late at night."),
    service("G", "The G runs all day and all night."),
    service("J", "The J runs all day and all night."),
    service("L", "The L runs all day and all night."),
    service(
        "M",
        "The M runs to Forest Hills-71 Av on weekdays. At weekends it ends at Delancey St-Essex St, and late at night it \
         only runs between Middle Village-Metropolitan Av and Myrtle Av.",
    ),
    service("N", "The N runs all day and all night; late at night it is local and goes through Lower Manhattan."),
    service("Q", "The Q runs all day and all night; late at night it is local."),
    service("R", "The R runs all day; late at night only between Bay Ridge-95 St and Whitehall St."),
    service("W", "The W runs on weekdays only, until about 11 pm. It does not run at weekends or late at night."),
    service("Z", "The Z runs in rush hours on weekdays only, in the direction of the rush. At other times take the J."),
];

const fn service(line: &'static str, text: &'static str) -> LineService {
    LineService { line, text }
}

/// The stations at which lines stop late at night, for lines that then run on only part of their route.
const NIGHT_PARTS: [(&str, &[&str]); 4] = [
    ("3", &["301", "302", "224", "225", "226", "227", "120", "123", "127"]),
    ("5", &["501", "502", "503", "504", "505", "213"]),
    ("M", &["M01", "M04", "M05", "M06", "M08", "M09", "M10", "M11"]),
    (
        "R",
        &[
            "R27", "R28", "R29", "R30", "R31", "R32", "R33", "R34", "R35", "R36", "R39", "R40", "R41", "R42", "R43",
            "R44", "R45",
        ],
    ),
];

/// Stations of the branch to Rockaway Park, which the A serves in rush hours only.
const ROCKAWAY_PARK: [&str; 4] = ["H12", "H13", "H14", "H15"];

/// Whether a station of the M is beyond Delancey St-Essex St, where the M runs on weekdays only.
fn is_beyond_essex(station: &str) -> bool {
    !station.starts_with('M')
}

/// Returns when a line usually runs, as a sentence; `None` for the shuttles and the Staten Island Railway.
pub(crate) fn usual_service(line: &str) -> Option<&'static str> {
    SERVICES.iter().find(|service| service.line == line).map(|service| service.text)
}

/// Returns the pairs of a line and a station at which it usually does not stop at the given time.
pub(crate) fn unserved(at: Timestamp) -> HashSet<(&'static str, &'static str)> {
    let period = period_at(at);
    let lines = network().lines().iter();
    let pairs = lines.flat_map(|line| network().stations().iter().map(move |station| (line, station)));
    let is_express = |id: &str| id.len() > 1 && id.ends_with('X');
    let not_served = pairs.filter(|(line, station)| {
        !stops(&line.name, &station.id, period) || is_express(&line.id) && period != Period::Rush
    });
    not_served.map(|(line, station)| (line.id.as_str(), station.id.as_str())).collect()
}

fn period_at(at: Timestamp) -> Period {
    let local = at.to_zoned(new_york());
    let is_weekend = matches!(local.weekday(), Weekday::Saturday | Weekday::Sunday);
    match local.hour() {
        0..=5 => Period::Night,
        _ if is_weekend => Period::Weekend,
        7..=9 | 16..=18 => Period::Rush,
        _ => Period::Weekday,
    }
}

/// Whether a line usually stops at a station on its route.
fn stops(line: &str, station: &str, period: Period) -> bool {
    match (line, period) {
        ("Z", _) => period == Period::Rush,
        ("A", _) if ROCKAWAY_PARK.contains(&station) => period == Period::Rush,
        ("B" | "W", Period::Weekend | Period::Night) | ("C", Period::Night) => false,
        ("M", Period::Weekend) => !is_beyond_essex(station),
        (_, Period::Night) => {
            NIGHT_PARTS.iter().find(|(name, _)| *name == line).is_none_or(|(_, part)| part.contains(&station))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unserved_depends_on_the_time() {
        for (at, line, station, is_served) in [
            ("2026-02-07T10:30:00-05:00", "B", "A21", false),
            ("2026-02-06T10:30:00-05:00", "B", "A21", true),
            ("2026-02-06T02:00:00-05:00", "3", "250", false),
            ("2026-02-06T02:00:00-05:00", "3", "301", true),
            ("2026-02-04T14:00:00-05:00", "A", "H15", false),
            ("2026-02-04T08:00:00-05:00", "A", "H15", true),
            ("2026-02-04T14:00:00-05:00", "H", "H15", true),
            ("2026-02-07T14:00:00-05:00", "M", "M18", true),
            ("2026-02-07T14:00:00-05:00", "M", "D15", false),
        ] {
            let unserved = unserved(at.parse().unwrap());
            assert_eq!(!unserved.contains(&(line, station)), is_served, "{line} at {station}, {at}");
        }
    }

    #[test]
    fn every_line_except_shuttles_and_sir_has_a_sentence() {
        let named = network().lines().iter().filter(|line| !matches!(line.name.as_str(), "S" | "SIR"));
        for line in named {
            assert!(usual_service(&line.name).is_some(), "{}", line.name);
        }
    }
}
