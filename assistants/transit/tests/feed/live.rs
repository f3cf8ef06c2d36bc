use std::sync::Arc;

use jiff::civil::date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::feeds::Files;
use threadkeep_transit::{
    Call, Changes, LiveError, LiveFeed, LiveTrip, Query, Replacement, Schedule, Timetable, Walks,
};

fn zone() -> TimeZone {
    TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap()
}

/// A Wednesday.
fn at(clock: &str) -> Timestamp {
    format!("2024-03-20T{clock}-04:00").parse().unwrap()
}

fn trip(id: &str, route: &str, calls: &[(&str, Timestamp)]) -> LiveTrip {
    let call = |(platform, at): &(&str, Timestamp)| Call {
        platform: (*platform).to_owned(),
        arrival: Some(*at),
        departure: Some(*at),
        is_rerouted: false,
    };
    LiveTrip {
        id: id.to_owned(),
        route: route.to_owned(),
        start_date: Some(date(2024, 3, 20)),
        is_assigned: true,
        direction: None,
        is_cancelled: false,
        moved_at: None,
        calls: calls.iter().map(call).collect(),
    }
}

fn feed(trips: Vec<LiveTrip>) -> LiveFeed {
    LiveFeed { made_at: at("08:00:00"), trips, replaced: Vec::new() }
}

fn first_train(
    timetable: &Arc<Timetable>,
    changes: &Changes,
    from: &str,
    to: &str,
) -> Option<(String, Timestamp, bool)> {
    let schedule = Schedule::with_changes(timetable, date(2024, 3, 20), &zone(), &Walks::default(), changes);
    let not_before = schedule.time(at("07:00:00")).unwrap();
    let journey = schedule.earliest_arrival(&Query::one_seat(from, to), not_before)?;
    let ride = journey.rides().next().unwrap();
    Some((ride.trip.clone(), schedule.instant(ride.departs).unwrap(), ride.is_live))
}

#[test]
fn a_delayed_train_takes_the_place_of_the_scheduled_one() {
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let late = at("08:00:30") + SignedDuration::from_mins(30);
    let delayed = trip("t1", "", &[("A1", late), ("unknown", late), ("M1", at("08:45:00")), ("B1", at("08:55:00"))]);
    let changes = Changes::new(&timetable, &[feed(vec![delayed])], &zone(), at("08:00:00"));
    assert_eq!((changes.matched_count(), changes.added_count(), changes.cancelled_count()), (1, 0, 0));
    assert_eq!(first_train(&timetable, &changes, "A", "B"), Some(("t1".to_owned(), late, true)));
}

#[test]
fn trips_are_cancelled_by_name_and_by_being_left_out() {
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let cancelled = LiveTrip { is_cancelled: true, ..trip("t1", "1", &[]) };
    let changes = Changes::new(&timetable, &[feed(vec![cancelled])], &zone(), at("08:00:00"));
    assert_eq!(changes.cancelled_count(), 1);
    assert_eq!(first_train(&timetable, &changes, "A", "B").unwrap().0, "t2");

    let until = at("08:30:00");
    let complete = Replacement { route: "1".to_owned(), from: Some(at("07:30:00")), until };
    let message = LiveFeed { replaced: vec![complete], ..feed(vec![]) };
    let changes = Changes::new(&timetable, &[message], &zone(), at("08:00:00"));
    assert_eq!(changes.cancelled_count(), 1, "t2 starts after the period, u1 is of another line");
    assert_eq!(first_train(&timetable, &changes, "A", "B").unwrap().0, "t2");
}

#[test]
fn a_train_of_no_timetable_is_added() {
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let extra = trip("extra", "2", &[("A1", at("07:30:00")), ("D1", at("07:50:00"))]);
    let changes = Changes::new(&timetable, &[feed(vec![extra])], &zone(), at("08:00:00"));
    assert_eq!(changes.added_count(), 1);
    assert_eq!(first_train(&timetable, &changes, "A", "D"), Some(("extra".to_owned(), at("07:30:00"), true)));
}

#[test]
fn old_news_and_trains_that_never_came_change_nothing() {
    let timetable = Timetable::clone(&Files::crossing().read().unwrap());
    let delayed = trip("t1", "1", &[("A1", at("08:30:00")), ("B1", at("08:55:00"))]);
    let changes = Changes::new(&timetable, &[feed(vec![delayed.clone()])], &zone(), at("08:05:01"));
    assert_eq!(changes, Changes::default());
    let overdue = LiveTrip { is_assigned: false, ..trip("t1", "1", &[("A1", at("07:59:00")), ("B1", at("08:55:00"))]) };
    assert_eq!(Changes::new(&timetable, &[feed(vec![overdue])], &zone(), at("08:00:00")), Changes::default());
}

#[test]
fn bytes_that_are_no_message_are_refused() {
    assert!(matches!(LiveFeed::decode(b"<html>"), Err(LiveError::Malformed { .. })));
    assert!(matches!(LiveFeed::decode(&[]), Err(LiveError::NoTimestamp)));
    assert!(matches!(LiveFeed::decode(&vec![0; (4 << 20) + 1]), Err(LiveError::TooLarge { .. })));
}

/// A field of a message, with a tag below 16 and content of fewer than 128 bytes.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

#[test]
fn a_message_of_too_many_trips_is_refused() {
    let header = field(1, &[field(1, b"2.0"), vec![3 << 3, 1]].concat());
    let trip = field(2, &[field(1, b"x"), field(3, &field(1, b""))].concat());
    let message = |trips: usize| LiveFeed::decode(&[header.clone(), trip.repeat(trips)].concat());
    assert_eq!(message(20_000).unwrap().trips.len(), 20_000);
    let refused = |trips: usize| message(trips).unwrap_err().to_string();
    assert_eq!(refused(20_001), "the realtime message has 20001 trips, and at most 20000 are read");
    assert_eq!(refused(40_001), "the realtime message has 40001 entities, and at most 40000 are read");
}

#[test]
fn a_short_name_begins_no_other() {
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let nameless = trip("", "1", &[("A1", at("08:30:00")), ("B1", at("08:55:00"))]);
    let changes = Changes::new(&timetable, &[feed(vec![nameless])], &zone(), at("08:00:00"));
    assert_eq!((changes.matched_count(), changes.added_count()), (0, 1));
}
