//! Tests of the built-in network against known facts, and of the tools that need only the network.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use threadkeep::Scope;
use threadkeep_subway::{
    Accessibility, CommonTrip, QueryError, TimeSource, count_trip, find_stations_on_line, get_common_trips,
    get_preference, get_station_info, network, save_preference, travel_time_on_line,
};

fn now() -> jiff::Timestamp {
    "2026-01-14T15:00:00Z".parse().unwrap()
}

fn way(line: &str, from: &str, to: &str) -> Option<(String, u32)> {
    network().ride(line, from, to).map(|ride| (ride.way.to_owned(), ride.stops()))
}

fn rides(direction: &str, stops: u32) -> Option<(String, u32)> {
    Some((direction.to_owned(), stops))
}

#[test]
fn network_table_round_trips() {
    let table = include_str!("../data/network.tsv");
    assert_eq!(network().to_table(), table);
    assert_eq!(network().stations().len(), 496);
    let mut complexes: Vec<_> = network().stations().iter().map(|station| &station.complex).collect();
    complexes.sort_unstable();
    complexes.dedup();
    assert_eq!(complexes.len(), 445);
}

// S2.30
#[test]
fn lines_have_the_known_number_of_stations() {
    let sizes = [
        ("1", 38),
        ("2", 49),
        ("3", 34),
        ("4", 28),
        ("5", 45),
        ("6", 38),
        ("7", 22),
        ("A", 44),
        ("B", 37),
        ("C", 40),
        ("D", 36),
        ("E", 22),
        ("F", 45),
        ("G", 21),
        ("J", 30),
        ("L", 24),
        ("M", 36),
        ("N", 28),
        ("Q", 29),
        ("R", 45),
        ("W", 23),
        ("Z", 21),
        ("SI", 21),
        ("GS", 2),
        ("FS", 4),
        ("H", 5),
    ];
    for (line, size) in sizes {
        assert_eq!(network().stations_on(line).len(), size, "{line}");
    }
}

// S2.29, S2.37
#[test]
fn directions_follow_the_order_of_the_line() {
    // Comparing latitudes would give the wrong direction, or none, for each of these.
    assert_eq!(way("7", "127", "701"), None, "127 is another station of the complex");
    assert_eq!(way("7", "725", "710"), rides("N", 13));
    assert_eq!(way("L", "L10", "L03").map(|(way, _)| way).as_deref(), Some("N"));
    assert_eq!(way("J", "M16", "M21").map(|(way, _)| way).as_deref(), Some("S"));
    assert_eq!(way("M", "M08", "D20").map(|(way, _)| way).as_deref(), Some("N"));
    assert_eq!(way("GS", "901", "902").map(|(way, _)| way).as_deref(), Some("N"));
    assert_eq!(way("A", "H11", "A41").map(|(way, _)| way).as_deref(), Some("N"));
    assert_eq!(way("A", "A65", "H11"), None, "no train runs from one branch to the other");
}

#[test]
fn rides_have_the_known_number_of_stops() {
    assert_eq!(way("1", "142", "128"), rides("N", 12));
    assert_eq!(way("2", "137", "128"), rides("N", 2));
    assert_eq!(way("6", "635", "626"), rides("N", 9));
    assert_eq!(way("4", "635", "626"), rides("N", 3));
    assert_eq!(way("A", "A41", "A51"), rides("S", 4));
    assert_eq!(way("G", "G22", "F27"), rides("S", 20));
}

// S2.27, S2.28
#[test]
fn without_a_timetable_a_stop_takes_two_minutes() {
    let ride = travel_time_on_line(None, "142", "128", "1", now()).unwrap();
    assert_eq!((ride.seconds, ride.stops, ride.source), (24 * 60, 12, TimeSource::TwoMinutesAStop));
    assert_eq!(travel_time_on_line(None, "142", "128", "2", now()), None, "the 2 does not stop at South Ferry");
}

// S2.30
#[test]
fn the_four_and_the_five_do_not_stop_at_96th_street() {
    for line in ["4", "5"] {
        assert!(!network().calls_at(line, "625"));
        assert_eq!(travel_time_on_line(None, "635", "625", line, now()), None);
    }
    assert_eq!(travel_time_on_line(None, "635", "625", "6", now()).unwrap().stops, 10);
}

#[test]
fn locals_and_expresses_share_the_known_stations() {
    let both = |local: &str, express: &str| -> Vec<&str> {
        let stations = network().stations_on(local).into_iter();
        stations.filter(|station| network().calls_at(express, &station.id)).map(|station| station.id.as_str()).collect()
    };
    let mut lexington = both("6", "4");
    lexington.sort_unstable();
    assert_eq!(lexington, ["621", "626", "629", "631", "635", "640"]);
    let mut broadway = both("1", "2");
    broadway.sort_unstable();
    assert_eq!(broadway, ["120", "123", "127", "128", "132", "137"]);
}

// S2.19
#[test]
fn station_info_has_lines_and_accessibility() {
    let info = get_station_info("Union Square").unwrap();
    assert_eq!(info.station.lines.len(), 8, "{:?}", info.station.lines);
    let accessible: Vec<_> = info.parts.iter().map(|part| (part.stop_id.as_str(), &part.accessibility)).collect();
    assert_eq!(accessible, [("635", &Accessibility::None), ("L03", &Accessibility::All), ("R20", &Accessibility::All)]);
    let partly = get_station_info("50 St on the E").unwrap();
    assert!(matches!(partly.parts[0].accessibility, Accessibility::Only { .. }));
}

// S2.20, S2.53
#[test]
fn the_stations_of_a_line_are_listed_in_order() {
    let one = find_stations_on_line("the 1 train").unwrap();
    let names: Vec<_> = one.ways[0].iter().map(|station| station.name.as_str()).collect();
    assert_eq!((one.ways.len(), names.len()), (1, 38));
    assert!(matches!((names[0], names[37]), ("South Ferry", "Van Cortlandt Park-242 St")), "{names:?}");
    assert_eq!(find_stations_on_line("S").unwrap().ways.len(), 3, "S is three shuttles");
    assert_eq!(find_stations_on_line("K").unwrap_err(), QueryError::UnknownLine { line: "K".to_owned() });
}

// S2.21, S2.22, S2.23
#[tokio::test]
async fn preferences_and_trips_belong_to_one_user() {
    let memory = threadkeep::open("memory:").await.unwrap();
    let (ana, ben) = (Scope::user("acme", "ana").unwrap(), Scope::user("acme", "ben").unwrap());
    save_preference(&memory, &ana, "Home station", "Astor Pl").await.unwrap();
    save_preference(&memory, &ana, "home_station", "8 St-NYU").await.unwrap();
    assert_eq!(get_preference(&memory, &ana, "home station").await.unwrap().as_deref(), Some("8 St-NYU"));
    assert_eq!(get_preference(&memory, &ben, "home station").await.unwrap(), None);
    for (from, to, turn) in [("A", "B", "1"), ("C", "D", "2"), ("C", "D", "3"), ("C", "D", "3")] {
        count_trip(&memory, &ana, from, to, turn).await.unwrap();
    }
    let trip = |from: &str, to: &str, count| CommonTrip { from: from.to_owned(), to: to.to_owned(), count };
    assert_eq!(get_common_trips(&memory, &ana).await.unwrap(), [trip("C", "D", 2), trip("A", "B", 1)]);
    assert_eq!(get_common_trips(&memory, &ben).await.unwrap(), []);
    // Trips are not preferences, which every assistant's context includes.
    let preferences = memory.list_preferences(&ana).await.unwrap();
    assert_eq!(
        preferences.iter().map(|preference| preference.key.as_str()).collect::<Vec<_>>(),
        ["subway-preference:home-station"]
    );
}
