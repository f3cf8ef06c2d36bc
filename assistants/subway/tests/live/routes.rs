use crate::mta::{FakeMta, now, train};
use threadkeep_subway::{LiveStatus, QueryError, RouteLeg, RouteSource};

const NUMBERED: &str = "nyct%2Fgtfs";

// S2.11
#[tokio::test]
async fn route_requests_no_feed() {
    let mta = FakeMta::start().await;
    let route = mta.subway().get_route("South Ferry", "Penn Station on the 1", now()).unwrap();
    assert_eq!(mta.request_count(), 0);
    assert_eq!(route.source, RouteSource::TwoMinutesAStop);
    assert!(route.changes <= 1, "{route:?}");
}

// S2.26
#[tokio::test]
async fn same_unknown_and_unreachable_stations_are_errors() {
    let subway = FakeMta::start().await.subway();
    let same = subway.get_route("Times Sq", "times square", now()).unwrap_err();
    assert!(matches!(same, QueryError::SameStation { .. }));
    let unknown = subway.get_route("Times Sq", "Hogwarts", now()).unwrap_err();
    assert_eq!(unknown, QueryError::UnknownStation { name: "Hogwarts".to_owned() });
    let island = subway.get_route("Times Sq", "Tottenville", now()).unwrap_err();
    assert!(matches!(island, QueryError::NoRoute { .. }), "no train crosses the harbour");
}

// S2.13
#[tokio::test]
async fn route_includes_the_next_trains_in_its_direction() {
    let mta = FakeMta::start().await;
    let trains = [
        train("1", &[("137N", 240), ("136N", 300)]),
        train("1", &[("137S", 30), ("138S", 120)]),
        train("2", &[("137N", 90), ("132N", 300)]),
    ];
    mta.show(NUMBERED, 0, &trains);
    let answer = mta.subway().get_route_with_arrivals("Chambers St on the 1", "14 St on the 1", now()).await.unwrap();
    let RouteLeg::Ride(first) = &answer.route.legs[0] else { panic!("the route begins with a ride") };
    assert_eq!((first.direction.as_str(), first.from_stop.as_str()), ("N", "137"));
    let next: Vec<_> = answer.next_trains.iter().map(|train| (train.line.as_str(), train.minutes_until)).collect();
    assert_eq!(next, [("2", 1), ("1", 4)]);
    assert_eq!(answer.live, LiveStatus::Available);
}

#[tokio::test]
async fn route_is_returned_without_live_times() {
    let answer = FakeMta::start().await.subway().get_route_with_arrivals("Bedford Av", "1 Av", now()).await.unwrap();
    assert_eq!((answer.live, answer.next_trains.len()), (LiveStatus::Unavailable, 0));
    assert_eq!(answer.route.changes, 0);
}

#[tokio::test]
async fn connection_at_a_change_is_timed() {
    let mta = FakeMta::start().await;
    mta.show("nyct%2Fgtfs-g", 0, &[train("G", &[("G29S", 120), ("G30S", 240)])]);
    mta.show("nyct%2Fgtfs-l", 0, &[train("L", &[("L06S", 60), ("L10S", 400)])]);
    let timing = mta.subway().get_transfer_timing("1 Av", "Broadway on the G", now()).await.unwrap();
    // The L arrives at second 300, after two stops; the G that leaves at second 120 has gone by then.
    assert_eq!(timing.arrives_in_minutes, Some(5));
    assert_eq!((timing.connection, timing.wait_minutes), (None, None));
    mta.show("nyct%2Fgtfs-g", 0, &[train("G", &[("G29S", 660), ("G30S", 780)])]);
    let timing = mta.subway().get_transfer_timing("1 Av", "Broadway on the G", now()).await.unwrap();
    assert_eq!(timing.transfer_at.as_deref(), Some("Lorimer St"));
    assert_eq!((timing.connection.unwrap().minutes_until, timing.wait_minutes), (11, Some(6)));
}
