use jiff::ToSpan;
use serde_json::json;

use crate::mta::{FakeMta, Train, now, train};
use crate::user::TestUser;

const NUMBERED: &str = "nyct%2Fgtfs";
const COMPARED: &str = r#"{"from_station": "South Ferry", "to_station": "Penn Station",
    "transfer_station": "Chambers St", "local_line": "1", "express_lines": "2,3"}"#;

/// A local that leaves South Ferry in three minutes, and two expresses at Chambers St, the first of which leaves before the
/// user can reach it.
async fn mta_with_trains() -> FakeMta {
    let mta = FakeMta::start().await;
    let trains = [
        train("1", &[("142N", 180), ("139N", 300), ("137N", 540)]),
        train("2", &[("137N", 560), ("132N", 800), ("128N", 980)]),
        train("3", &[("137N", 630), ("132N", 870), ("128N", 1050)]),
        train("1", &[("137S", 60), ("138S", 100), ("142S", 400)]),
        train("6", &[("635N", 60), ("634N", 150)]),
        train("4", &[("635N", 90), ("631N", 250), ("626N", 500)]),
    ];
    mta.show(NUMBERED, 0, &trains);
    mta
}

// S2.11, S2.27
#[tokio::test]
async fn route_is_described_step_by_step_without_a_feed() {
    let mta = mta_with_trains().await;
    let ana = TestUser::of(&mta).await;
    let text = ana.ask("get_route", r#"{"from": "Astor Pl", "destination": "Spring St on the 6"}"#).await;
    assert_eq!(
        text,
        "Astor Pl to Spring St (6): about 4 min, no changes.\n\
         1. Take the 6 (Downtown) from Astor Pl to Spring St: 2 stops, 4 min.\n\
         Times are estimates, not live: 2 min per stop. The wait for the first train is not included."
    );
    let changed = ana.ask("get_route", r#"{"from_station": "1 Av", "to_station": "Broadway on the G"}"#).await;
    assert!(changed.contains("\n2. Walk to Metropolitan Av in the same complex and take the G "), "{changed}");
    assert_eq!(mta.request_count(), 0);
}

// S2.13, S2.33
#[tokio::test]
async fn route_with_arrivals_includes_the_next_trains() {
    let mta = mta_with_trains().await;
    let ana = TestUser::of(&mta).await;
    let asked = r#"{"from_station": "14 St on the 1", "to_station": "23 St on the 1"}"#;
    mta.show(NUMBERED, 0, &[train("1", &[("132N", 130), ("131N", 200), ("130N", 260)])]);
    let text = ana.ask("get_route_with_arrivals", asked).await;
    assert!(
        text.contains("\nNext trains at 14 St (Uptown) (live):\n- 1 in 2 min (10:02), there about 10:06\n"),
        "{text}"
    );
    let facts = ana.facts("get_route_with_arrivals", asked).await;
    assert_eq!(facts["next_trains"][0]["minutes_until"], 2);
    assert_eq!(facts["route"]["legs"][0]["line"], "1");
}

// S2.15, S2.32, S2.33
#[tokio::test]
async fn next_trains_are_grouped_by_direction_and_cached_for_thirty_seconds() {
    let mta = mta_with_trains().await;
    let mut ana = TestUser::of(&mta).await;
    let text = ana.ask("get_train_arrivals", r#"{"station": "Chambers St on the 1"}"#).await;
    assert_eq!(
        text,
        "Next trains at Chambers St (1 2 3) (live, 10:00):\n\
         Downtown:\n\
         - 1 to South Ferry in 1 min (10:01)\n\
         Uptown:\n\
         - 1 to Chambers St in 9 min (10:09)\n\
         - 2 to 34 St-Penn Station in 9 min (10:09)\n\
         - 3 to 34 St-Penn Station in 10 min (10:10)"
    );
    ana.now = now() + 30.seconds();
    let filtered = ana.facts("get_train_arrivals", r#"{"station_name": "Chambers St", "line": 3}"#).await;
    assert_eq!((&filtered["arrivals"][0]["line"], filtered["arrivals"].as_array().unwrap().len()), (&json!("3"), 1));
    assert_eq!(mta.request_count(), 1);
    ana.now = now() + 31.seconds();
    ana.ask("get_train_arrivals", r#"{"station_name": "Chambers St", "line": "3"}"#).await;
    assert_eq!(mta.request_count(), 2);
}

// S2.34
#[tokio::test]
async fn arrivals_include_all_stations_of_a_complex() {
    let mta = mta_with_trains().await;
    mta.show("nyct%2Fgtfs-nqrw", 0, &[train("Q", &[("R20S", 120), ("R22S", 200)])]);
    mta.show("nyct%2Fgtfs-l", 0, &[train("L", &[("L03S", 180), ("L05S", 240)])]);
    let ana = TestUser::of(&mta).await;
    let facts = ana.facts("get_train_arrivals", r#"{"station_name": "Union Square"}"#).await;
    let lines: Vec<_> = facts["arrivals"].as_array().unwrap().iter().map(|train| &train["line"]).collect();
    assert_eq!(lines, ["6", "4", "Q", "L"]);
    assert_eq!(mta.request_count(), 3);
}

// S2.35
#[tokio::test]
async fn planned_trains_are_marked_and_overdue_ones_are_dropped() {
    let mta = FakeMta::start().await;
    let overdue = Train { is_assigned: false, ..train("1", &[("142N", -60), ("139N", 60)]) };
    let planned = Train { is_assigned: false, ..train("1", &[("142N", 30), ("139N", 150)]) };
    mta.show(NUMBERED, 0, &[overdue, planned]);
    let ana = TestUser::of(&mta).await;
    let text = ana.ask("get_train_arrivals", r#"{"station_name": "Rector St on the 1"}"#).await;
    assert!(text.ends_with(":\n- 1 to Rector St in 2 min (10:02; planned, no train on its way yet)"), "{text}");
}

// S2.33
#[tokio::test]
async fn unavailable_and_stale_feeds_are_reported_without_invented_times() {
    let mta = FakeMta::start().await;
    let mut ana = TestUser::of(&mta).await;
    let unavailable = "Live times unavailable: the MTA's feeds have no current data.";
    let asked = r#"{"station_name": "Astor Pl", "line": "6"}"#;
    let down = ana.ask("get_train_arrivals", asked).await;
    assert_eq!(down, format!("I cannot look up the next trains of the 6 at Astor Pl.\n{unavailable}"));
    ana.now = now() + 6.seconds();
    mta.show(NUMBERED, 301, &[train("6", &[("636N", 60), ("635N", 150)])]);
    assert_eq!(ana.ask("get_train_arrivals", asked).await, down);
    for (tool, arguments) in [
        ("get_route_with_arrivals", r#"{"from_station": "1 Av", "to_station": "Broadway on the G"}"#),
        ("get_transfer_timing", r#"{"from_station": "1 Av", "to_station": "Broadway on the G"}"#),
        ("plan_trip_with_transfers", "{}"),
    ] {
        let text = ana.ask(tool, arguments).await;
        assert!(text.contains(unavailable), "{tool}: {text}");
        assert!(!text.contains("(live") && !text.contains(" in 1 min"), "{tool}: {text}");
    }
    let some = FakeMta::start().await;
    some.show(NUMBERED, 0, &[train("6", &[("635N", 60), ("634N", 150)])]);
    let text = TestUser::of(&some).await.ask("get_train_arrivals", r#"{"station_name": "Union Square"}"#).await;
    assert!(text.ends_with("\nLive times unavailable for L, N, Q, R and W."), "{text}");
}

// S2.17, S2.18, S2.38, S2.40, S2.41
#[tokio::test]
async fn example_trip_equals_the_comparison() {
    let ana = TestUser::of(&mta_with_trains().await).await;
    let general = ana.call("compare_local_vs_express", COMPARED).await.unwrap();
    let example = ana.call("plan_trip_with_transfers", "{}").await.unwrap();
    assert_eq!(example, general);
    assert_eq!(
        example.text,
        "South Ferry to 34 St-Penn Station (1 2 3): local or express?\n\
         Next 1 at South Ferry: in 3 min.\n\
         Option 1, stay on the 1: 27 min in all from now, arriving 10:27.\n\
         Option 2, change to the 3 at Chambers St (1 2 3): 15 min in all from now, arriving 10:15; wait at Chambers St (1 2 3) 1 min, \
         from the local's arrival to the express's departure.\n\
         Recommendation: change to the 3, 12 min faster.\n\
         Waits are live; travel times are estimates of 2 min a stop."
    );
    let down = TestUser::of(&FakeMta::start().await).await;
    let general = down.call("compare_local_vs_express", COMPARED).await.unwrap();
    assert_eq!(down.call("plan_trip_with_transfers", "{}").await.unwrap(), general);
}

// S2.30, S2.39
#[tokio::test]
async fn express_that_skips_96_st_is_reported() {
    let ana = TestUser::of(&mta_with_trains().await).await;
    let asked = r#"{"from_station": "14th St", "to_station": "96th St", "transfer_station": "14th St", "local_line": 6,
        "express_lines": ["4", "5"]}"#;
    let text = ana.ask("compare_local_vs_express", asked).await;
    assert!(
        text.contains("\nThe 4/5 do not stop at 96 St during the day: option 2 leaves the express at 86 St"),
        "{text}"
    );
    assert!(text.contains("\nOption 2, take the 4 from 14 St-Union Sq: "), "{text}");
    let arrivals = ana.ask("get_train_arrivals", r#"{"station_name": "96th st lexington", "line": "4"}"#).await;
    assert_eq!(arrivals, "The 4 does not stop at 96 St (6) during the day.");
    let route =
        ana.ask("get_route", r#"{"from_station": "Union Sq", "to_station": "96th st lexington on the 5"}"#).await;
    assert_eq!(route, "The 5 does not stop at 96 St (6) during the day.");
}

#[tokio::test]
async fn arrivals_include_a_line_that_stops_there_only_at_night() {
    let mta = FakeMta::start().await;
    mta.show(NUMBERED, 0, &[train("4", &[("625S", 60), ("626S", 180)])]);
    let ana = TestUser::of(&mta).await;
    let text = ana.ask("get_train_arrivals", r#"{"station_name": "96th st lexington", "line": "4"}"#).await;
    assert!(text.ends_with("Downtown:\n- 4 to 86 St in 1 min (10:01)"), "{text}");
}

#[tokio::test]
async fn connection_can_be_any_line_that_makes_the_ride() {
    let ana = TestUser::of(&mta_with_trains().await).await;
    let asked = r#"{"from_station": "South Ferry", "to_station": "Penn Station on the 1"}"#;
    let text = ana.ask("get_transfer_timing", asked).await;
    let start = "Change at Chambers St from the 1 to the 3.\n\
                     The next 1 leaves South Ferry in 3 min (10:03), and is at Chambers St in 9 min.\n\
                     The connecting 3 leaves Chambers St in 10 min (10:10): 1 min after the arrival, including the \
                     walk.\n";
    assert!(text.starts_with(start), "{text}");
    let direct =
        ana.ask("get_transfer_timing", r#"{"from_station": "Astor Pl", "to_station": "Spring St on the 6"}"#).await;
    assert!(direct.starts_with("No change is needed from Astor Pl to Spring St"), "{direct}");
}

// S2.36
#[tokio::test]
async fn the_7_and_staten_island_have_live_times() {
    let mta = FakeMta::start().await;
    mta.show(NUMBERED, 0, &[train("7", &[("701S", 60), ("702S", 180)])]);
    mta.show("nyct%2Fgtfs-si", 0, &[train("SI", &[("S31S", 240), ("S30S", 360)])]);
    let ana = TestUser::of(&mta).await;
    let flushing = ana.ask("get_train_arrivals", r#"{"station_name": "Flushing", "line": "7"}"#).await;
    assert!(flushing.contains("\n- 7 to Mets-Willets Point in 1 min"), "{flushing}");
    let ferry = ana.ask("get_train_arrivals", r#"{"station_name": "St George"}"#).await;
    assert!(ferry.contains("\n- SIR to Tompkinsville in 4 min"), "{ferry}");
}

// S2.19, S2.24
#[tokio::test]
async fn station_info_describes_each_station_of_the_complex() {
    let ana = TestUser::of(&FakeMta::start().await).await;
    let text = ana.ask("get_station_info", r#"{"station_name": "union sq"}"#).await;
    assert_eq!(
        text,
        "14 St-Union Sq, Manhattan: lines 4 5 6 L N Q R W.\n\
         - 14 St-Union Sq (4 5 6): not step-free; trains towards Uptown and Downtown (GTFS stop 635, at 40.7347, -73.9900)\n\
         - 14 St-Union Sq (L): accessible, step-free to all platforms; trains towards West Side and Brooklyn (GTFS stop L03, at 40.7348, \
         -73.9907)\n\
         - 14 St-Union Sq (N Q R W): accessible, step-free to all platforms; trains towards Uptown and Downtown (GTFS stop R20, at \
         40.7357, -73.9906)"
    );
}

// S2.20, S2.53
#[tokio::test]
async fn stations_of_a_line_are_listed_by_branch() {
    let ana = TestUser::of(&FakeMta::start().await).await;
    let one = ana.ask("find_stations_on_line", r#"{"line": 1}"#).await;
    assert!(one.starts_with("The 1 stops at 38 stations during the day:\nSouth Ferry · Rector St · "), "{one}");
    assert_eq!(one.lines().count(), 2);
    let a = ana.ask("find_stations_on_line", r#"{"line": "A"}"#).await;
    let branches: Vec<_> = a.lines().skip(1).map(|branch| branch.split(" · ").next().unwrap()).collect();
    assert_eq!(branches, ["Ozone Park-Lefferts Blvd", "Far Rockaway-Mott Av", "Rockaway Park-Beach 116 St"]);
}
