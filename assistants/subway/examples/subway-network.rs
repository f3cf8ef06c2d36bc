//! Generates the built-in subway network; run by `cargo xtask subway-network`.
//!
//! Reads a GTFS feed (a zip archive) and the MTA's station table (`Stations.csv`), and writes the network table to standard
//! output. The station table determines which lines stop at a station; the feed's weekday daytime trips determine the order.
#![expect(clippy::print_stdout, reason = "the table is the output")]

use std::collections::{BTreeMap, HashMap};
use std::error::Error;

use threadkeep_transit::{LineDefinition, Network, Station, Timetable, Trip};

/// Stop patterns with fewer trips a day are dropped, unless they are the only ones that serve a station.
const MIN_TRIPS: usize = 4;
const DAY_SECONDS: std::ops::Range<u32> = 6 * 3600..21 * 3600;

/// Sections that were closed for construction while the feed was in force, southbound: the line, the stations before and
/// after the section (empty at the end of the line), and the skipped stations. The station table still lists them.
const CLOSED_SECTIONS: [(&str, &str, &str, &[&str]); 3] = [
    ("F", "G14", "D15", &["B04", "B06", "B08", "B10"]),
    ("FX", "G14", "D15", &["B04", "B06", "B08", "B10"]),
    (
        "M",
        "",
        "D15",
        &[
            "G08", "G09", "G10", "G11", "G12", "G13", "G14", "G15", "G16", "G18", "G19", "G20", "G21", "F09", "F11",
            "F12",
        ],
    ),
];

/// Stop patterns (direction and stations) with the number of trips that follow them.
type Patterns = BTreeMap<(String, Vec<String>), usize>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(feed), Some(stations)) = (arguments.next(), arguments.next()) else {
        return Err("usage: subway-network FEED.zip STATIONS.csv".into());
    };
    let stations = read_stations(&stations)?;
    let timetable = Timetable::from_zip(std::fs::read(feed)?)?;
    let lines = lines_of(&timetable, &stations);
    let network = Network::new(stations, lines).map_err(|id| format!("{id} is not a station"))?;
    print!("{}", network.to_table());
    Ok(())
}

fn read_stations(path: &str) -> Result<Vec<Station>, Box<dyn Error>> {
    let mut reader = csv::Reader::from_path(path)?;
    let mut stations = Vec::new();
    for row in reader.deserialize() {
        let row: HashMap<String, String> = row?;
        let field = |name: &str| row.get(name).map(|value| value.trim().to_owned()).unwrap_or_default();
        let towards = [("N", "North Direction Label"), ("S", "South Direction Label")];
        let accessible = [("N", "ADA Northbound"), ("S", "ADA Southbound")];
        stations.push(Station {
            id: field("GTFS Stop ID"),
            complex: field("Complex ID"),
            name: field("Stop Name"),
            area: field("Borough"),
            trunk: field("Line"),
            lines: field("Daytime Routes").split_whitespace().map(str::to_owned).collect(),
            latitude: field("GTFS Latitude").parse()?,
            longitude: field("GTFS Longitude").parse()?,
            towards: towards
                .map(|(way, name)| (way.to_owned(), field(name)))
                .into_iter()
                .filter(|(_, name)| !name.is_empty())
                .collect(),
            accessible: accessible
                .iter()
                .filter(|(_, name)| field(name) == "1")
                .map(|(way, _)| (*way).to_owned())
                .collect(),
        });
    }
    stations.sort_by(|one: &Station, other| one.id.cmp(&other.id));
    Ok(stations)
}

/// Returns the name of a line on signs: express variants have the name of their line, and the three shuttles are S.
fn sign_of(route: &str) -> &str {
    match route {
        "GS" | "FS" | "H" => "S",
        "SI" => "SIR",
        _ => route.strip_suffix('X').unwrap_or(route),
    }
}

fn lines_of(timetable: &Timetable, stations: &[Station]) -> Vec<LineDefinition> {
    let by_id: HashMap<&str, &Station> = stations.iter().map(|station| (station.id.as_str(), station)).collect();
    let mut lines: BTreeMap<&str, Patterns> = BTreeMap::new();
    for trip in timetable.trips().filter(runs_by_day) {
        let sign = sign_of(trip.route());
        let mut way = String::new();
        let mut calls = Vec::new();
        for (platform, _, _) in trip.calls() {
            let (station, suffix) = platform.split_at(platform.len() - 1);
            suffix.clone_into(&mut way);
            if by_id.get(station).is_some_and(|station| station.lines.iter().any(|line| line == sign)) {
                calls.push(station.to_owned());
            }
        }
        restore_closed_sections(trip.route(), &way, &mut calls);
        if calls.len() > 1 {
            *lines.entry(trip.route()).or_default().entry((way, calls)).or_default() += 1;
        }
    }
    let facts = |(route, patterns): (&str, Patterns)| LineDefinition {
        id: route.to_owned(),
        name: sign_of(route).to_owned(),
        ways: usual_patterns(patterns),
    };
    lines.into_iter().map(facts).collect()
}

fn restore_closed_sections(line: &str, way: &str, calls: &mut Vec<String>) {
    for (_, before, after, closed) in CLOSED_SECTIONS.iter().filter(|(closed_line, ..)| *closed_line == line) {
        // `CLOSED_SECTIONS` lists stations southbound.
        let orient = |calls: &mut Vec<String>| {
            if way == "N" {
                calls.reverse();
            }
        };
        orient(calls);
        let gap = (0..calls.len()).find(|at| {
            let previous = at.checked_sub(1).map(|previous| calls[previous].as_str()).unwrap_or_default();
            previous == *before && calls[*at] == *after
        });
        if let Some(gap) = gap {
            calls.splice(gap..gap, closed.iter().map(|station| (*station).to_owned()));
        }
        orient(calls);
    }
}

fn runs_by_day(trip: &Trip<'_>) -> bool {
    let starts_by_day = trip.calls().next().is_some_and(|(_, _, departure)| DAY_SECONDS.contains(&departure));
    trip.service() == "Weekday" && starts_by_day
}

/// Returns the patterns that are not part of a longer one, most frequent first. Rare patterns are included only if they add a
/// station.
fn usual_patterns(patterns: Patterns) -> Vec<(String, Vec<String>)> {
    let total: usize = patterns.values().sum();
    let mut sorted: Vec<((String, Vec<String>), usize)> = patterns.into_iter().collect();
    sorted.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| other.0.1.len().cmp(&one.0.1.len())));
    let is_part = |part: &[String], whole: &[String]| {
        part.len() < whole.len() && whole.windows(part.len()).any(|window| window == part)
    };
    let whole: Vec<_> = sorted
        .iter()
        .filter(|((way, calls), _)| !sorted.iter().any(|((other, longer), _)| other == way && is_part(calls, longer)))
        .collect();
    let mut usual: Vec<(String, Vec<String>)> = Vec::new();
    for ((way, calls), count) in whole {
        let is_served = |station: &String| usual.iter().any(|(other, served)| other == way && served.contains(station));
        if *count >= MIN_TRIPS.min(total / 10) || !calls.iter().all(is_served) {
            usual.push((way.clone(), calls.clone()));
        }
    }
    usual
}
