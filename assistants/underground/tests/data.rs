//! Compares running times and the parsing of recorded responses with TfL's data, which is outside the repository.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod compared_routes;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use serde_json::Value;
use threadkeep_underground::tfl::{Prediction, StatusOfLine, StopPoint};
use threadkeep_underground::{network, ride_time, view_of};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/tfl")
}

fn read(path: &str) -> Value {
    serde_json::from_reader(File::open(data().join(path)).unwrap()).unwrap()
}

/// Returns the minimum and maximum minutes of each ride, across all sets of intervals in the timetables.
fn rides() -> BTreeMap<(String, String, String), (f64, f64)> {
    let mut rides: BTreeMap<(String, String, String), (f64, f64)> = BTreeMap::new();
    for entry in std::fs::read_dir(data().join("timetables")).unwrap() {
        let file = flate2::read::GzDecoder::new(File::open(entry.unwrap().path()).unwrap());
        let answers: Value = serde_json::from_reader(file).unwrap();
        let line = answers["line_id"].as_str().unwrap();
        for answer in answers["timetables"].as_object().unwrap().values() {
            let first = answer["timetable"]["departureStopId"].as_str().unwrap_or_default();
            for route in answer["timetable"]["routes"].as_array().into_iter().flatten() {
                for set in route["stationIntervals"].as_array().into_iter().flatten() {
                    let mut stops = vec![(first.to_owned(), 0.0)];
                    for interval in set["intervals"].as_array().into_iter().flatten() {
                        let stop = interval["stopId"].as_str().unwrap().to_owned();
                        if stops.last().is_none_or(|(last, _)| *last != stop) {
                            stops.push((stop, interval["timeToArrival"].as_f64().unwrap()));
                        }
                    }
                    for (at, (from, left)) in stops.iter().enumerate() {
                        for (to, arrived) in stops[at + 1..].iter().filter(|(to, _)| to != from) {
                            let minutes = arrived - left;
                            let range =
                                rides.entry((line.to_owned(), from.clone(), to.clone())).or_insert((minutes, minutes));
                            *range = (range.0.min(minutes), range.1.max(minutes));
                        }
                    }
                }
            }
        }
    }
    rides
}

fn is_within(seconds: u32, (least, most): (f64, f64)) -> bool {
    let minutes = f64::from(seconds) / 60.0;
    minutes >= least - 1.0 && minutes <= most + 1.0
}

#[test]
fn every_running_time_is_within_a_minute_of_the_timetables() {
    let mut wrong = Vec::new();
    let rides = rides();
    for ((line, from, to), range) in &rides {
        let known = network().find_station(from).is_some() && network().find_station(to).is_some();
        match ride_time(line, from, to) {
            Some(time) if is_within(time.seconds, *range) => {}
            other if known => wrong.push(format!("{line} {from} {to}: {range:?}, {other:?}")),
            _ => {}
        }
    }
    assert!(rides.len() > 14_000, "{}", rides.len());
    assert!(wrong.is_empty(), "{} of {}: {:?}", wrong.len(), rides.len(), &wrong[..wrong.len().min(10)]);
}

#[test]
fn running_times_match_the_expected_times_of_the_data_set() {
    for pair in read("ride-minutes-truth-dev.json").as_array().unwrap() {
        let text = |key: &str| pair[key].as_str().unwrap();
        let range = (pair["minutes_min"].as_f64().unwrap(), pair["minutes_max"].as_f64().unwrap());
        let time = ride_time(text("line"), text("from_id"), text("to_id"));
        assert!(time.is_some_and(|time| is_within(time.seconds, range)), "{pair}: {time:?}");
    }
}

#[test]
fn all_pairs_of_tube_stations_have_the_fastest_route() {
    compared_routes::check_routes(1);
}

fn at(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

#[test]
fn line_mode_status_20180314_central_minor() {
    let file = "recorded/line-mode-status-20180314-central-minor.json";
    let lines: Vec<StatusOfLine> = serde_json::from_value(read(file)).unwrap();
    assert_eq!(lines.len(), 13);
    let central = lines.iter().find(|line| line.id == "central").unwrap();
    let view = view_of(central, at("2018-04-11T18:00:00Z"));
    assert_eq!((view.headline.as_str(), view.severity, view.is_good), ("Minor Delays", 9, false));
    assert!(view.reasons.iter().any(|reason| reason.contains("Minor delays")), "{view:?}");
    assert!(lines.iter().filter(|line| line.id != "central").all(|line| !line.line_statuses.is_empty()));
}

#[test]
fn line_statuses() {
    // The time of the recording, and a time during the works that it announces.
    let (recorded, mut closures, mut in_force) = (at("2019-10-17T13:00:00Z"), 0, 0);
    let answers = read("recorded/line-statuses.json");
    assert_eq!(answers.as_array().unwrap().len(), 20);
    for answer in answers.as_array().unwrap() {
        assert_eq!(answer["status"], 200, "{}", answer["path"]);
        let lines: Vec<StatusOfLine> = serde_json::from_value(answer["body"].clone()).unwrap();
        assert!(!lines.is_empty());
        for line in &lines {
            let view = view_of(line, recorded);
            let severities: Vec<i64> = line.line_statuses.iter().map(|status| status.status_severity).collect();
            if severities.iter().all(|severity| *severity == 10) {
                assert!(view.is_good && view.planned.is_empty(), "{view:?}");
                continue;
            }
            closures += 1;
            assert!(!view.is_good || !view.planned.is_empty() || view.headline == "Service Closed", "{view:?}");
            for status in line.line_statuses.iter().filter(|status| !status.validity_periods.is_empty()) {
                let start = at(&status.validity_periods[0].from_date);
                let view = view_of(line, start + jiff::SignedDuration::from_mins(1));
                let is_stated = status.reason.as_ref().is_none_or(|reason| {
                    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
                    view.reasons.contains(&reason) && !view.planned.contains(&reason)
                });
                assert!(is_stated, "{view:?}");
                in_force += usize::from(!view.is_good);
            }
        }
    }
    assert!(closures > 0 && in_force > 0, "{closures} {in_force}");
}

#[test]
fn arrivals_20250727_stratford_jubilee() {
    let file = "recorded/arrivals-20250727-stratford-jubilee.json";
    let trains: Vec<Prediction> = serde_json::from_value(read(file)).unwrap();
    assert_eq!(trains.len(), 36);
    assert!(trains.iter().all(|train| train.line_id == "jubilee" && train.expected_arrival.is_some()));
    assert!(trains.iter().all(|train| !train.platform_name.is_empty() && train.time_to_station >= 0));
}

fn check_stops(file: &str, line: &str, count: usize) {
    let stops: Vec<StopPoint> = serde_json::from_value(read(file)).unwrap();
    assert_eq!(stops.len(), count);
    for stop in &stops {
        assert!(network().calls_at(line, &stop.id), "{} is not on the {line} line", stop.id);
        assert!(!stop.lines.is_empty(), "{} has no lines", stop.id);
    }
}

#[test]
fn line_stoppoints_2015_victoria() {
    check_stops("recorded/line-stoppoints-2015-victoria.json", "victoria", 16);
}

#[test]
fn line_stoppoints_2015_waterloo_city() {
    check_stops("recorded/line-stoppoints-2015-waterloo-city.json", "waterloo-city", 2);
}
