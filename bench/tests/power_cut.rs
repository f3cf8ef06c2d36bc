//! Reconstructs files as a power cut could have left them, and checks that no acknowledged turn is lost.

use std::process::Command;

use serde_json::Value;

/// Whether strace is missing. If it is, the test summary lists these tests as skipped.
fn strace_is_missing() -> bool {
    let skipped = std::env::var("THREADKEEP_MISSING_PROGRAMS").unwrap_or_default();
    skipped.split(',').any(|program| program == "strace")
}

/// Runs a small simulation. Returns whether it passed, and its report.
fn power_cut(extra_arguments: &[&str]) -> (bool, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadkeep-bench"));
    command.args(["power-cut", "--runs", "1", "--writers", "2", "--turns", "20", "--json"]).args(extra_arguments);
    let output = command.output().expect("starting threadkeep-bench");
    let errors = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    (output.status.success(), report)
}

#[test]
fn acknowledged_turns_survive_power_cuts() {
    if strace_is_missing() {
        println!("skipped: strace is not installed");
        return;
    }
    let (has_passed, report) = power_cut(&[]);
    assert!(has_passed, "{report}");
    for failure in ["lost", "doubled", "findings"] {
        assert_eq!(report[failure], 0, "{report}");
    }
    assert_eq!(report["acknowledged"], 40);
    // At most two turns, one from each writer, share a sync.
    let (syncs, images) = (report["syncs"].as_u64().unwrap(), report["images"].as_u64().unwrap());
    assert!(syncs >= 20 && images == syncs * 4, "{report}");
}

#[test]
fn losses_of_unsynced_turns_are_detected() {
    if strace_is_missing() {
        println!("skipped: strace is not installed");
        return;
    }
    let (has_passed, report) = power_cut(&["--without-sync"]);
    assert!(!has_passed, "{report}");
    assert!(report["lost"].as_u64().unwrap() > 0, "{report}");
    assert_eq!((&report["doubled"], &report["findings"]), (&Value::from(0), &Value::from(0)), "{report}");
}
