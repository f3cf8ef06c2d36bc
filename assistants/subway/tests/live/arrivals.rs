use crate::mta::{FakeMta, Train, now, train};
use threadkeep_subway::{LiveStatus, QueryError};

const NUMBERED: &str = "nyct%2Fgtfs";

// S2.15, S2.33
#[tokio::test]
async fn trains_are_sorted_and_departed_ones_are_dropped() {
    let mta = FakeMta::start().await;
    let trains = [
        train("1", &[("137N", 500), ("136N", 560)]),
        train("1", &[("137N", -10), ("136N", 50)]),
        train("2", &[("137N", 200), ("132N", 400)]),
        train("1", &[("138S", 30), ("139S", 90)]),
    ];
    mta.show(NUMBERED, 0, &trains);
    let subway = mta.subway();
    let answer = subway.get_train_arrivals("Chambers St on the 1", None, now()).await.unwrap();
    let seen: Vec<_> = answer.arrivals.iter().map(|train| (train.line.as_str(), train.minutes_until)).collect();
    assert_eq!(seen, [("2", 3), ("1", 8)]);
    let filtered = subway.get_train_arrivals("Chambers St", Some("1"), now()).await.unwrap();
    let seen: Vec<_> = filtered.arrivals.iter().map(|train| (train.line.as_str(), train.at)).collect();
    assert_eq!(seen, [("1", now().as_second() + 500)]);
    assert_eq!(filtered.arrivals[0].towards, "Uptown");
}

// S2.34
#[tokio::test]
async fn union_square_includes_all_stations_of_its_complex() {
    let mta = FakeMta::start().await;
    mta.show(NUMBERED, 0, &[train("6", &[("635N", 60), ("634N", 150)])]);
    mta.show("nyct%2Fgtfs-nqrw", 0, &[train("Q", &[("R20S", 120), ("R22S", 200)])]);
    mta.show("nyct%2Fgtfs-l", 0, &[train("L", &[("L03S", 180), ("L05S", 240)])]);
    let answer = mta.subway().get_train_arrivals("Union Square", None, now()).await.unwrap();
    let lines: Vec<_> = answer.arrivals.iter().map(|train| train.line.as_str()).collect();
    assert_eq!(lines, ["6", "Q", "L"]);
    assert_eq!(answer.live, LiveStatus::Available);
    assert_eq!(answer.station.stop_ids.len(), 3);
}

// S2.35
#[tokio::test]
async fn overdue_planned_trips_are_dropped() {
    let mta = FakeMta::start().await;
    let overdue = Train { is_assigned: false, ..train("1", &[("142N", -60), ("139N", 60)]) };
    let planned = Train { is_assigned: false, ..train("1", &[("142N", 30), ("139N", 150)]) };
    mta.show(NUMBERED, 0, &[overdue, planned]);
    let answer = mta.subway().get_train_arrivals("Rector St on the 1", None, now()).await.unwrap();
    let seen: Vec<_> = answer.arrivals.iter().map(|train| (train.at - now().as_second(), train.is_assigned)).collect();
    assert_eq!(seen, [(150, false)]);
}

#[tokio::test]
async fn lines_of_unavailable_feeds_are_listed() {
    let mta = FakeMta::start().await;
    mta.show(NUMBERED, 0, &[train("6", &[("635N", 60), ("634N", 150)])]);
    let answer = mta.subway().get_train_arrivals("Union Square", None, now()).await.unwrap();
    let unavailable = ["L", "N", "Q", "R", "W"].map(str::to_owned).to_vec();
    assert_eq!(answer.live, LiveStatus::Partial { unavailable });
    assert_eq!(answer.arrivals.len(), 1);
}

// S2.25
#[tokio::test]
async fn unknown_and_ambiguous_names_are_errors() {
    let subway = FakeMta::start().await.subway();
    let ask =
        async |station: &str, line: Option<&str>| subway.get_train_arrivals(station, line, now()).await.unwrap_err();
    let unknown = ask("Hogwarts", None).await;
    assert_eq!(unknown, QueryError::UnknownStation { name: "Hogwarts".to_owned() });
    assert_eq!(ask("Times Square", Some("X")).await, QueryError::UnknownLine { line: "X".to_owned() });
    let QueryError::WhichStation { choices, .. } = ask("50 St", None).await else { panic!("50 St is three stations") };
    assert_eq!(choices.len(), 3);
    let wrong_line = ask("96 St", Some("4")).await;
    assert!(wrong_line.to_string().starts_with("the 4 does not stop at 96 St"), "{wrong_line}");
}
