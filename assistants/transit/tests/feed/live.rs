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
fn a_delayed_trip_replaces_the_scheduled_one() {
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let late = at("08:00:30") + SignedDuration::from_mins(30);
    let delayed = trip("t1", "", &[("A1", late), ("unknown", late), ("M1", at("08:45:00")), ("B1", at("08:55:00"))]);
    let changes = Changes::new(&timetable, &[feed(vec![delayed])], &zone(), at("08:00:00"));
    assert_eq!((changes.matched_count(), changes.added_count(), changes.cancelled_count()), (1, 0, 0));
    assert_eq!(first_train(&timetable, &changes, "A", "B"), Some(("t1".to_owned(), late, true)));
}

#[test]
fn trips_are_cancelled_explicitly_or_by_omission() {
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let cancelled = LiveTrip { is_cancelled: true, ..trip("t1", "1", &[]) };
    let changes = Changes::new(&timetable, &[feed(vec![cancelled])], &zone(), at("08:00:00"));
    assert_eq!(changes.cancelled_count(), 1);
    assert_eq!(first_train(&timetable, &changes, "A", "B").unwrap().0, "t2");

    let until = at("08:30:00");
    let complete = Replacement { route: "1".to_owned(), from: Some(at("07:30:00")), until };
    let message = LiveFeed { replaced: vec![complete], ..feed(vec![]) };
    let changes = Changes::new(&timetable, &[message], &zone(), at("08:00:00"));
    assert_eq!(changes.cancelled_count(), 1, "t2 starts after the period, u1 is on another line");
    assert_eq!(first_train(&timetable, &changes, "A", "B").unwrap().0, "t2");
}

#[test]
fn a_trip_that_is_not_in_the_timetable_is_added() {
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let extra = trip("extra", "2", &[("A1", at("07:30:00")), ("D1", at("07:50:00"))]);
    let changes = Changes::new(&timetable, &[feed(vec![extra])], &zone(), at("08:00:00"));
    assert_eq!(changes.added_count(), 1);
    assert_eq!(first_train(&timetable, &changes, "A", "D"), Some(("extra".to_owned(), at("07:30:00"), true)));
}

#[test]
fn stale_messages_and_overdue_trips_are_ignored() {
    let timetable = Timetable::clone(&Files::crossing().read().unwrap());
    let delayed = trip("t1", "1", &[("A1", at("08:30:00")), ("B1", at("08:55:00"))]);
    let changes = Changes::new(&timetable, &[feed(vec![delayed.clone()])], &zone(), at("08:05:01"));
    assert_eq!(changes, Changes::default());
    let overdue = LiveTrip { is_assigned: false, ..trip("t1", "1", &[("A1", at("07:59:00")), ("B1", at("08:55:00"))]) };
    assert_eq!(Changes::new(&timetable, &[feed(vec![overdue])], &zone(), at("08:00:00")), Changes::default());
}

#[test]
fn invalid_messages_are_rejected() {
    assert!(matches!(LiveFeed::decode(b"<html>"), Err(LiveError::Malformed { .. })));
    assert!(matches!(LiveFeed::decode(&[]), Err(LiveError::NoTimestamp)));
    assert!(matches!(LiveFeed::decode(&vec![0; (4 << 20) + 1]), Err(LiveError::TooLarge { .. })));
}

/// Encodes a field of a message, with a tag below 16 and fewer than 128 bytes of content.
fn field(tag: u8, content: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2, u8::try_from(content.len()).unwrap()], content].concat()
}

#[test]
fn a_message_with_too_many_trips_is_rejected() {
    let header = field(1, &[field(1, b"2.0"), vec![3 << 3, 1]].concat());
    let trip = field(2, &[field(1, b"x"), field(3, &field(1, b""))].concat());
    let message = |trips: usize| LiveFeed::decode(&[header.clone(), trip.repeat(trips)].concat());
    assert_eq!(message(20_000).unwrap().trips.len(), 20_000);
    let error = |trips: usize| message(trips).unwrap_err().to_string();
    assert_eq!(error(20_001), "the realtime message has 20001 trips, the limit is 20000");
    assert_eq!(error(40_001), "the realtime message has 40001 entities, the limit is 40000");
}

#[test]
fn a_short_name_does_not_match_as_a_prefix() {
    let timetable = Arc::new(Files::crossing().read().unwrap());
    let nameless = trip("", "1", &[("A1", at("08:30:00")), ("B1", at("08:55:00"))]);
    let changes = Changes::new(&timetable, &[feed(vec![nameless])], &zone(), at("08:00:00"));
    assert_eq!((changes.matched_count(), changes.added_count()), (0, 1));
}
