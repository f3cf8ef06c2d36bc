//! The status of lines as notices.

use serde_json::{Value, json};

use crate::env::TestEnv;
use crate::tfl::Fault;

// S0.38
#[tokio::test]
async fn one_request_reads_the_status_of_all_lines() {
    let env = TestEnv::new().await;
    let delays =
        json!([{"statusSeverity": 9, "statusSeverityDescription": "Minor Delays", "reason": "A faulty train."}]);
    let definition = env.agent.assistant().definition().clone();
    let source = definition.notices.expect("the assistant has notices");
    let now = || env.agent.memory().now();
    let before = source.read(now()).await.unwrap();
    assert_eq!(before.keys().cloned().collect::<Vec<_>>(), {
        let mut topics = source.topics();
        topics.sort();
        topics
    });
    assert_eq!(env.tfl.requests().len(), 1, "{:?}", env.tfl.requests());
    assert!(env.tfl.requests()[0].starts_with("/Line/Mode/"), "{:?}", env.tfl.requests());
    env.tfl.world.lock().unwrap().status.insert("circle".to_owned(), delays);
    env.wait_seconds(31);
    let after = source.read(now()).await.unwrap();
    let changed: Vec<&String> = after.keys().filter(|line| before.get(*line) != after.get(*line)).collect();
    assert_eq!(changed, ["circle"]);
    let circle: Value = after["circle"].read().unwrap();
    assert_eq!((&circle["headline"], &circle["is_good"]), (&json!("Minor Delays"), &json!(false)));
    assert_eq!(env.tfl.requests().len(), 2);
    env.tfl.world.lock().unwrap().faults.insert(String::new(), Fault::Status(404));
    env.wait_seconds(31);
    assert_eq!(source.read(now()).await.unwrap_err().code, "tfl_unreachable");
}
