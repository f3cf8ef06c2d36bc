//! Dialogues in files beside the repository: the sets with which the assistant is measured.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use threadkeep_tesis::RunResult;

use super::test_env::{CountingEmbedder, TestEnv};

/// Plays a set and returns the number of turns, and a description of each turn that does not pass.
pub(crate) async fn play(set: &Value) -> (usize, Vec<String>) {
    let (mut count, mut wrong) = (0, Vec::new());
    for dialogue in set["dialogues"].as_array().unwrap() {
        let embedder = Some(Arc::new(CountingEmbedder::default()));
        let mut env = TestEnv::with(set["corpus"].as_array().unwrap(), None, embedder).await;
        let (mut conversation, mut cited, mut previous) = (None, BTreeSet::new(), Vec::new());
        for (number, turn) in dialogue["turns"].as_array().unwrap().iter().enumerate() {
            let Some(text) = turn["user"].as_str().filter(|text| !text.is_empty()) else { continue };
            if turn["before"].as_array().is_some_and(|before| before.iter().any(|event| event.get("restart").is_some()))
            {
                env = env.restarted().await;
            }
            let is_legacy = turn["args"].get("user_id").is_some_and(Value::is_null);
            let user = (!is_legacy).then_some("ana");
            let result = env.run(user, conversation.as_deref().filter(|_| !is_legacy), text).await;
            count += 1;
            let mismatches = mismatches(&turn["expect"], &result, &cited, &previous, set);
            if !mismatches.is_empty() && turn["level"] != "stretch" {
                let name = dialogue["id"].as_str().unwrap();
                let (mismatches, reply) = (mismatches.join("; "), result.final_response.replace('\n', " / "));
                wrong.push(format!(
                    "{name} turn {}: {text}\n  {mismatches}\n  {:?} {reply}",
                    number + 1,
                    result.sources_used
                ));
            }
            conversation = result.conversation_id;
            cited.extend(result.sources_used.iter().copied());
            previous = result.sources_used;
        }
    }
    (count, wrong)
}

fn mismatches(expect: &Value, result: &RunResult, cited: &BTreeSet<i64>, previous: &[i64], set: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            wrong.push(what);
        }
    };
    let ids = |key: &str| expect[key].as_array().map(|ids| ids.iter().filter_map(Value::as_i64).collect::<Vec<_>>());
    let used = &result.sources_used;
    let is_ambiguous = expect["ambiguous"] == true;
    if let Some(reused) = expect["reused_sources"].as_bool().filter(|_| !is_ambiguous) {
        check(result.metadata.reused_sources == reused, format!("reused_sources: {}", !reused));
    }
    if let Some(calls) = expect["embedding_calls"].as_u64().filter(|_| !is_ambiguous) {
        check(result.embedding_calls == calls, format!("embedding_calls: {}", result.embedding_calls));
    }
    if let Some(calls) = expect["embedding_calls_min"].as_u64().filter(|_| !is_ambiguous) {
        check(result.embedding_calls >= calls, format!("embedding_calls: {}", result.embedding_calls));
    }
    if let Some(any) = ids("sources_any") {
        check(any.iter().any(|id| used.contains(id)), format!("none of {any:?}"));
    }
    if let Some(none) = ids("sources_none") {
        check(!none.iter().any(|id| used.contains(id)), "a source that must not be there".to_owned());
    }
    if let Some(exactly) = ids("sources_exactly") {
        check(exactly == *used, format!("not exactly {exactly:?}"));
    }
    if expect["no_repeat_of_discussed"] == true {
        check(!used.iter().any(|id| cited.contains(id)), "repeats a source".to_owned());
    }
    if expect["sources_subset_of_previous"] == true {
        check(used.iter().all(|id| previous.contains(id)), "a source that was not there before".to_owned());
    }
    if let Some(warning) = expect["warning"].as_str() {
        check(result.warning.as_deref() == Some(warning), format!("warning: {:?}", result.warning));
    }
    if expect.get("conversation_id").is_some_and(Value::is_null) {
        check(result.conversation_id.is_none(), "has a conversation".to_owned());
    }
    if expect["same_conversation"] == true {
        check(result.metadata.total_messages > 2, "another conversation".to_owned());
    }
    let known: Vec<i64> =
        set["corpus"].as_array().unwrap().iter().filter_map(|tesis| tesis["id_tesis"].as_i64()).collect();
    check(used.iter().all(|id| known.contains(id)), "invents a source".to_owned());
    let facts = expect["facts"].as_array().into_iter().flatten();
    let empty = expect["facts_if_empty"].as_array().into_iter().flatten().filter(|_| used.is_empty());
    for fact in facts.chain(empty) {
        let any: Vec<&str> = fact["any"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        let reply = result.final_response.to_lowercase();
        check(any.iter().any(|phrase| reply.contains(&phrase.to_lowercase())), format!("lacks {any:?}"));
    }
    wrong
}

/// The set in `THREADKEEP_DIALOGUES`, for measuring a new one: prints its report.
#[tokio::test]
async fn dialogues_of_a_given_set_are_reported() {
    let Some(path) = std::env::var_os("THREADKEEP_DIALOGUES") else { return };
    let set: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let (count, wrong) = play(&set).await;
    println!("{} of {count} turns pass\n{}", count - wrong.len(), wrong.join("\n"));
}
