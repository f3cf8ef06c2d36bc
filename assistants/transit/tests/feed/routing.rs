use std::sync::Arc;

use jiff::civil::date;
use jiff::tz::TimeZone;

use crate::feeds::Files;
use threadkeep_transit::{Journey, Leg, Query, Schedule, Time, Walks};

const HOUR: u32 = 3600;

fn schedule(files: &Files) -> Schedule {
    Schedule::of_service(&Arc::new(files.read().unwrap()), "W", &Walks::default()).unwrap()
}

fn trips(journey: &Journey) -> Vec<&str> {
    journey.rides().map(|ride| ride.trip.as_str()).collect()
}

#[test]
fn a_change_includes_the_walking_time() {
    let schedule = schedule(&Files::crossing());
    // Arrives at M at 8:10:00 and at N at 8:12:00, after the train at 8:10:30. The next one is at 24:10:30.
    let journey = schedule.earliest_arrival(&Query::new("A", "D"), Time(0)).unwrap();
    assert_eq!((trips(&journey), journey.arrives()), (vec!["t2", "u2"], Time(24 * HOUR + 1200)));
    let walk = journey.legs.iter().find_map(|leg| match leg {
        Leg::Walk(walk) => Some(walk.seconds),
        Leg::Ride(_) => None,
    });
    assert_eq!(walk, Some(120));
}

#[test]
fn walks_and_changes_can_be_disallowed() {
    let schedule = schedule(&Files::crossing());
    assert_eq!(schedule.earliest_arrival(&Query { may_walk: false, ..Query::new("A", "D") }, Time(0)), None);
    assert_eq!(schedule.earliest_arrival(&Query { max_changes: 0, ..Query::new("A", "D") }, Time(0)), None);
    assert!(schedule.earliest_arrival(&Query::one_seat("A", "B"), Time(0)).is_some());
    assert_eq!(schedule.earliest_arrival(&Query::new("A", "A"), Time(0)), None);
    assert_eq!(schedule.earliest_arrival(&Query::new("A", "nowhere"), Time(0)), None);
}

#[test]
fn a_journey_can_end_with_a_walk() {
    let schedule = schedule(&Files::crossing());
    let journey = schedule.earliest_arrival(&Query::new("A", "N"), Time(0)).unwrap();
    assert_eq!((journey.departs(), journey.arrives()), (Time(8 * HOUR + 30), Time(8 * HOUR + 720)));
    let journey = schedule.earliest_arrival(&Query::new("N", "B"), Time(8 * HOUR)).unwrap();
    assert_eq!(journey.departs(), Time(8 * HOUR + 630 - 240), "the walk back takes longer");
}

#[test]
fn the_latest_departure_arrives_in_time() {
    let schedule = schedule(&Files::crossing());
    let query = Query::new("A", "B");
    let latest = |by: u32| schedule.latest_departure(&query, Time(by)).map(|journey| journey.departs());
    assert_eq!(latest(9 * HOUR + 1200), Some(Time(9 * HOUR + 30)));
    assert_eq!(latest(9 * HOUR + 1199), Some(Time(8 * HOUR + 30)));
    assert_eq!(latest(8 * HOUR), None);
    assert_eq!(latest(50 * HOUR), Some(Time(9 * HOUR + 30)));
}

#[test]
fn a_backward_search_finds_a_walk_after_the_last_train() {
    let schedule = schedule(&Files::crossing().appended("transfers.txt", "D,B,2,900\n"));
    let query = Query::new("C", "B");
    let journey = schedule.earliest_arrival(&query, Time(20 * HOUR)).unwrap();
    assert_eq!(journey.arrives(), Time(24 * HOUR + 1200 + 900));
    assert_eq!(schedule.latest_departure(&query, journey.arrives()), Some(journey));
}

#[test]
fn stops_without_boarding_are_skipped() {
    let times = "stop_times.txt";
    let feed = Files::crossing().replaced(times, "departure_time\n", "departure_time,pickup_type\n");
    let mut marked = feed;
    for (trip, hour) in [("t1", 8), ("t2", 9), ("u1", 8), ("u2", 24)] {
        for (position, stops) in ["A", "M", "B"].iter().zip(["C", "N", "D"]).enumerate() {
            let station = if trip.starts_with('t') { stops.0 } else { &stops.1 };
            let minute = position * 10;
            let row = format!("{trip},{station}1,{position},{hour}:{minute:02}:00,{hour}:{minute:02}:30\n");
            let pickup = if trip == "t1" && position == 0 { "1" } else { "" };
            marked = marked.replaced(times, &row, &format!("{},{pickup}\n", row.trim_end()));
        }
    }
    let journey = schedule(&marked).earliest_arrival(&Query::new("A", "B"), Time(0)).unwrap();
    assert_eq!(trips(&journey), ["t2"]);
}

#[test]
fn accessible_queries_use_only_accessible_platforms() {
    let mut schedule = schedule(&Files::crossing());
    let query = Query { accessible_only: true, ..Query::new("A", "B") };
    assert_eq!(schedule.earliest_arrival(&query, Time(0)), None, "the feed has no accessibility data");
    schedule.set_accessible(["A1", "B1", "unknown"]);
    assert!(schedule.earliest_arrival(&query, Time(0)).is_some());
    assert_eq!(schedule.earliest_arrival(&Query { accessible_only: true, ..Query::new("A", "M") }, Time(0)), None);
}

#[test]
fn schedules_include_the_previous_day_and_handle_clock_changes() {
    let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let at = |date: jiff::civil::Date, clock: &str| format!("{date}T{clock}").parse::<jiff::Timestamp>().unwrap();
    // On Saturday at 00:00:30, the train is Friday's at 24:00:30.
    let saturday = Schedule::around(&timetable, date(2024, 3, 16), &zone, &Walks::default());
    let from = saturday.time(at(date(2024, 3, 15), "23:58:00-04:00")).unwrap();
    let journey = saturday.earliest_arrival(&Query::new("C", "D"), from).unwrap();
    assert_eq!(saturday.instant(journey.departs()), Some(at(date(2024, 3, 16), "00:00:30-04:00")));
    // On the Monday after the clocks went forward, the local times are unchanged.
    let monday = Schedule::around(&timetable, date(2024, 3, 11), &zone, &Walks::default());
    let from = monday.time(at(date(2024, 3, 11), "07:00:00-04:00")).unwrap();
    let journey = monday.earliest_arrival(&Query::new("A", "B"), from).unwrap();
    assert_eq!(monday.instant(journey.departs()), Some(at(date(2024, 3, 11), "08:00:30-04:00")));
    assert_eq!(monday.time(at(date(2024, 3, 1), "00:00:00-05:00")), None);
}

#[test]
fn alternatives_are_pareto_optimal() {
    let schedule = schedule(&Files::crossing());
    let journeys = schedule.alternatives(&Query::new("A", "B"), Time(7 * HOUR), 5);
    assert_eq!(journeys.iter().map(trips).collect::<Vec<_>>(), [["t1"], ["t2"]]);
    assert_eq!(schedule.alternatives(&Query::new("A", "B"), Time(7 * HOUR), 1).len(), 1);
}
