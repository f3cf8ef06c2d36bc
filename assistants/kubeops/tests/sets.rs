//! Sets of dialogues: written without sight of the code, and run once before anyone read their failures.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod world;

use serde_json::Value;
use threadkeep_dialogue_sets::{count_passed, report};
use world::script::play;

/// The set in `THREADKEEP_DIALOGUES`, for measuring a new one: prints its report.
#[tokio::test]
async fn dialogues_of_a_given_set_are_reported() {
    let Some(path) = std::env::var_os("THREADKEEP_DIALOGUES") else { return };
    let set: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let results = play(&set).await;
    let all = results.iter().filter(|result| result.mismatches.is_empty()).count();
    println!("{all} of {} turns with those that stretch; required: {:?}", results.len(), count_passed(&results));
    println!("{}", report(&results));
}
