//! The development half of the dialogues, checked by requests, effects and facts, never by wording.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod world;

use serde_json::Value;
use threadkeep_dialogue_sets::{count_passed, report};
use world::script::run_dialogues;

#[tokio::test]
async fn the_development_dialogues_pass() {
    let folder = std::env::var("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must be the folder of the data sets; `cargo xtask test --data` sets it");
    let text = std::fs::read_to_string(format!("{folder}/dialogues/k8s-dev.json")).unwrap();
    let set: Value = serde_json::from_str(&text).unwrap();
    let results = run_dialogues(&set).await;
    let (passed, required) = count_passed(&results);
    assert_eq!(passed, required, "{}", report(&results));
}
