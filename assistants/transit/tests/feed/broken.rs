use std::error::Error;

use crate::feeds::Files;
use threadkeep_transit::Timetable;

fn read_error(files: &Files) -> String {
    files.read().unwrap_err().to_string()
}

#[test]
fn a_feed_reads_the_same_from_a_zip_and_from_a_folder() {
    let feed = Files::crossing();
    let timetable = feed.read().unwrap();
    assert_eq!(timetable, feed.read_from_folder().unwrap());
    assert_eq!(timetable.stations()[0].name, "A, the station");
    let names: Vec<_> = timetable.routes().iter().map(|route| route.name.as_str()).collect();
    assert_eq!(names, ["1", "Two"]);
}

#[test]
fn a_byte_order_mark_and_windows_line_endings_are_accepted() {
    let feed = Files::crossing().replaced("routes.txt", "route_id", "\u{feff}route_id").replaced(
        "routes.txt",
        "1,,1\n",
        "1,,1\r\n",
    );
    assert!(feed.read().is_ok());
}

#[test]
fn errors_name_the_file_line_and_column() {
    let feed = Files::crossing;
    let cases = [
        (feed().without("trips.txt"), "trips.txt is missing"),
        (feed().without("calendar.txt"), "calendar.txt is missing"),
        (feed().replaced("trips.txt", "service_id", "service"), "trips.txt: missing column service_id"),
        (feed().appended("trips.txt", "2,W\n"), "trips.txt, line 6: expected 4 fields, encoded in UTF-8"),
        (feed().appended("trips.txt", "9,W,v1,D\n"), "trips.txt, line 6, column route_id: \"9\" is not defined"),
        (
            feed().appended("trips.txt", "2,W,u2,D\n"),
            "trips.txt, line 6, column trip_id: \"u2\" is defined more than once",
        ),
        (feed().appended("trips.txt", "2,W,,D\n"), "trips.txt, line 6, column trip_id: missing value"),
        (
            feed().replaced("stop_times.txt", "8:10:00", "8:70:00"),
            "stop_times.txt, line 3, column arrival_time: \"8:70:00\" is not a time such as 25:04:30",
        ),
        (
            feed().replaced("stop_times.txt", "8:10:00,8:10:30", "7:10:00,7:10:30"),
            "stop_times.txt, line 3, column arrival_time: the time is earlier than the previous time of the trip",
        ),
        (
            feed().replaced("stop_times.txt", "8:10:00,8:10:30", "8:10:30,8:10:00"),
            "stop_times.txt, line 3, column departure_time: the time is earlier than the previous time of the trip",
        ),
        (
            feed().replaced("stop_times.txt", "t1,M1,1", "t1,M1,0"),
            "stop_times.txt, line 3, column stop_sequence: \"0\" occurs more than once in the trip",
        ),
        (
            feed().replaced("stop_times.txt", "8:20:00,8:20:30", ","),
            "stop_times.txt, line 4, column arrival_time: trip \"t1\" has fewer than two stops, or no time at its first or last stop",
        ),
        (
            feed().replaced("stop_times.txt", "t1,M1", "t1,Z1"),
            "stop_times.txt, line 3, column stop_id: \"Z1\" is not defined",
        ),
        (
            feed().replaced("calendar.txt", "20240101", "20240231"),
            "calendar.txt, line 2, column start_date: \"20240231\" is not a date such as 20240318",
        ),
        (feed().replaced("calendar.txt", "W,1", "W,yes"), "calendar.txt, line 2, column monday: \"yes\" is not 0 or 1"),
        (
            feed().appended("transfers.txt", "M,Z,2,60\n"),
            "transfers.txt, line 4, column to_stop_id: \"Z\" is not defined",
        ),
        (
            feed().with("calendar_dates.txt", "service_id,date,exception_type\nW,20240704,3\n"),
            "calendar_dates.txt, line 2, column exception_type: \"3\" is not 1 or 2",
        ),
        (
            feed().with("frequencies.txt", "trip_id,start_time,end_time,headway_secs\nt1,06:00:00,09:00:00,300\n"),
            "frequencies.txt is not supported",
        ),
    ];
    for (feed, expected) in cases {
        assert_eq!(read_error(&feed), expected);
        assert_eq!(feed.read_from_folder().unwrap_err().to_string(), expected);
    }
}

#[test]
fn invalid_archives_and_missing_folders_are_rejected() {
    let error = Timetable::from_zip(b"PK but not really".to_vec()).unwrap_err();
    assert_eq!(error.to_string(), "the feed is not a valid zip archive");
    assert!(error.source().is_some());
    let error = Timetable::from_folder(std::path::Path::new("/no/such/folder")).unwrap_err();
    assert_eq!(error.to_string(), "cannot read /no/such/folder");
}

#[test]
fn a_missing_time_is_interpolated() {
    let feed = Files::crossing().replaced("stop_times.txt", "8:10:00,8:10:30", ",");
    let timetable = feed.read().unwrap();
    let trip = timetable.trips().next().unwrap();
    let calls: Vec<_> = trip.calls().map(|(_, arrival, departure)| (arrival, departure)).collect();
    assert_eq!(calls, [(28_800, 28_830), (29_415, 29_415), (30_000, 30_030)]);
}

/// Interpolation must run in linear time: searching for the next time from each stop would take minutes.
#[test]
fn many_missing_times_are_interpolated() {
    const STOPS: usize = 50_000;
    let mut times = "trip_id,stop_id,stop_sequence,arrival_time,departure_time\nt1,A1,0,8:00:00,8:00:00\n".to_owned();
    for sequence in 1..STOPS {
        times += &format!("t1,M1,{sequence},,\n");
    }
    let without_end = Files::crossing().with("stop_times.txt", &times);
    assert!(
        read_error(&without_end).starts_with("stop_times.txt, line 50001, column arrival_time"),
        "{}",
        read_error(&without_end)
    );
    let with_end = without_end.appended("stop_times.txt", &format!("t1,B1,{STOPS},21:53:20,21:53:20\n"));
    let timetable = with_end.read().unwrap();
    assert_eq!(timetable.ride_times("1", "W", "A", "M"), [(8 * 3600, 1)]);
}

#[test]
fn dates_can_be_in_any_order() {
    let head = "service_id,date,exception_type\n";
    let sorted =
        Files::crossing().with("calendar_dates.txt", &format!("{head}W,20240704,2\nW,20240705,1\nX,20240101,1\n"));
    let mixed =
        Files::crossing().with("calendar_dates.txt", &format!("{head}X,20240101,1\nW,20240705,1\nW,20240704,2\n"));
    assert_eq!(sorted.read().unwrap(), mixed.read().unwrap());
    let twice = mixed.appended("calendar_dates.txt", "W,20240704,1\n");
    assert_eq!(read_error(&twice), "calendar_dates.txt, line 5, column date: \"20240704\" is defined more than once");
}
