//! The workloads on Redis, with few repetitions. Their results are not checked.

use std::process::Command;

use serde_json::Value;

#[test]
fn workloads_on_redis_end_with_a_line_of_json() {
    if threadkeep_redis_server::is_left_out("redis") {
        return;
    }
    let few = ["--trials", "1", "--seconds", "1", "--messages", "1000", "--threads", "64", "--operations", "128"];
    let output = Command::new(env!("CARGO_BIN_EXE_threadkeep-bench")).arg("redis").args(few).output();
    let output = output.expect("starting threadkeep-bench");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    let report: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    assert_eq!(report["workloads"].as_array().map(Vec::len), Some(7), "{report}");
    for name in ["turns_per_second", "p99_ms"] {
        assert!(report["events"][name].is_number(), "{report}");
    }
    assert!(report["size"]["memory_bytes_per_message"].is_number(), "{report}");
    for name in ["many_tenants", "one_tenant"] {
        assert!(report["scaling"][name]["scaling"].is_number(), "{report}");
    }
}
