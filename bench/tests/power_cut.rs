//! Rebuilds files as a power cut could leave them, and looks for what had been acknowledged.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test says where it stopped, and what it left out")]

use std::process::Command;

use serde_json::Value;

/// Watches a small run and gives the report; `None` where there is nothing to watch with.
fn cut(more: &[&str]) -> Option<(bool, Value)> {
    // Set where the program could not be installed: then the run's summary names this test as left out.
    let left_out = std::env::var("THREADKEEP_LEFT_OUT").unwrap_or_default();
    if left_out.split(',').any(|program| program == "strace") {
        println!("left out: there is no strace to watch the writes and syncs of a run");
        return None;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_threadkeep-bench"))
        .args(["power-cut", "--runs", "1", "--writers", "2", "--turns", "20", "--json"])
        .args(more)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    Some((output.status.success(), report))
}

#[test]
fn nothing_acknowledged_is_lost_when_the_power_is_cut() {
    let Some((has_passed, report)) = cut(&[]) else { return };
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
    let Some((has_passed, report)) = cut(&["--without-sync"]) else { return };
    assert!(!has_passed, "{report}");
    assert!(report["lost"].as_u64().unwrap() > 0, "{report}");
    assert_eq!((&report["doubled"], &report["findings"]), (&Value::from(0), &Value::from(0)), "{report}");
}
