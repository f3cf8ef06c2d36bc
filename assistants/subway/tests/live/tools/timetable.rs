use std::path::Path;

use threadkeep_subway::{GtfsError, LiveOptions, Subway, SubwayOptions, covers_today, read_gtfs_at};

use crate::mta::{FakeMta, now, train};
use crate::user::TestUser;

const NUMBERED: &str = "nyct%2Fgtfs";

/// Writes a feed in which the 1 runs from South Ferry to Chambers St every ten minutes and takes five and a half minutes.
fn write_feed(folder: &Path) {
    let stops = [("142", 0), ("139", 90), ("138", 180), ("137", 330)];
    let mut stops_text = "stop_id,stop_name,location_type,parent_station\n".to_owned();
    for (id, _) in stops {
        stops_text += &format!("{id},Somewhere,1,\n{id}N,Somewhere,,{id}\n");
    }
    let mut trips = "route_id,trip_id,service_id\n".to_owned();
    let mut times = "trip_id,stop_id,arrival_time,departure_time,stop_sequence\n".to_owned();
    for start in (0..24 * 3600).step_by(600) {
        trips += &format!("1,T{start},Weekday\n");
        for (number, (id, after)) in stops.iter().enumerate() {
            let at = start + after;
            let clock = format!("{:02}:{:02}:{:02}", at / 3600, at / 60 % 60, at % 60);
            times += &format!("T{start},{id}N,{clock},{clock},{number}\n");
        }
    }
    let calendar = "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n\
                    Weekday,1,1,1,1,1,0,0,20260101,20260630\n";
    for (name, text) in [
        ("agency.txt", "agency_name,agency_url,agency_timezone\nMTA,http://example.org,America/New_York\n"),
        ("stops.txt", &stops_text),
        ("routes.txt", "route_id,route_short_name,route_type\n1,1,1\n"),
        ("calendar.txt", calendar),
        ("trips.txt", &trips),
        ("stop_times.txt", &times),
    ] {
        std::fs::write(folder.join(name), text).unwrap();
    }
}

// S2.27, S2.52
#[tokio::test]
async fn route_uses_the_timetable_or_else_two_minutes_per_stop() {
    let folder = tempfile::tempdir().unwrap();
    write_feed(folder.path());
    let file = folder.path().join("subway.timetable");
    let mta = FakeMta::start().await;
    let open = || {
        let live = LiveOptions { base: mta.base.trim_end_matches('/').to_owned(), ..LiveOptions::default() };
        Subway::open(SubwayOptions { live, timetable: Some(file.clone()) })
    };
    let asked = r#"{"from_station": "South Ferry on the 1", "to_station": "Chambers St on the 1"}"#;
    let without = TestUser::with(open().unwrap()).await.ask("get_route", asked).await;
    assert!(without.starts_with("South Ferry to Chambers St (1 2 3): about 6 min, no changes.\n"), "{without}");

    let timetable = read_gtfs_at(folder.path()).unwrap();
    std::fs::write(&file, timetable.to_cache()).unwrap();
    let mut ana = TestUser::with(open().unwrap()).await;
    let with = ana.ask("get_route", asked).await;
    assert_eq!(
        with,
        "South Ferry to Chambers St (1 2 3): 6 min, no changes, 10:00 to 10:05.\n\
         1. Take the 1 (Uptown) from South Ferry to Chambers St: 3 stops, 6 min, 10:00 to 10:05.\n\
         Times are from the timetable, not live."
    );
    assert_eq!(mta.request_count(), 0, "S2.11");
    let at = |text: &str| text.parse::<threadkeep::Timestamp>().unwrap();
    let days = ["2026-01-14T15:00:00Z", "2026-07-01T15:00:00Z"].map(|day| covers_today(&timetable, at(day)));
    assert_eq!(days, [true, false]);
    ana.now = "2027-01-13T15:00:00Z".parse().unwrap();
    let older = ana.ask("get_route", asked).await;
    assert!(older.ends_with("not live: the loaded timetable does not cover today."), "{older}");
    std::fs::write(&file, b"something else").unwrap();
    assert!(matches!(open().unwrap_err(), GtfsError::Cache { .. }));
}

// S2.13, S2.32
#[tokio::test]
async fn live_trains_take_precedence_over_the_timetable() {
    let folder = tempfile::tempdir().unwrap();
    write_feed(folder.path());
    let mta = FakeMta::start().await;
    mta.show(NUMBERED, 0, &[train("1", &[("142N", 240), ("139N", 330), ("138N", 420), ("137N", 570)])]);
    mta.show("nyct%2Fgtfs-nqrw", 0, &[]);
    let timetable = read_gtfs_at(folder.path()).unwrap();
    let ana = TestUser::with(mta.subway().with_timetable(timetable.into())).await;
    let asked = r#"{"from_station": "South Ferry on the 1", "to_station": "Chambers St on the 1"}"#;
    let text = ana.ask("get_route_with_arrivals", asked).await;
    assert!(text.contains("\nNext trains at South Ferry (Uptown) (live):\n- 1 in 4 min (10:04)\n"), "{text}");
    let facts = ana.facts("get_route_with_arrivals", asked).await;
    assert_eq!(facts["route"]["source"]["times"], "live_trains", "{text}");
    assert_eq!(ana.now, now());
}
