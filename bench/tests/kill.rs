//! Kills a process with writers and checks that no acknowledged turn is lost.

use std::process::Command;

use serde_json::Value;

#[test]
fn acknowledged_turns_survive_process_kills() {
    let output = Command::new(env!("CARGO_BIN_EXE_threadkeep-bench"))
        .args(["kill", "--times", "20", "--writers", "8", "--json"])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"));
    assert!(output.status.success(), "{report}: {errors}");
    for failure in ["lost", "doubled", "out_of_order", "findings"] {
        assert_eq!(report[failure], 0, "{report}");
    }
    assert_eq!(report["kills"], 20);
    // Otherwise no writer was active when the process was killed.
    assert!(report["acknowledged"].as_u64().unwrap() > 20 && report["unknown"].as_u64().unwrap() > 0, "{report}");
}
