//! Generates the tables of London's network from TfL's route sequences, timetables and station topology.
//!
//! The first argument is the folder that contains the data, the second the folder to which `network.tsv` and `services.tsv`
//! are written.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// The lines by id, with the words of their names.
const LINES: [(&str, &str); 19] = [
    ("bakerloo", "Bakerloo line"),
    ("central", "Central line"),
    ("circle", "Circle line"),
    ("district", "District line"),
    ("hammersmith-city", "Hammersmith & City line"),
    ("jubilee", "Jubilee line"),
    ("metropolitan", "Metropolitan line"),
    ("northern", "Northern line"),
    ("piccadilly", "Piccadilly line"),
    ("victoria", "Victoria line"),
    ("waterloo-city", "Waterloo & City line"),
    ("elizabeth", "Elizabeth line"),
    ("dlr", "DLR"),
    ("liberty", "Liberty line"),
    ("lioness", "Lioness line"),
    ("mildmay", "Mildmay line"),
    ("suffragette", "Suffragette line"),
    ("weaver", "Weaver line"),
    ("windrush", "Windrush line"),
];

/// The seconds that a stop adds if no timetable has running times: for braking, waiting at the platform and accelerating.
const STOP_SECONDS: f64 = 55.0;
/// The seconds per kilometre if no timetable has running times.
const KILOMETRE_SECONDS: f64 = 65.0;

#[derive(Debug, Default)]
struct Station {
    name: String,
    complex: String,
    zone: String,
    latitude: f64,
    longitude: f64,
    lines: Vec<&'static str>,
}

/// A stopping pattern, with the seconds from its first station to each stop and the number of trains that follow it.
#[derive(Debug, Clone)]
struct Way {
    direction: String,
    stations: Vec<String>,
    arrivals: Vec<u32>,
    trains: usize,
}

/// The departures of a line at a station in one direction, by kind of day, in minutes since midnight.
type Departures = BTreeMap<(String, String, String), BTreeMap<&'static str, Vec<u32>>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let data = arguments.next().context("the first argument is the folder with TfL's data")?;
    let output = arguments.next().context("the second argument is the folder for the tables")?;
    let routes: Value = serde_json::from_reader(File::open(data.join("route-sequences.json"))?)?;
    let stations = stations(&routes);
    let accessible = accessible(&data.join("stationdata"))?;
    let mut departures = Departures::new();
    let mut table = String::new();
    for (id, station) in &stations {
        let trunk = words(&station.lines);
        let of_stop = accessible.get(id).or_else(|| accessible.get(&station.complex));
        let step_free = of_stop.into_iter().flatten().filter(|line| station.lines.contains(&line.as_str()));
        let step_free = step_free.cloned().collect::<Vec<_>>().join(" ");
        let Station { name, complex, zone, latitude, longitude, lines } = station;
        let lines = lines.join(" ");
        writeln!(
            table,
            "station\t{id}\t{complex}\t{name}\t{zone}\t{trunk}\t{lines}\t{latitude}\t{longitude}\t\t{step_free}"
        )?;
    }
    for (line, name) in LINES {
        writeln!(table, "line\t{line}\t{name}")?;
        let timetable = data.join(format!("timetables/{line}.json.gz"));
        let ways = if timetable.exists() {
            timed_ways(line, &timetable, &stations, &mut departures)?
        } else {
            estimated_ways(&routes[line], &stations)
        };
        for way in without_parts(ways) {
            let seconds: Vec<String> = way.arrivals.windows(2).map(|pair| (pair[1] - pair[0]).to_string()).collect();
            writeln!(table, "way\t{}\t{}\t{}", way.direction, way.stations.join(" "), seconds.join(" "))?;
        }
    }
    std::fs::write(output.join("network.tsv"), table)?;
    std::fs::write(output.join("services.tsv"), services(&departures)?)?;
    Ok(())
}

/// Returns the names of lines, without "line", as one text.
fn words(lines: &[&str]) -> String {
    let names = lines.iter().filter_map(|line| LINES.iter().find(|(id, _)| id == line));
    names.map(|(_, name)| name.trim_end_matches(" line").replace(" &", "")).collect::<Vec<_>>().join(" ")
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn stations(routes: &Value) -> BTreeMap<String, Station> {
    let mut stations: BTreeMap<String, Station> = BTreeMap::new();
    for (line, _) in LINES {
        for stop in list(&routes[line], "stopPointSequences").flat_map(|sequence| list(sequence, "stopPoint")) {
            let station = stations.entry(text(stop, "id").to_owned()).or_default();
            station.name = clean_name(text(stop, "name"));
            station.complex = complex_of(stop);
            station.zone = text(stop, "zone").replace('+', "/");
            station.latitude = stop["lat"].as_f64().unwrap_or_default();
            station.longitude = stop["lon"].as_f64().unwrap_or_default();
            if !station.lines.contains(&line) {
                station.lines.push(line);
            }
        }
    }
    stations
}

/// Bank and Monument are one interchange, although only Bank belongs to the hub.
fn complex_of(stop: &Value) -> String {
    match text(stop, "id") {
        "940GZZLUMMT" => "HUBBAN".to_owned(),
        _ => text(stop, "topMostParentId").to_owned(),
    }
}

fn clean_name(name: &str) -> String {
    let mut name = name.to_owned();
    for ending in [" Underground Station", "-Underground", " DLR Station", " Rail Station"] {
        name = name.trim_end_matches(ending).to_owned();
    }
    for part in [
        " (Bakerloo)",
        " (Central)",
        " (Circle Line)",
        " (H&C Line)",
        " (Dist&Picc Line)",
        " (London)",
        " (Berks)",
        " (for ExCel)",
        " (for Maritime Greenwich)",
    ] {
        name = name.replace(part, "");
    }
    let name = name.trim_start_matches("London ").to_owned();
    // "London Fields" and "London City Airport" keep their first word.
    match name.as_str() {
        "Fields" | "City Airport" | "Bridge" => format!("London {name}"),
        "Queens Park" => "Queen's Park".to_owned(),
        "Shepherds Bush" => "Shepherd's Bush".to_owned(),
        "King's Cross St. Pancras" | "King's Cross & St Pancras International" => "King's Cross St. Pancras".to_owned(),
        _ => name,
    }
}

/// Returns the lines of each station whose platforms can all be reached from the street over level paths, ramps and lifts.
fn accessible(folder: &Path) -> Result<HashMap<String, Vec<String>>> {
    let mut paths: HashMap<String, Vec<String>> = HashMap::new();
    for file in ["SameLevelPaths.csv", "RampRoutes.csv"] {
        for row in rows(&folder.join(file))? {
            paths.entry(row["From"].clone()).or_default().push(row["To"].clone());
        }
    }
    for row in rows(&folder.join("Lifts.csv"))? {
        let columns = ["FromAreas", "IntermediateAreas", "IntermediateAreas2", "ToAreas"];
        let areas: Vec<&str> =
            columns.iter().flat_map(|column| row[*column].split('|')).filter(|area| !area.is_empty()).collect();
        for from in &areas {
            paths.entry((*from).to_owned()).or_default().extend(areas.iter().map(|to| (*to).to_owned()));
        }
    }
    let mut reachable: HashSet<String> = HashSet::new();
    for station in rows(&folder.join("Stations.csv"))? {
        let mut open = vec![station["OutsideStationUniqueId"].clone()];
        while let Some(area) = open.pop() {
            for next in paths.get(&area).into_iter().flatten() {
                if reachable.insert(next.clone()) {
                    open.push(next.clone());
                }
            }
        }
    }
    let mut lines: BTreeMap<(String, String), bool> = BTreeMap::new();
    for row in rows(&folder.join("PlatformServices.csv"))? {
        let platform = &row["PlatformUniqueId"];
        // The topology identifies some stops only by their interchange.
        let interchange = platform.split("-Plat").next().unwrap_or_default();
        for stop in [row["StopAreaNaptanCode"].as_str(), interchange] {
            let of_line = lines.entry((stop.to_owned(), row["Line"].clone())).or_insert(true);
            *of_line &= reachable.contains(platform);
        }
    }
    let mut accessible: HashMap<String, Vec<String>> = HashMap::new();
    for ((station, line), _) in lines.into_iter().filter(|(_, is_reachable)| *is_reachable) {
        // The topology predates the names of the Overground's lines.
        let names: Vec<&str> = match line.as_str() {
            "london-overground" => vec!["liberty", "lioness", "mildmay", "suffragette", "weaver", "windrush"],
            "elizabeth-line" => vec!["elizabeth"],
            other => vec![other],
        };
        let known = names.into_iter().filter(|name| LINES.iter().any(|(id, _)| id == name)).map(str::to_owned);
        accessible.entry(station).or_default().extend(known);
    }
    Ok(accessible)
}

fn rows(path: &Path) -> Result<Vec<HashMap<String, String>>> {
    let mut reader = csv::Reader::from_path(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(reader.deserialize().collect::<Result<_, _>>()?)
}

/// Returns the ways of a line according to its timetables, most frequent first, and adds its departures to `departures`.
fn timed_ways(
    line: &str,
    path: &Path,
    stations: &BTreeMap<String, Station>,
    departures: &mut Departures,
) -> Result<Vec<Way>> {
    let answers: Value = serde_json::from_reader(flate2::read::GzDecoder::new(File::open(path)?))?;
    let mut ways: Vec<Way> = Vec::new();
    for answer in answers["timetables"].as_object().into_iter().flat_map(|answers| answers.values()) {
        let first = text(&answer["timetable"], "departureStopId");
        for route in list(&answer["timetable"], "routes") {
            for intervals in list(route, "stationIntervals") {
                let Some(mut way) = way_of(text(answer, "direction"), first, intervals, stations) else { continue };
                for schedule in list(route, "schedules") {
                    way.trains += add_departures(line, &way, text(intervals, "id"), schedule, departures);
                }
                ways.push(way);
            }
        }
    }
    Ok(most_frequent(ways))
}

/// Returns the way that a set of intervals describes. Stops can occur twice in the data: on arrival and on departure.
fn way_of(direction: &str, first: &str, intervals: &Value, stations: &BTreeMap<String, Station>) -> Option<Way> {
    let mut way =
        Way { direction: direction.to_owned(), stations: vec![first.to_owned()], arrivals: vec![0], trains: 0 };
    for interval in list(intervals, "intervals") {
        let stop = text(interval, "stopId");
        let minutes = interval["timeToArrival"].as_f64()?;
        if way.stations.last().is_some_and(|last| last == stop) || !stations.contains_key(stop) {
            continue;
        }
        way.stations.push(stop.to_owned());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "minutes of a ride are small")]
        way.arrivals.push((minutes * 60.0) as u32);
    }
    (way.stations.len() > 1 && stations.contains_key(first)).then_some(way)
}

/// Adds the departures from each stop of a way according to a schedule; returns the number of trains.
fn add_departures(line: &str, way: &Way, id: &str, schedule: &Value, departures: &mut Departures) -> usize {
    let days = match text(schedule, "name") {
        "Monday - Friday" => "mf",
        "Monday - Thursday" => "mt",
        "Friday" => "fr",
        "Saturday (also Good Friday)" | "Saturdays and Public Holidays" => "sa",
        "Sunday" => "su",
        _ => return 0,
    };
    let number = |journey: &Value, key: &str| text(journey, key).parse::<u32>().unwrap_or_default();
    let id = id.parse().ok();
    let mut count = 0;
    for journey in list(schedule, "knownJourneys").filter(|journey| journey["intervalId"].as_u64() == id) {
        count += 1;
        let start = number(journey, "hour") * 60 + number(journey, "minute");
        for (station, arrival) in way.stations.iter().zip(&way.arrivals).take(way.stations.len() - 1) {
            let key = (line.to_owned(), station.clone(), way.direction.clone());
            departures.entry(key).or_default().entry(days).or_default().push(start + arrival / 60);
        }
    }
    count
}

/// Merges ways with the same stops, keeping the times that apply to the most trains. Sorts the result by the number of trains.
fn most_frequent(ways: Vec<Way>) -> Vec<Way> {
    let mut joined: Vec<(Way, usize)> = Vec::new();
    for way in ways {
        match joined.iter_mut().find(|(known, _)| known.stations == way.stations) {
            Some((known, most)) => {
                let trains = known.trains + way.trains;
                if way.trains > *most {
                    *most = way.trains;
                    *known = way;
                }
                known.trains = trains;
            }
            None => {
                let trains = way.trains;
                joined.push((way, trains));
            }
        }
    }
    let mut ways: Vec<Way> = joined.into_iter().map(|(way, _)| way).collect();
    ways.sort_by(|one, other| (other.trains, &one.stations).cmp(&(one.trains, &other.stations)));
    ways
}

/// Removes ways that are part of a longer one.
fn without_parts(ways: Vec<Way>) -> Vec<Way> {
    let is_part = |way: &Way| {
        ways.iter().any(|other| {
            other.stations.len() > way.stations.len()
                && other.stations.windows(way.stations.len()).any(|part| part == way.stations)
        })
    };
    ways.iter().filter(|way| !is_part(way)).cloned().collect()
}

/// Returns the ways of a line without timetables, with running times estimated from distances.
fn estimated_ways(route: &Value, stations: &BTreeMap<String, Station>) -> Vec<Way> {
    let outbound: BTreeSet<(String, String)> = list(route, "stopPointSequences")
        .filter(|sequence| text(sequence, "direction") == "outbound")
        .flat_map(|sequence| {
            let ids: Vec<String> = list(sequence, "stopPoint").map(|stop| text(stop, "id").to_owned()).collect();
            ids.windows(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect::<Vec<_>>()
        })
        .collect();
    let ways = list(route, "orderedLineRoutes").map(|ordered| {
        let ids: Vec<String> = list(ordered, "naptanIds").filter_map(Value::as_str).map(str::to_owned).collect();
        let is_outbound = ids.windows(2).filter(|pair| outbound.contains(&(pair[0].clone(), pair[1].clone()))).count();
        let direction = if is_outbound * 2 >= ids.len() - 1 { "outbound" } else { "inbound" };
        let mut arrivals = vec![0];
        for pair in ids.windows(2) {
            let seconds = STOP_SECONDS + KILOMETRE_SECONDS * kilometres(&stations[&pair[0]], &stations[&pair[1]]);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a ride are small")]
            arrivals.push(arrivals[arrivals.len() - 1] + seconds.round() as u32);
        }
        Way { direction: direction.to_owned(), stations: ids, arrivals, trains: 0 }
    });
    ways.filter(|way| way.stations.len() > 1).collect()
}

fn kilometres(one: &Station, other: &Station) -> f64 {
    const KILOMETRES_A_DEGREE: f64 = 111.2;
    let north = (one.latitude - other.latitude) * KILOMETRES_A_DEGREE;
    let east = (one.longitude - other.longitude) * KILOMETRES_A_DEGREE * one.latitude.to_radians().cos();
    north.hypot(east)
}

/// Returns the table of first trains, last trains, and trains per hour in three periods of the day.
fn services(departures: &Departures) -> Result<String> {
    let mut table = String::new();
    for ((line, station, direction), by_days) in departures {
        write!(table, "{line}\t{station}\t{direction}")?;
        for (days, times) in by_days {
            let (first, last) = (times.iter().min().unwrap_or(&0), times.iter().max().unwrap_or(&0));
            let an_hour = |from: u32, to: u32| {
                let count = times.iter().filter(|time| (from * 60..to * 60).contains(*time)).count();
                count / (to - from) as usize
            };
            let clock = |minutes: &u32| format!("{:02}{:02}", minutes / 60, minutes % 60);
            let (peak, midday, evening) = (an_hour(7, 10), an_hour(10, 16), an_hour(19, 23));
            write!(table, "\t{days} {} {} {peak} {midday} {evening}", clock(first), clock(last))?;
        }
        writeln!(table)?;
    }
    Ok(table)
}
