//! The messages of the development half of the dialogues in the folder `THREADKEEP_DATA`, checked by calls and facts.
//! Operations on the store have tests of their own, and so do model failures and the text that a model gets.

#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

#[path = "dialogues/general_env.rs"]
mod general_env;
#[allow(dead_code, reason = "this test uses only some of the helpers")]
#[path = "dialogues/test_env.rs"]
mod test_env;

use general_env::GeneralEnv;
use serde_json::{Value, json};
use threadkeep_dialogue_sets::{DialogueSet, count_passed, report, run_dialogues};

/// A dialogue whose first message needs a plan of several calls to a tool of the caller: only a language model makes it.
const NEEDS_MODEL: [&str; 1] = ["art-11"];
/// Expectations that the replies and the calls do not show.
const CHECKED_ELSEWHERE: [&str; 7] = [
    "prompt_contains",
    "prompt_excludes",
    "prompt_occurrences",
    "documents_any",
    "dynamic_context",
    "invented",
    "error_reported",
];

#[tokio::test]
async fn the_development_dialogues_pass() {
    let folder = std::env::var("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must be the folder of the data sets; `cargo xtask test --data` sets it");
    let text = std::fs::read_to_string(format!("{folder}/dialogues/art-dev.json")).unwrap();
    let mut set: Value = serde_json::from_str(&text).unwrap();
    let dialogues = set["dialogues"].as_array_mut().unwrap();
    dialogues.retain(|dialogue| !NEEDS_MODEL.contains(&dialogue["id"].as_str().unwrap()));
    for dialogue in dialogues.iter_mut() {
        let turns = dialogue["turns"].as_array_mut().unwrap();
        turns.retain(|turn| turn["user"] != "" && turn.get("llm").is_none());
        for turn in turns {
            let turn = turn.as_object_mut().unwrap();
            // The documents are in the store, so no source of them fails.
            turn.remove("before");
            let expect = turn["expect"].as_object_mut().unwrap();
            expect.retain(|name, _| !CHECKED_ELSEWHERE.contains(&name.as_str()));
            if expect.is_empty() {
                expect.insert("answer_given".to_owned(), json!(true));
            }
        }
    }
    dialogues.retain(|dialogue| !dialogue["turns"].as_array().unwrap().is_empty());
    let results = run_dialogues::<GeneralEnv>(&DialogueSet::parse(&set.to_string())).await;
    let (passed, required) = count_passed(&results);
    assert_eq!((passed, required), (18, 18), "{}", report(&results));
}
