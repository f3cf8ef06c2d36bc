//! Crashes of runs at every point, and concurrent decisions on approvals.

use std::process::Command;

use serde_json::Value;
use threadkeep_postgres_server::{Pooler, Server};

fn report(args: &[&str]) -> Value {
    let output =
        Command::new(env!("CARGO_BIN_EXE_threadkeep-bench")).args(args).output().expect("starting threadkeep-bench");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {errors}"))
}

#[test]
fn runs_resume_correctly_after_a_crash_at_any_point() {
    assert_resumed_correctly(&report(&["agent", "crash", "--json"]));
}

#[test]
fn runs_resume_correctly_after_a_crash_at_any_point_on_postgres() {
    let Some(server) = Server::shared() else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let database = runtime.block_on(server.create_database());
    let pooler = runtime.block_on(Pooler::start(server));
    let mut urls = vec![database.url()];
    urls.extend(
        pooler.as_ref().map(|pooler| format!("{}?prepare=off&direct={}", pooler.url(database.name()), database.url())),
    );
    for url in urls {
        assert_resumed_correctly(&report(&["agent", "crash", "--json", "--store", &url]));
    }
}

#[test]
fn runs_resume_correctly_after_a_crash_at_any_point_on_redis() {
    let Some(server) = threadkeep_redis_server::Server::start(&[]) else { return };
    let url = format!("redis://{}", server.address());
    assert_resumed_correctly(&report(&["agent", "crash", "--json", "--store", &url]));
}

#[test]
fn runs_resume_correctly_after_a_crash_at_any_point_on_a_redis_cluster() {
    let Some(cluster) = threadkeep_redis_server::Cluster::shared() else { return };
    let url = format!("redis-cluster://{}", cluster.addresses());
    assert_resumed_correctly(&report(&["agent", "crash", "--json", "--store", &url]));
}

fn assert_resumed_correctly(report: &Value) {
    let count = |name: &str| report[name].as_u64().expect("a number");
    assert!(count("points") >= 30, "{report}");
    assert_eq!(count("same") + count("unknown"), count("points"), "{report}");
    // Otherwise the process never crashed at a relevant point.
    assert!(count("unknown") > 0 && count("repeated") > 0 && count("same") > count("unknown"), "{report}");
}

// S4.47, S4.50
#[test]
fn concurrent_decisions_use_an_approval_once() {
    let report = report(&["agent", "race", "--approvals", "40", "--json"]);
    let count = |name: &str| report[name].as_u64().expect("a number");
    assert_eq!(count("done") + count("denied"), 40, "{report}");
    assert_eq!(count("late"), 40 * 7, "{report}");
    assert!(count("done") > 0 && count("denied") > 0 && count("winners") > 1, "{report}");
}
