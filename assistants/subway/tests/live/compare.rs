use crate::mta::{FakeMta, Train, now, train};
use threadkeep_subway::{Comparison, ComparisonRemark, QueryError, Recommendation, Subway, TimeSource};

const NUMBERED: &str = "nyct%2Fgtfs";

const SOUTH_FERRY_TO_PENN: Comparison<'_> = Comparison {
    from_station: "South Ferry",
    to_station: "Penn Station",
    transfer_station: "Chambers St",
    local_line: "1",
    express_lines: "2,3",
};

/// A local that leaves South Ferry in `seconds` seconds. Without a timetable, it arrives at Chambers St six minutes later.
fn local(seconds: i64) -> Train {
    train("1", &[("142N", seconds), ("139N", seconds + 120), ("137N", seconds + 360)])
}

fn express(route: &'static str, seconds: i64) -> Train {
    train(route, &[("137N", seconds), ("132N", seconds + 240), ("128N", seconds + 420)])
}

async fn subway_with(trains: &[Train]) -> Subway {
    let mta = FakeMta::start().await;
    mta.show(NUMBERED, 0, trains);
    mta.subway()
}

// S2.17, S2.27, S2.37, S2.38, S2.40, S2.41
#[tokio::test]
async fn express_is_recommended_if_it_can_be_caught_and_saves_time() {
    let subway = subway_with(&[local(180), express("2", 560), express("3", 630)]).await;
    let answer = subway.compare_local_vs_express(&SOUTH_FERRY_TO_PENN, now()).await.unwrap();
    assert_eq!(answer.direction, "N");
    assert_eq!(answer.next_local_minutes, Some(3));
    // The local takes 12 stops of two minutes; the first express leaves 20 seconds after the local's arrival at 540.
    assert_eq!(answer.stay.total_seconds, Some(180 + 1440));
    let change = answer.change.unwrap();
    assert_eq!((change.line.as_str(), change.total_seconds), ("3", Some(630 + 240)));
    assert_eq!(answer.platform_wait_minutes, Some(1));
    assert_eq!(answer.recommendation, Some(Recommendation::Express));
    assert_eq!((answer.times, answer.remarks), (TimeSource::TwoMinutesAStop, vec![]));
}

// S2.41
#[tokio::test]
async fn local_is_recommended_if_totals_are_equal() {
    // The ride from Chambers St to Penn Station is two stops on the express, so the totals are equal if it leaves Chambers St
    // 1200 seconds after the local leaves South Ferry.
    let subway = subway_with(&[local(60), express("2", 60 + 1200)]).await;
    let answer = subway.compare_local_vs_express(&SOUTH_FERRY_TO_PENN, now()).await.unwrap();
    let change = answer.change.unwrap();
    assert_eq!(change.total_seconds, answer.stay.total_seconds);
    assert_eq!(answer.recommendation, Some(Recommendation::Local));
}

// S2.41
#[tokio::test]
async fn remarks_report_missing_trains_and_feeds() {
    let no_express = subway_with(&[local(180), express("2", 500)]).await;
    let answer = no_express.compare_local_vs_express(&SOUTH_FERRY_TO_PENN, now()).await.unwrap();
    assert_eq!(answer.remarks, [ComparisonRemark::NoCatchableExpress]);
    assert_eq!(answer.recommendation, Some(Recommendation::Local));

    let no_local = subway_with(&[express("2", 500)]).await;
    let answer = no_local.compare_local_vs_express(&SOUTH_FERRY_TO_PENN, now()).await.unwrap();
    assert_eq!(answer.remarks, [ComparisonRemark::NoLocal, ComparisonRemark::NoCatchableExpress]);
    assert_eq!((answer.next_local_minutes, answer.recommendation), (None, None));

    let down = FakeMta::start().await.subway();
    let answer = down.compare_local_vs_express(&SOUTH_FERRY_TO_PENN, now()).await.unwrap();
    assert_eq!(answer.remarks, [ComparisonRemark::LiveTimesUnavailable]);
    assert_eq!((answer.stay.riding_seconds, answer.stay.total_minutes), (1440, None));
    assert_eq!(answer.change.unwrap().riding_seconds, 360 + 240);
    assert_eq!(answer.recommendation, None);
}

// S2.39
#[tokio::test]
async fn transfer_at_the_origin_compares_both_from_there() {
    let trains = [train("1", &[("137N", 60), ("136N", 120)]), express("2", 300), express("3", 20)];
    let subway = subway_with(&trains).await;
    let here = Comparison { from_station: "Chambers St", ..SOUTH_FERRY_TO_PENN };
    let answer = subway.compare_local_vs_express(&here, now()).await.unwrap();
    assert_eq!(answer.stay.total_seconds, Some(60 + 9 * 120));
    let change = answer.change.unwrap();
    assert_eq!((change.line.as_str(), change.total_seconds), ("3", Some(20 + 240)));
    assert_eq!(answer.recommendation, Some(Recommendation::Express));
}

// S2.18
#[tokio::test]
async fn example_trip_equals_the_comparison() {
    let subway = subway_with(&[local(180), express("2", 700)]).await;
    let example = subway.plan_trip_with_transfers(now()).await.unwrap();
    let compared = subway.compare_local_vs_express(&SOUTH_FERRY_TO_PENN, now()).await.unwrap();
    assert_eq!(serde_json::to_vec(&example).unwrap(), serde_json::to_vec(&compared).unwrap());
}

// S2.30
#[tokio::test]
async fn a_remark_reports_that_the_4_and_5_skip_96_st() {
    let trains = [
        train("6", &[("635N", 120), ("625N", 1300)]),
        train("4", &[("635N", 60), ("626N", 500)]),
        train("6", &[("626N", 700), ("625N", 820)]),
    ];
    let subway = subway_with(&trains).await;
    let uptown = Comparison {
        from_station: "14th St",
        to_station: "96th St",
        transfer_station: "14th St",
        local_line: "6",
        express_lines: "4,5",
    };
    let answer = subway.compare_local_vs_express(&uptown, now()).await.unwrap();
    assert_eq!(answer.from.name, "14 St-Union Sq");
    let (lines, destination) = (vec!["4".to_owned(), "5".to_owned()], "96 St".to_owned());
    assert_eq!(answer.remarks, [ComparisonRemark::ExpressSkips { lines, destination, leave_at: "86 St".to_owned() }]);
    // The 4 is at 86 St at second 420, after three stops; the 6 leaves there at second 700 and needs one more stop.
    assert_eq!(answer.change.unwrap().total_seconds, Some(700 + 120));
    assert_eq!(answer.stay.total_seconds, Some(120 + 10 * 120));
}

#[tokio::test]
async fn local_that_does_not_make_the_trip_is_an_error() {
    let subway = FakeMta::start().await.subway();
    let wrong = Comparison { to_station: "Coney Island", ..SOUTH_FERRY_TO_PENN };
    let error = subway.compare_local_vs_express(&wrong, now()).await.unwrap_err();
    assert!(matches!(error, QueryError::NotOnLine { .. }), "{error}");
    let behind = Comparison { from_station: "Chambers St", transfer_station: "South Ferry", ..SOUTH_FERRY_TO_PENN };
    let error = subway.compare_local_vs_express(&behind, now()).await.unwrap_err();
    assert_eq!(error.to_string(), "South Ferry is not on the way from Chambers St to 34 St-Penn Station");
}
