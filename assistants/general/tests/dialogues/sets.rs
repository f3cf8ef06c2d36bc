//! Sets of dialogues. Their authors did not know which phrases the assistant recognises, and each set was run once
//! before its failures were inspected.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use threadkeep::{Scope, ThreadId, Timestamp};
use threadkeep_dialogue_sets::{
    Dialogue, DialogueEnv, DialogueSet, ObservedCall, ObservedTurn, count_passed, report, run_dialogues,
};

use super::test_env::TestEnv;

/// A set and the minimum share of turns that must pass, in percent. Since the set's first run, the assistant's phrases
/// have been tuned against it: it detects regressions, but no longer shows how the assistant handles unseen messages.
struct Set {
    text: &'static str,
    min_percent: usize,
}

/// Runs a set.
async fn check(set: &Set) {
    let results = run_dialogues::<GeneralEnv>(&DialogueSet::parse(set.text)).await;
    let (passed, required) = count_passed(&results);
    assert!(required > 250 && passed * 100 >= required * set.min_percent, "{}", report(&results));
}

/// 508 of 550 turns passed in the first run.
#[tokio::test]
async fn dialogues_of_the_first_set_pass() {
    check(&Set { text: include_str!("sets/set-1.json"), min_percent: 97 }).await;
}

/// 328 of 410 turns passed in the first run; 18 of the failed turns asked for calculations, which the assistant did not
/// support.
#[tokio::test]
async fn dialogues_of_the_second_set_pass() {
    check(&Set { text: include_str!("sets/set-2.json"), min_percent: 95 }).await;
}

/// 467 of 508 turns passed in the first run.
#[tokio::test]
async fn dialogues_of_the_third_set_pass() {
    check(&Set { text: include_str!("sets/set-3.json"), min_percent: 95 }).await;
}

/// 570 of 625 turns passed in the first run.
#[tokio::test]
async fn dialogues_of_the_fourth_set_pass() {
    check(&Set { text: include_str!("sets/set-4.json"), min_percent: 93 }).await;
}

/// 234 of 287 turns passed in the first run that loaded the set's documents.
#[tokio::test]
async fn dialogues_of_the_fifth_set_pass() {
    check(&Set { text: include_str!("sets/set-5.json"), min_percent: 97 }).await;
}

/// 249 of 274 turns passed in the first run. Four turns expect the reply to state the time at which the dialogue
/// started, but the clock has advanced by then.
#[tokio::test]
async fn dialogues_of_the_sixth_set_pass() {
    check(&Set { text: include_str!("sets/set-6.json"), min_percent: 95 }).await;
}

/// 258 of 300 turns passed in the first run. Two turns expect the reply to state the time at which the dialogue
/// started, but the clock has advanced by then.
#[tokio::test]
async fn dialogues_of_the_seventh_set_pass() {
    check(&Set { text: include_str!("sets/set-7.json"), min_percent: 94 }).await;
}

/// 267 of 300 turns passed in the first run.
#[tokio::test]
async fn dialogues_of_the_eighth_set_pass() {
    check(&Set { text: include_str!("sets/set-8.json"), min_percent: 93 }).await;
}

/// 268 of 290 turns passed in the first run.
#[tokio::test]
async fn dialogues_of_the_ninth_set_pass() {
    check(&Set { text: include_str!("sets/set-9.json"), min_percent: 91 }).await;
}

/// 255 of 270 turns passed in the first run.
#[tokio::test]
async fn dialogues_of_the_tenth_set_pass() {
    check(&Set { text: include_str!("sets/set-10.json"), min_percent: 91 }).await;
}

/// Prints the report for the set in `THREADKEEP_DIALOGUES`, to measure a new set.
#[tokio::test]
async fn dialogues_of_a_given_set_are_reported() {
    let Some(path) = std::env::var_os("THREADKEEP_DIALOGUES") else { return };
    let set = DialogueSet::read(Path::new(&path)).expect("the set exists");
    println!("{}", report(&run_dialogues::<GeneralEnv>(&set).await));
}

/// The environment of a dialogue.
struct GeneralEnv {
    env: Option<TestEnv>,
    clock: Timestamp,
    threads: BTreeMap<(String, String), ThreadId>,
}

impl GeneralEnv {
    fn env(&self) -> &TestEnv {
        self.env.as_ref().expect("the environment is only absent during a restart")
    }
}

impl DialogueEnv for GeneralEnv {
    async fn start(dialogue: &Dialogue) -> Self {
        let clock = dialogue.clock.as_deref().unwrap_or("2026-05-04T09:00:00Z");
        let env = TestEnv::new().await.at(clock);
        let scope = Scope::user("acme", "ana").unwrap();
        for document in dialogue.world.get("documents").and_then(Value::as_array).into_iter().flatten() {
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            let passages = document["passages"].as_array().expect("passages");
            let passages: Vec<(String, String)> =
                passages.iter().map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
            let passages: Vec<(&str, &str)> = passages.iter().map(|(at, text)| (at.as_str(), text.as_str())).collect();
            env.add_document(&scope, "documents", &text(&document["title"]), &passages).await;
        }
        // Another notation: {"knowledge": {"lease": [{"id": "ls-1", "text": "The rent is …"}]}}.
        for (title, passages) in dialogue.world.get("knowledge").and_then(Value::as_object).into_iter().flatten() {
            let text = |passage: &Value, name: &str| passage[name].as_str().expect("a text").to_owned();
            let passages = passages.as_array().expect("passages").iter();
            let passages: Vec<(String, String)> =
                passages.map(|passage| (text(passage, "id"), text(passage, "text"))).collect();
            let passages: Vec<(&str, &str)> = passages.iter().map(|(at, text)| (at.as_str(), text.as_str())).collect();
            env.add_document(&scope, "documents", title, &passages).await;
        }
        Self { env: Some(env), clock: clock.parse().unwrap(), threads: BTreeMap::new() }
    }

    async fn apply(&mut self, event: &str, value: &Value) {
        match event {
            "restart" => {
                let env = self.env.take().expect("the environment is only absent during a restart");
                self.env = Some(env.restarted().await);
            }
            "advance_clock_s" => {
                let millis = self.clock.as_millis() + value.as_i64().unwrap_or(0) * 1_000;
                self.clock = Timestamp::from_millis(millis).unwrap();
            }
            other => panic!("unknown event {other}"),
        }
        self.env().set_time(&self.clock.to_string());
    }

    async fn send(&mut self, user: &str, conversation: &str, text: &str) -> ObservedTurn {
        // Time passes with each message, so that no two messages have equal times.
        self.apply("advance_clock_s", &Value::from(20)).await;
        let key = (user.to_owned(), conversation.to_owned());
        let conversation = match self.threads.get(&key) {
            Some(thread) => self.env().existing_conversation(user, *thread),
            None => self.env().conversation(user).await,
        };
        let (thread, turn) = (conversation.thread, conversation.turn(text).await);
        self.threads.insert(key, thread);
        let calls = turn
            .tool_calls
            .iter()
            .map(|call| ObservedCall { name: call.name.clone(), arguments: call.arguments.read().unwrap_or_default() });
        let is_refusal = REFUSALS.iter().any(|refusal| turn.reply.contains(refusal));
        ObservedTurn { is_refusal, calls: calls.collect(), reply: turn.reply }
    }

    fn are_equal(_: &str, expected: &Value, actual: &Value) -> bool {
        let folded = |value: &Value| match value {
            Value::String(text) => text.to_lowercase().replace("favorite", "favourite").replace("color", "colour"),
            other => other.to_string(),
        };
        folded(expected) == folded(actual)
    }
}

/// An answer that declines a request or reports that nothing was found contains one of these texts.
const REFUSALS: [&str; 4] = ["I cannot do that", "I found nothing", "No puedo hacer eso", "No encontré nada"];
