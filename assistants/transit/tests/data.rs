//! Compares the timetable in `THREADKEEP_DATA` with its table of rides, and every decoded realtime capture with the
//! output of an independent decoder.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock};

use jiff::civil::date;
use jiff::tz::TimeZone;
use serde_json::Value;
use threadkeep_transit::{Changes, Journey, LiveFeed, Query, Schedule, Time, Timetable, Walks};

fn data(path: &str) -> PathBuf {
    let folder = std::env::var_os("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must name the folder of the data sets; `cargo xtask test --data` sets it");
    PathBuf::from(folder).join(path)
}

static TIMETABLE: LazyLock<Arc<Timetable>> = LazyLock::new(|| {
    let bytes = std::fs::read(data("mta-gtfs/gtfs_subway.zip")).unwrap();
    Arc::new(Timetable::from_zip(bytes).unwrap())
});

fn of_service(service: &str) -> Schedule {
    Schedule::of_service(&TIMETABLE, service, &Walks::default()).unwrap()
}

fn new_york() -> TimeZone {
    TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap()
}

fn seconds(clock: &str) -> u32 {
    let parts: Vec<u32> = clock.split(':').map(|part| part.parse().unwrap()).collect();
    parts[0] * 3600 + parts[1] * 60 + parts[2]
}

#[test]
fn the_feed_is_read_completely() {
    let timetable = &*TIMETABLE;
    assert_eq!(timetable.timezone(), "America/New_York");
    assert_eq!((timetable.stations().len(), timetable.routes().len(), timetable.trip_count()), (499, 30, 20_365));
    assert_eq!(timetable.valid_dates(), Some((date(2024, 1, 8), date(2024, 4, 27))));
    assert_eq!(timetable.services_on(date(2024, 3, 18)).collect::<Vec<_>>(), ["Weekday"]);
    assert_eq!(timetable.services_on(date(2024, 2, 19)).collect::<Vec<_>>(), ["Saturday"], "Presidents' Day");
}

#[test]
fn the_cache_round_trips() {
    let cache = TIMETABLE.to_cache();
    assert!(Timetable::from_cache(&cache).unwrap() == **TIMETABLE);
    assert!(cache.len() < 4_000_000, "{} bytes", cache.len());
}

/// Compares all direct rides of the table to the second, including the train if several arrive at the same time.
#[test]
fn direct_rides_match_the_exhaustive_scan() {
    let rides: Value =
        serde_json::from_slice(&std::fs::read(data("mta-gtfs/direct-ride-truth-dev.json")).unwrap()).unwrap();
    let services = ["Weekday", "Saturday", "Sunday"].map(|service| (service, of_service(service)));
    let services = HashMap::from(services);
    let rides = rides.as_array().unwrap();
    assert_eq!(rides.len(), 80);
    for ride in rides {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let (from, to) = (text(&ride["from_stop"]), text(&ride["to_stop"]));
        let not_before = Time(seconds(ride["not_before"].as_str().unwrap()));
        let schedule = &services[ride["service_id"].as_str().unwrap()];
        let journey = schedule.earliest_arrival(&Query::one_seat(&from, &to), not_before).unwrap();
        let found = journey.rides().next().unwrap();
        let truth = &ride["earliest_arrival"];
        let expected = (text(&truth["trip_id"]), text(&truth["departs"]), text(&truth["arrives"]));
        assert_eq!((found.departs.0, found.arrives.0), (seconds(&expected.1), seconds(&expected.2)), "{ride}");
        assert_eq!(
            (&found.trip, found.stops_ridden()),
            (&expected.0, truth["stops_ridden"].as_u64().unwrap() as usize)
        );
        assert_eq!(found.from_platform, text(&truth["board_stop"]));
        assert_eq!(found.to_platform, text(&truth["alight_stop"]));
    }
}

/// The latest departure is consistent with the earliest arrival, and no journey with fewer changes arrives earlier.
#[test]
fn forward_and_backward_searches_agree() {
    let schedule = Schedule::around(&TIMETABLE, date(2024, 3, 20), &new_york(), &Walks::default());
    let stations: Vec<&str> = TIMETABLE.stations().iter().map(|station| station.id.as_str()).collect();
    let mut found = 0;
    for (index, from) in stations.iter().enumerate() {
        let to = stations[(index * 7 + 31) % stations.len()];
        let at = Time(86_400 + (index as u32 * 173) % 86_400);
        let query = Query::new(from, to);
        let Some(journey) = schedule.earliest_arrival(&query, at) else { continue };
        found += 1;
        check_is_rideable(&journey, at);
        let latest = schedule.latest_departure(&query, journey.arrives()).unwrap();
        check_is_rideable(&latest, at);
        assert!(latest.departs() >= journey.departs() && latest.arrives() <= journey.arrives(), "{from} {to}");
        let fewer = Query { max_changes: journey.changes() as u32, ..query };
        assert_eq!(schedule.earliest_arrival(&fewer, at).unwrap().arrives(), journey.arrives());
    }
    assert!(found > 440, "{found} of {} pairs have a journey", stations.len());
}

fn check_is_rideable(journey: &Journey, not_before: Time) {
    assert!(journey.departs() >= not_before);
    let mut at = journey.departs().0;
    for ride in journey.rides() {
        assert!(ride.departs.0 >= at && ride.arrives > ride.departs);
        at = ride.arrives.0;
    }
}

#[test]
fn last_trains_after_midnight_belong_to_the_day_before() {
    let schedule = Schedule::around(&TIMETABLE, date(2024, 3, 17), &new_york(), &Walks::default());
    // On Sunday at 00:10, the running trains belong to Saturday.
    let at = date(2024, 3, 17).at(0, 10, 0, 0).to_zoned(new_york()).unwrap().timestamp();
    let journey = schedule.earliest_arrival(&Query::one_seat("142", "128"), schedule.time(at).unwrap()).unwrap();
    let ride = journey.rides().next().unwrap();
    assert!(ride.trip.contains("Saturday"), "{}", ride.trip);
    assert!(schedule.instant(ride.departs).unwrap() >= at);
}

#[test]
fn a_capture_is_merged_into_the_timetable() {
    let feed = LiveFeed::decode(&std::fs::read(data("mta-gtfs-rt/20231201-1234567.pb")).unwrap()).unwrap();
    // The capture is from the same timetable period, but before the feed's first date. It is moved to the first common
    // Friday.
    let moved = moved_by_weeks(feed, 6);
    let now = moved.made_at;
    let changes = Changes::new(&TIMETABLE, std::slice::from_ref(&moved), &new_york(), now);
    assert!(changes.matched_count() > 250, "{} matched", changes.matched_count());
    assert!(changes.added_count() > 0 && changes.cancelled_count() > 0);
    let today = now.to_zoned(new_york()).date();
    let schedule = Schedule::with_changes(&TIMETABLE, today, &new_york(), &Walks::default(), &changes);
    let journey = schedule.earliest_arrival(&Query::one_seat("142", "128"), schedule.time(now).unwrap()).unwrap();
    let ride = journey.rides().next().unwrap();
    assert!(ride.is_live);
    let boards = moved.arrivals(|platform| platform == "142N", now);
    let board = boards.iter().find(|arrival| arrival.trip == ride.trip).unwrap();
    assert!(schedule.instant(ride.departs).unwrap() >= board.at);
}

fn moved_by_weeks(mut feed: LiveFeed, weeks: i64) -> LiveFeed {
    use jiff::{SignedDuration, ToSpan};
    let span = SignedDuration::from_hours(weeks * 7 * 24);
    feed.made_at += span;
    for period in &mut feed.replaced {
        period.from = period.from.map(|at| at + span);
        period.until += span;
    }
    for trip in &mut feed.trips {
        trip.start_date = trip.start_date.map(|date| date + weeks.weeks());
        trip.moved_at = trip.moved_at.map(|at| at + span);
        for call in &mut trip.calls {
            call.arrival = call.arrival.map(|at| at + span);
            call.departure = call.departure.map(|at| at + span);
        }
    }
    feed
}

const CAPTURES: [&str; 11] = [
    "20190916-123456S.pb",
    "20190916-7.pb",
    "20190916-ACE.pb",
    "20190916-BDFM.pb",
    "20190916-G.pb",
    "20190916-JZ.pb",
    "20190916-L.pb",
    "20190916-NQRW.pb",
    "20190916-SIR.pb",
    "20231201-1234567.pb",
    "20251221-buses.pb.gz",
];

/// Compares every capture, at 20 stations each, with the output of the published Python bindings.
#[test]
fn captures_agree_with_an_independent_decoder() {
    let skipped = std::env::var("THREADKEEP_MISSING_PROGRAMS").unwrap_or_default();
    if skipped.split(',').any(|name| name == "python3") {
        return;
    }
    let paths: Vec<String> =
        CAPTURES.iter().map(|name| data(&format!("mta-gtfs-rt/{name}")).display().to_string()).collect();
    let decoded = decode_in_python(&paths);
    for path in &paths {
        let expected = &decoded[path];
        let feed = LiveFeed::decode(&content_of(Path::new(path))).unwrap();
        let calls: usize = feed.trips.iter().map(|trip| trip.calls.len()).sum();
        assert_eq!(feed.made_at.as_second(), expected["made_at"].as_i64().unwrap(), "{path}");
        assert_eq!(feed.trips.len() as u64, expected["trips"].as_u64().unwrap(), "{path}");
        assert_eq!(calls as u64, expected["calls"].as_u64().unwrap(), "{path}");
        let board = expected["board"].as_object().unwrap();
        assert_eq!(board.len(), 20, "{path}");
        for (station, arrivals) in board {
            let is_of_station = |platform: &str| platform.len() > 1 && platform[..platform.len() - 1] == **station;
            let mut found: Vec<_> = feed.arrivals(is_of_station, feed.made_at).into_iter().collect();
            found.sort_by_key(|arrival| (arrival.at, arrival.trip.clone(), arrival.route.clone(), arrival.is_assigned));
            let found: Vec<Value> = found
                .into_iter()
                .map(|arrival| {
                    serde_json::json!([
                        arrival.at.as_second(),
                        arrival.trip,
                        arrival.route,
                        arrival.platform,
                        arrival.is_assigned
                    ])
                })
                .collect();
            assert_eq!(&Value::from(found), arrivals, "{path} at {station}");
        }
    }
}

fn content_of(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap();
    if path.extension().is_none_or(|extension| extension != "gz") {
        return bytes;
    }
    let mut content = Vec::new();
    flate2::read::GzDecoder::new(bytes.as_slice()).read_to_end(&mut content).unwrap();
    content
}

/// Runs `data/decode.py`. Its bindings are downloaded to the target folder once.
fn decode_in_python(paths: &[String]) -> Value {
    let bindings = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gtfs-realtime-bindings");
    if !bindings.join("google").is_dir() {
        let mut install = Command::new("python3");
        install
            .args(["-m", "pip", "install", "--quiet", "--target"])
            .arg(&bindings)
            .arg("gtfs-realtime-bindings==3.0.0");
        assert!(install.status().unwrap().success(), "cannot install the Python bindings");
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/decode.py");
    let output = Command::new("python3").arg(script).args(paths).env("PYTHONPATH", &bindings).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
