//! The subway assistant: fetching, checking and storing its timetable, and serving it.

use std::io::{Cursor, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc;

use serde_json::Value;

use super::serve::Server;
use super::{Cli, RunOutput, TIMEOUT};

/// Two stations of line 1, and two trips.
const FEED: [(&str, &str); 6] = [
    ("agency.txt", "agency_name,agency_url,agency_timezone\nMTA,http://example.org,America/New_York\n"),
    (
        "stops.txt",
        "stop_id,stop_name,stop_lat,stop_lon,location_type,parent_station\n\
         142,South Ferry,40.70,-74.01,1,\n142N,South Ferry,40.70,-74.01,,142\n\
         139,Rector St,40.71,-74.01,1,\n139N,Rector St,40.71,-74.01,,139\n",
    ),
    ("routes.txt", "route_id,route_short_name,route_type\n1,1,1\n"),
    (
        "calendar.txt",
        "service_id,monday,tuesday,wednesday,thursday,friday,saturday,sunday,start_date,end_date\n\
         Weekday,1,1,1,1,1,0,0,20260101,20260630\n",
    ),
    ("trips.txt", "route_id,trip_id,service_id\n1,morning,Weekday\n1,evening,Weekday\n"),
    (
        "stop_times.txt",
        "trip_id,stop_id,arrival_time,departure_time,stop_sequence\n\
         morning,142N,08:00:00,08:00:00,1\nmorning,139N,08:01:30,08:01:30,2\n\
         evening,142N,18:00:00,18:00:00,1\nevening,139N,18:01:30,18:01:30,2\n",
    ),
];

/// Creates a zip archive of the feed, with different content in one file.
fn zip_with(changed: &str, content: &str) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, usual) in FEED {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(if name == changed { content } else { usual }.as_bytes()).unwrap();
    }
    archive.finish().unwrap().into_inner()
}

fn zip() -> Vec<u8> {
    zip_with("", "")
}

/// Starts a server that answers once, with a body that can be shorter than announced.
fn serve(status: &'static str, length: usize, body: Vec<u8>) -> (String, mpsc::Receiver<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://user:secret@{}/gtfs_subway.zip", listener.local_addr().unwrap());
    let (answered, streams) = mpsc::channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4096];
        let count = stream.read(&mut request).unwrap();
        assert!(request[..count].starts_with(b"GET /gtfs_subway.zip "));
        let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body).unwrap();
        answered.send(stream).unwrap();
    });
    (address, streams)
}

fn fetch(cli: &Cli, arguments: &[&str], address: &str) -> Command {
    let mut command = cli.command(&[&["subway", "fetch"], arguments].concat());
    for proxy in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        command.env_remove(proxy);
    }
    command.env("MTA_GTFS_URL", address).env("THREADKEEP_NOW", "2026-05-04T12:00:00Z");
    command
}

fn run(mut command: Command) -> RunOutput {
    let output: RunOutput = command.output().unwrap().into();
    assert!(!output.to_string().contains("secret"), "{output}");
    output
}

// S2.52
#[test]
fn timetables_are_downloaded_and_stored() {
    let cli = Cli::new();
    let body = zip();
    let (address, _streams) = serve("200 OK", body.len(), body);
    let output = run(fetch(&cli, &["--json"], &address));
    assert_eq!(output.code, Some(0), "{output}");
    let fetched: Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!((&fetched["trips"], &fetched["stations"], &fetched["lines"]), (&2.into(), &2.into(), &1.into()));
    assert_eq!((&fetched["from"], &fetched["to"]), (&"2026-01-01".into(), &"2026-06-30".into()));
    assert_eq!(fetched["is_current"], true);
    let saved = std::fs::read(cli.timetable()).unwrap();
    assert_eq!(fetched["bytes"], saved.len());
    assert!(saved.starts_with(b"TKTT"));
    assert!(!cli.store().exists(), "the command does not create a store");
}

#[test]
fn timetables_load_from_files_and_folders_and_warn_if_outdated() {
    let cli = Cli::new();
    let file = cli.file("gtfs_subway.zip", zip());
    let first = run(fetch(&cli, &[&file], "http://127.0.0.1:9/"));
    let saved = std::fs::read(cli.timetable()).unwrap();
    let summary = "saved the subway timetable: 2 trips on 1 line, 2026-01-01 to 2026-06-30";
    let out = format!("{summary}; {} B in {}\n", saved.len(), cli.timetable().display());
    assert_eq!(first, RunOutput { code: Some(0), out, err: String::new() });
    for (name, content) in FEED {
        cli.file(&format!("feed/{name}"), content);
    }
    let folder = cli.path("feed").display().to_string();
    let second = run(fetch(&cli, &[&folder, "--now", "2027-05-04T12:00:00Z"], "http://127.0.0.1:9/"));
    assert_eq!(second.code, Some(0), "{second}");
    assert!(second.err.contains("the timetable does not cover today"), "{second}");
    assert_eq!(std::fs::read(cli.timetable()).unwrap(), saved);
}

#[test]
fn unusable_feeds_are_rejected_and_the_previous_timetable_is_kept() {
    let cli = Cli::new();
    let file = cli.file("gtfs_subway.zip", zip());
    run(fetch(&cli, &[&file], ""));
    let saved = std::fs::read(cli.timetable()).unwrap();
    let stop_times = FEED[5].1.replacen("08:01:30", "8 o'clock", 1);
    let broken = cli.file("broken.zip", zip_with("stop_times.txt", &stop_times));
    let stops = FEED[1].1.replace("142", "A1000").replace("139", "A1001");
    let elsewhere = FEED[5].1.replace("142N", "A1000N").replace("139N", "A1001N");
    for (name, content) in FEED {
        let content = match name {
            "stops.txt" => &stops,
            "stop_times.txt" => &elsewhere,
            _ => content,
        };
        cli.file(&format!("elsewhere/{name}"), content);
    }
    let elsewhere = cli.path("elsewhere").display().to_string();
    let text = cli.file("text.zip", "<html>");
    let nowhere = cli.path("nowhere.zip").display().to_string();
    for (from, reason) in [
        (broken.as_str(), "the feed is not valid: stop_times.txt, line 3, column arrival_time: \"8 o'clock\" is not a"),
        (
            elsewhere.as_str(),
            "the feed is not the subway's: 0 of its 2 stations are subway stations, and it has 2 trips",
        ),
        (text.as_str(), "the feed is not valid: the feed is not a valid zip archive"),
        (nowhere.as_str(), "nowhere.zip cannot be read or written"),
    ] {
        let output = run(fetch(&cli, &[from], ""));
        assert_eq!(output.code, Some(1), "{output}");
        assert!(output.err.contains(reason), "{output}");
        assert!(output.err.contains("the previous timetable is unchanged"), "{output}");
        assert_eq!(std::fs::read(cli.timetable()).unwrap(), saved);
    }
}

#[test]
fn failed_downloads_exit_with_3() {
    let cli = Cli::new();
    let (address, _streams) = serve("404 Not Found", 0, Vec::new());
    let missing = run(fetch(&cli, &[], &address));
    assert_eq!(missing.code, Some(3), "{missing}");
    assert!(missing.err.contains("the address responded with status 404"), "{missing}");
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let unreachable = run(fetch(&cli, &[], &format!("http://{closed}/")));
    assert_eq!(unreachable.code, Some(3), "{unreachable}");
    assert!(unreachable.err.contains("the feed cannot be reached"), "{unreachable}");
    let cut = zip();
    let (address, streams) = serve("200 OK", cut.len() + 1, cut);
    let cutter = std::thread::spawn(move || drop(streams.recv().unwrap()));
    let cut = run(fetch(&cli, &[], &address));
    cutter.join().unwrap();
    assert_eq!(cut.code, Some(3), "{cut}");
    assert!(!cli.timetable().exists());
}

#[cfg(unix)]
#[test]
fn interrupted_fetches_change_nothing() {
    let cli = Cli::new();
    let file = cli.file("gtfs_subway.zip", zip());
    run(fetch(&cli, &[&file], ""));
    let names = || {
        let entries = std::fs::read_dir(cli.folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let (saved, before) = (std::fs::read(cli.timetable()).unwrap(), names());
    let (address, streams) = serve("200 OK", 1_000_000, zip());
    let mut child = fetch(&cli, &[], &address).spawn().unwrap();
    // The answer has started. The rest of it never arrives.
    let _stream = streams.recv_timeout(super::TIMEOUT).unwrap();
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!((std::fs::read(cli.timetable()).unwrap(), names()), (saved, before));
}

// S2.47
#[test]
fn subway_urls_are_listed() {
    let cli = Cli::new();
    let mut command = cli.command(&["config", "show", "--json"]);
    // A value that occurs in no name or description of a setting.
    command.env("MTA_API_KEY", "tk-5417").env_remove("MTA_TIMETABLE");
    let output: RunOutput = command.output().unwrap().into();
    assert!(!output.to_string().contains("tk-5417"), "{output}");
    let shown: Value = serde_json::from_str(&output.out).unwrap();
    let value_of = |name: &str| {
        let setting = shown["settings"].as_array().unwrap().iter().find(|setting| setting["name"] == name);
        setting.unwrap()["value"].as_str().unwrap().to_owned()
    };
    assert_eq!(value_of("MTA_FEEDS"), "https://api-endpoint.mta.info/Dataservice/mtagtfsfeeds/");
    assert_eq!(value_of("MTA_GTFS_URL"), "https://rrgtfsfeeds.s3.amazonaws.com/gtfs_subway.zip");
    assert_eq!(value_of("MTA_API_KEY"), "(set)");
    assert!(value_of("MTA_TIMETABLE").ends_with("subway.timetable"), "{}", value_of("MTA_TIMETABLE"));
}

/// Creates a command line whose live feeds are unreachable.
fn without_network() -> Cli {
    let cli = Cli::new();
    cli.file("config.yaml", "MTA_FEEDS: http://127.0.0.1:9/\n");
    cli
}

// S2.01, S2.49, S2.52
#[test]
fn the_subway_assistant_works_without_key_and_network() {
    let cli = without_network();
    let turn = cli.json(&["ask", "subway", "next 6 at astor", "--thread", "ride"]);
    assert_eq!(
        (&turn["agent"], &turn["model"], &turn["status"]),
        (&"subway".into(), &"offline".into(), &"completed".into())
    );
    assert_eq!(turn["tool_calls"][0]["name"], "get_train_arrivals");
    assert_eq!(turn["tool_calls"][0]["arguments"], serde_json::json!({"station_name": "Astor Pl", "line": "6"}));
    assert!(turn["reply"].as_str().unwrap().contains("Live times unavailable"), "{turn}");
    let graph = cli.json(&["graph", "subway"]);
    assert_eq!(graph["tools"].as_array().unwrap().len(), 11);
    assert!(graph["mermaid"].as_str().unwrap().contains("tools"), "{graph}");
}

// S2.02, S2.48, S2.49
#[test]
fn subway_chats_can_be_cleared() {
    let cli = without_network();
    let input = b"my home station is jay st\nhow do i get from penn to astor place\n/clear\nand back?\nwhat's my home station\n/quit\nunheard\n";
    let output = cli.run_with_input(&["chat", "subway"], input);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.err.starts_with("subway \u{b7} the offline model"), "{output}");
    for reply in [
        "Saved your home station: Jay St-MetroTech",
        "Astor Pl: about ",
        "I did not understand that.",
        "Your home station: Jay St-MetroTech",
    ] {
        assert!(output.out.contains(reply), "{reply}: {output}");
    }
    assert!(!output.out.contains("unheard") && output.err.contains(" chat subway --thread "), "{output}");
}

#[test]
fn damaged_timetables_are_reported_with_a_hint() {
    let cli = without_network();
    std::fs::write(cli.timetable(), "no timetable").unwrap();
    let output = cli.run(&["ask", "subway", "next 6 at astor"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.err.contains("subway.timetable") && output.err.contains("subway fetch"), "{output}");
}

/// A server reloads timetables without a restart, and keeps the last valid one when the next is damaged.
#[test]
fn servers_reload_a_new_timetable() {
    let cli = Cli::new();
    let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "offline", "--assistant", "subway"]);
    // The time is before the first train of a Monday, and there are no live times.
    command.env("THREADKEEP_NOW", "2026-05-04T11:00:00Z").env("MTA_FEEDS", "http://127.0.0.1:9");
    let server = Server::start_with(command);
    let answer = || {
        let (status, body) = server.ask("GET /route?from=South+Ferry&to=Rector+St+on+the+1", "").unwrap();
        assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
        let route: Value = serde_json::from_str(&body).unwrap();
        route["text"].as_str().unwrap().to_owned()
    };
    let until = |is_expected: &dyn Fn(&String) -> bool| {
        let deadline = std::time::Instant::now() + TIMEOUT;
        loop {
            let found = answer();
            if is_expected(&found) {
                return found;
            }
            assert!(std::time::Instant::now() < deadline, "{found:?}");
            std::thread::yield_now();
        }
    };
    let without = answer();
    let first = cli.file("first.zip", zip());
    run(fetch(&cli, &[&first], ""));
    let with_first = until(&|found| *found != without);
    let slower = cli.file("second.zip", zip_with("stop_times.txt", &FEED[5].1.replace(":01:30", ":09:00")));
    run(fetch(&cli, &[&slower], ""));
    let with_second = until(&|found| *found != with_first);
    assert!(without.contains("2 min per stop"), "{without}");
    assert!(
        [&with_first, &with_second].iter().all(|answer| answer.contains("from the timetable")),
        "{with_first} {with_second}"
    );
    cli.file("subway.timetable", "no timetable");
    server.wait_for_log("still serving the previous version");
    assert_eq!(answer(), with_second);
}

/// Only lookups by callers who may write count as trips of their user.
#[test]
fn a_route_with_a_read_key_is_no_trip_of_the_user() {
    let cli = without_network();
    let key = |name: &str, role: &str| {
        let created = cli.json(&["keys", "create", name, "--for-user", "ana", "--role", role]);
        format!("authorization: Bearer {}\r\n", created["key"].as_str().unwrap())
    };
    let (read, write) = (key("reader", "read"), key("writer", "write"));
    let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "offline", "--assistant", "subway"]);
    command.env("MTA_FEEDS", "http://127.0.0.1:9");
    let server = Server::start_with(command);
    let look_up = |key: &str| {
        let answer = server.ask_with("GET /route?from=South+Ferry&to=Rector+St+on+the+1", key, "");
        assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    };
    let trips = || {
        let headers = format!("{write}content-type: application/json\r\n");
        server.ask_with("POST /chat", &headers, r#"{ "message": "What are my usual trips?" }"#)
    };
    (0..3).for_each(|_| look_up(&read));
    let before = trips();
    assert!(before.starts_with("HTTP/1.1 200 OK") && !before.contains("South Ferry"), "{before}");
    (0..3).for_each(|_| look_up(&write));
    let after = trips();
    assert!(after.contains("South Ferry"), "{after}");
}

#[test]
fn config_check_reports_the_state_of_the_timetable() {
    let cli = Cli::new();
    let check = || cli.run(&["config", "check"]);
    let without = check();
    // Other assistants report their state too.
    let line = without.err.lines().find(|line| line.starts_with("subway:"));
    assert_eq!((without.code, line), (Some(0), Some("subway: no timetable: estimating two minutes per stop")));
    let file = cli.file("gtfs_subway.zip", zip());
    run(fetch(&cli, &[&file], ""));
    let state = serde_json::json!({ "name": "subway", "state": "timetable from 2026-01-01 to 2026-06-30" });
    let states = cli.json(&["config", "check"])["assistants"].clone();
    assert!(states.as_array().unwrap().contains(&state), "{states}");
    std::fs::write(cli.timetable(), "no timetable").unwrap();
    let damaged = check();
    assert_eq!(damaged.code, Some(1), "{damaged}");
    assert!(damaged.out.contains("subway.timetable cannot be used"), "{damaged}");
}
