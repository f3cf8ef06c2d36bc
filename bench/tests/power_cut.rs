//! Rebuilds files as a power cut could leave them, and looks for what had been acknowledged.

use std::process::Command;

use serde_json::Value;

/// Whether there is nothing to watch a run with: then the summary of all tests names these as left out.
fn is_left_out() -> bool {
    let left_out = std::env::var("THREADKEEP_LEFT_OUT").unwrap_or_default();
    left_out.split(',').any(|program| program == "strace")
}

/// Watches a small run; says whether it passed, and gives the report.
fn cut(more: &[&str]) -> (bool, Value) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_threadkeep-bench"));
    command.args(["power-cut", "--runs", "1", "--writers", "2", "--turns", "20", "--json"]).args(more);
    let output = command.output().expect("cargo built the program");
    let errors = String::from_utf8_lossy(&output.stderr);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    (output.status.success(), report)
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_is_cut() {
    if is_left_out() {
        println!("left out: there is no strace to watch a run with");
        return;
    }
    let (has_passed, report) = cut(&[]);
    assert!(has_passed, "{report}");
    for wrong in ["lost", "doubled", "findings"] {
        assert_eq!(report[wrong], 0, "{report}");
    }
    assert_eq!(report["acknowledged"], 40);
    // Two writers share a sync at best.
    let (syncs, images) = (report["syncs"].as_u64().unwrap(), report["images"].as_u64().unwrap());
    assert!(syncs >= 20 && images == syncs * 4, "{report}");
}

#[test]
fn what_is_acknowledged_before_its_sync_is_seen_to_be_lost() {
    if is_left_out() {
        println!("left out: there is no strace to watch a run with");
        return;
    }
    let (has_passed, report) = cut(&["--without-sync"]);
    assert!(!has_passed, "{report}");
    assert!(report["lost"].as_u64().unwrap() > 0, "{report}");
    assert_eq!((&report["doubled"], &report["findings"]), (&Value::from(0), &Value::from(0)), "{report}");
}
