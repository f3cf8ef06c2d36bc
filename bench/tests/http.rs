//! Small runs of the HTTP benchmark, which check every response, but not the durations.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Returns the path of the server program. Builds the program if it is missing, as it is when only these tests run.
fn server() -> PathBuf {
    let binary = Path::new(env!("CARGO_BIN_EXE_threadkeep-bench")).with_file_name("threadkeep");
    if !binary.is_file() {
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--locked", "-p", "threadkeep-cli"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().expect("starting cargo").success());
    }
    binary
}

fn measure(more: &[&str]) -> Vec<Value> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadkeep-bench"));
    command
        .args(["http", "--json", "--trials", "1", "--seconds", "1", "--busy-disk"])
        .arg("--binary")
        .arg(server())
        .args(more);
    let output = command.output().expect("starting threadkeep-bench");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

fn assert_has_figures(row: &Value, has_floor: bool) {
    assert!(row["server"]["median"].is_number() && row["goal"].is_string(), "{row}");
    let ratio = row["ratio"]["median"].as_f64();
    assert_eq!(ratio.is_some_and(|ratio| ratio > 0.0), has_floor, "{row}");
}

#[test]
fn reads_turns_and_load_have_correct_responses() {
    let rows = measure(&["--only", "reads", "--only", "turns", "--only", "load", "--minutes", "0.02"]);
    let names: Vec<_> = rows.iter().map(|row| row["workload"].as_str().unwrap()).collect();
    let expected = [
        "16 messages, uncached",
        "16 messages, cached",
        "a context of 16 messages, uncached",
        "a context of 16 messages, cached",
        "turns over 32 connections",
        "memory growth in 0.02 min of load",
    ];
    assert_eq!(names, expected);
    rows.iter().enumerate().for_each(|(index, row)| assert_has_figures(row, index < 5));
}

#[test]
fn subscribers_receive_every_event_and_the_server_is_ready() {
    let rows = measure(&[
        "--only",
        "start",
        "--only",
        "sockets",
        "--only",
        "events",
        "--sockets",
        "60",
        "--subscribers",
        "20",
        "--events",
        "5",
    ]);
    assert_eq!(rows.len(), 7);
    rows.iter().for_each(|row| assert_has_figures(row, false));
    let notes: Vec<_> = rows.iter().filter_map(|row| row["notes"][0].as_str()).collect();
    // 20 subscribers receive 5 events each.
    assert_eq!(notes.iter().filter(|note| note.ends_with("events: 100")).count(), 2, "{notes:?}");
}
