//! Tests with the real timetable: routes, and scheduled run times compared with the published table. `THREADKEEP_DATA` is the
//! data folder.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use jiff::Timestamp;
use threadkeep::Scope;
use threadkeep::core::ToolContext;
use threadkeep_subway::{
    LiveOptions, LiveTrains, RouteLeg, RouteRequest, RouteSource, Subway, SubwayTools, TimeSource, TripConditions,
    travel_time_on_line,
};
use threadkeep_transit::Timetable;

fn data(path: &str) -> PathBuf {
    let folder = std::env::var_os("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must be the folder of the data sets; `cargo xtask test --data` sets it");
    PathBuf::from(folder).join(path)
}

static TIMETABLE: LazyLock<Arc<Timetable>> = LazyLock::new(|| {
    let bytes = std::fs::read(data("mta-gtfs/gtfs_subway.zip")).unwrap();
    Arc::new(Timetable::from_zip(bytes).unwrap())
});

/// Returns a subway without live feeds: nothing listens at their address.
fn subway() -> Subway {
    let options = LiveOptions { base: "http://127.0.0.1:9/".to_owned(), ..LiveOptions::default() };
    Subway::new(LiveTrains::new(options)).with_timetable(Arc::clone(&TIMETABLE))
}

/// Returns the median, minimum and maximum duration of the rides in a day, and their number. `is_included` selects rides by
/// duration, because the published table lists night-time rides on the local tracks separately.
fn rides(
    route: &str,
    service: &str,
    from: &str,
    to: &str,
    is_included: impl Fn(u32) -> bool,
) -> (u32, u32, u32, usize) {
    let mut seconds: Vec<u32> = TIMETABLE
        .ride_times(route, service, from, to)
        .into_iter()
        .map(|(_, seconds)| seconds)
        .filter(|seconds| is_included(*seconds))
        .collect();
    seconds.sort_unstable();
    (seconds[seconds.len() / 2], seconds[0], seconds[seconds.len() - 1], seconds.len())
}

#[test]
fn scheduled_run_times_match_the_published_table() {
    let all = |_| true;
    let express = |seconds| seconds <= 480;
    let median_and_count = |route, service, from, to| {
        let (median, _, _, count) = rides(route, service, from, to, all);
        (median, count)
    };
    assert_eq!(rides("1", "Weekday", "142", "137", all), (240, 240, 360, 231));
    assert_eq!(median_and_count("1", "Saturday", "142", "137"), (270, 186));
    assert_eq!(median_and_count("1", "Sunday", "142", "137"), (270, 154));
    assert_eq!(rides("2", "Weekday", "137", "128", express), (420, 420, 480, 146));
    assert_eq!(rides("2", "Saturday", "137", "128", express), (420, 390, 420, 121));
    assert_eq!(rides("2", "Sunday", "137", "128", express), (420, 390, 420, 99));
    assert_eq!(rides("3", "Weekday", "137", "128", all), (420, 420, 480, 129));
    assert_eq!(median_and_count("3", "Saturday", "137", "128"), (420, 87));
    assert_eq!(median_and_count("3", "Sunday", "137", "128"), (420, 76));
    assert_eq!(rides("1", "Weekday", "137", "128", all), (660, 630, 720, 231));
    assert_eq!(median_and_count("1", "Saturday", "137", "128"), (690, 186));
    assert_eq!(median_and_count("1", "Sunday", "137", "128"), (690, 154));
    let local_at_night = |service| {
        let (median, _, _, count) = rides("2", service, "137", "128", |seconds| seconds > 480);
        (median, count)
    };
    assert_eq!(["Weekday", "Saturday", "Sunday"].map(local_at_night), [(690, 16), (690, 18), (690, 24)]);
    assert_eq!(rides("6", "Weekday", "635", "625", all), (960, 930, 1140, 213));
    assert_eq!(median_and_count("6", "Saturday", "635", "625"), (990, 175));
    assert_eq!(median_and_count("6", "Sunday", "635", "625"), (990, 154));
    assert_eq!(rides("1", "Weekday", "142", "128", all), (900, 870, 1110, 231));
    for service in ["Weekday", "Saturday", "Sunday"] {
        let rides = |route| TIMETABLE.ride_times(route, service, "635", "626");
        let mut expresses: Vec<u32> =
            [rides("4"), rides("5")].concat().into_iter().map(|(_, seconds)| seconds).collect();
        expresses.retain(|seconds| *seconds <= 630);
        expresses.sort_unstable();
        assert_eq!(expresses[expresses.len() / 2], 570, "{service}");
    }
    assert_eq!(rides("6", "Weekday", "635", "626", all).0, 840);
    assert_eq!(rides("6", "Saturday", "635", "626", all).0, 870);
    assert_eq!(rides("6", "Weekday", "626", "625", all), (120, 90, 120, 213));
    let at_night: Vec<_> = TIMETABLE.ride_times("4", "Weekday", "635", "625");
    assert!((13..=16).contains(&at_night.len()), "{} late trips of the 4 stop at 96 St", at_night.len());
}

fn wednesday(clock: &str) -> Timestamp {
    format!("2024-03-20T{clock}-04:00").parse().unwrap()
}

// S2.27
#[test]
fn travel_times_come_from_the_timetable() {
    let ride = travel_time_on_line(Some(&TIMETABLE), "142", "128", "1", wednesday("12:00:00")).unwrap();
    assert_eq!((ride.seconds, ride.source), (900, TimeSource::Timetable));
    assert_eq!(travel_time_on_line(Some(&TIMETABLE), "635", "625", "4", wednesday("12:00:00")), None);
}

#[test]
fn routes_follow_the_timetable_of_the_day() {
    let route = subway().get_route("South Ferry", "Penn Station on the 1", wednesday("08:00:00")).unwrap();
    assert_eq!(route.source, RouteSource::Timetable);
    assert!(route.seconds <= 900, "{route:#?}");
    assert!(route.departs.as_deref() >= Some("08:00"));
    // The feed's transfers leave out South Ferry, whose complex has Whitehall St.
    let route = subway().get_route("Rector St on the R", "South Ferry on the 1", wednesday("08:00:00"));
    assert!(route.is_ok(), "{route:?}");
}

#[test]
fn expired_timetable_gives_durations_and_names_the_date_used() {
    let now = "2026-01-14T15:00:00Z".parse().unwrap();
    let route = subway().get_route("Flushing", "Grand Central", now).unwrap();
    assert_eq!(route.source, RouteSource::OlderTimetable { date: "2024-04-24".to_owned() });
    assert_eq!((route.departs, route.arrives), (None, None));
}

#[test]
fn accessible_routes_use_only_accessible_platforms() {
    let conditions = TripConditions { step_free: true, ..TripConditions::default() };
    let request =
        |from| RouteRequest { from, to: "Grand Central", now: wednesday("12:00:00"), conditions: conditions.clone() };
    assert!(subway().find_route(&request("Astor Pl")).is_err(), "Astor Pl has steps");
    let request = request("Bleecker St");
    let route = subway().find_route(&request).unwrap();
    assert!(route.legs.iter().all(|leg| !matches!(leg, RouteLeg::Ride(ride) if ride.from_stop == "635")), "{route:#?}");
}

/// Returns the text of a tool call at an instant within the feed's dates.
async fn tool_text(tool: &str, arguments: &str, at: Timestamp) -> String {
    let memory = threadkeep::open("memory:").await.unwrap();
    let tools = SubwayTools::new(memory, Arc::new(subway())).all();
    let tool = tools.iter().find(|known| known.spec().name() == tool).unwrap();
    let context = ToolContext {
        scope: Scope::user("acme", "ana").unwrap(),
        thread: "01890000-0000-7000-8000-000000000000".parse().unwrap(),
        turn: "turn".to_owned(),
        call_id: "call".to_owned(),
        question: String::new(),
        approval: None,
        now: threadkeep::Timestamp::from_micros(at.as_microsecond()).unwrap(),
    };
    tool.call(&context, &serde_json::from_str(arguments).unwrap()).await.unwrap().text
}

// S2.11, S2.52
#[tokio::test]
async fn timetable_route_states_departure_and_arrival_times() {
    let arguments = r#"{"from_station": "Bedford Av", "to_station": "Flushing Main St"}"#;
    let text = tool_text("get_route", arguments, wednesday("08:00:00")).await;
    assert!(text.starts_with("Bedford Av to Flushing-Main St: "), "{text}");
    assert!(text.lines().next().unwrap().contains(", 08:0"), "{text}");
    assert!(
        text.contains("\n1. Take the L (") && text.ends_with("\nTimes are from the timetable, not live."),
        "{text}"
    );
    let older = tool_text("get_route", arguments, "2026-01-14T15:00:00Z".parse().unwrap()).await;
    assert!(
        older.ends_with(
            "Times are from the timetable of 2024-04-24, not live: the loaded timetable does not cover today."
        )
    );
}

// S2.30
#[tokio::test]
async fn timetable_confirms_that_the_express_skips_96_st_during_the_day() {
    let arguments = r#"{"from_station": "Union Sq", "to_station": "96th St", "transfer_station": "Union Sq",
        "local_line": "6", "express_lines": "4,5"}"#;
    let text = tool_text("compare_local_vs_express", arguments, wednesday("12:00:00")).await;
    assert!(text.contains("\nOption 1, take the 6: 16 min on trains, waiting not counted.\n"), "{text}");
    assert!(
        text.contains("\nThe 4/5 do not stop at 96 St during the day: option 2 leaves the express at 86 St"),
        "{text}"
    );
    assert!(text.contains("Live times unavailable"), "{text}");
}
