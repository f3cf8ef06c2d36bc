//! Sets of dialogues that were written without seeing the example phrases, and run once before anyone read their failures.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use threadkeep::ThreadId;
use threadkeep_dialogue_sets::{
    Dialogue, DialogueEnv, DialogueSet, ObservedCall, ObservedTurn, TurnResult, count_passed, report, run_dialogues,
};
use threadkeep_transit::Resolution;
use threadkeep_underground::{APOLOGY, LINES, REFUSAL, find_line, names};

use crate::env::TestEnv;
use crate::tfl::{FakeTfl, Fault};

/// 149 of 198 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_first_set_pass() {
    check(include_str!("sets/set-1.json"), 88).await;
}

/// 231 of 283 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_second_set_pass() {
    check(include_str!("sets/set-2.json"), 81).await;
}

/// 233 of 290 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_third_set_pass() {
    check(include_str!("sets/set-3.json"), 85).await;
}

/// 174 of 260 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_fourth_set_pass() {
    check(include_str!("sets/set-4.json"), 74).await;
}

/// 207 of 268 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_fifth_set_pass() {
    check(include_str!("sets/set-5.json"), 76).await;
}

/// 213 of 279 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_sixth_set_pass() {
    check(include_str!("sets/set-6.json"), 75).await;
}

/// 155 of 256 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_seventh_set_pass() {
    check(include_str!("sets/set-7.json"), 58).await;
}

/// 135 of 210 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_eighth_set_pass() {
    check(include_str!("sets/set-8.json"), 61).await;
}

/// 189 of 249 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_ninth_set_pass() {
    check(include_str!("sets/set-9.json"), 73).await;
}

/// 140 of 230 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_tenth_set_pass() {
    check(include_str!("sets/set-10.json"), 83).await;
}

/// 168 of 239 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_eleventh_set_pass() {
    check(include_str!("sets/set-11.json"), 85).await;
}

/// 156 of 210 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_twelfth_set_pass() {
    check(include_str!("sets/set-12.json"), 71).await;
}

/// 159 of 199 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_thirteenth_set_pass() {
    check(include_str!("sets/set-13.json"), 88).await;
}

/// 152 of 191 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_fourteenth_set_pass() {
    check(include_str!("sets/set-14.json"), 96).await;
}

/// 161 of 191 turns passed at the first run, and 165 after work that did not read its failures.
#[tokio::test]
async fn dialogues_of_the_fifteenth_set_pass() {
    check(include_str!("sets/set-15.json"), 84).await;
}

/// 143 of 192 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_sixteenth_set_pass() {
    check(include_str!("sets/set-16.json"), 80).await;
}

/// 143 of 181 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_seventeenth_set_pass() {
    check(include_str!("sets/set-17.json"), 83).await;
}

/// 168 of 196 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_eighteenth_set_pass() {
    check(include_str!("sets/set-18.json"), 95).await;
}

/// Runs a set. At least `least_percent` percent of its turns must pass, which catches changes that make the assistant worse.
async fn check(set: &str, least_percent: usize) {
    let results = results_of(DialogueSet::parse(set)).await;
    let (passed, required) = count_passed(&results);
    assert!(required > 150 && passed * 100 >= required * least_percent, "{}", report(&results));
}

/// Prints the report of the set in the file `THREADKEEP_DIALOGUES`, to measure a new set.
#[tokio::test]
async fn dialogues_of_a_given_set_are_reported() {
    let Some(path) = std::env::var_os("THREADKEEP_DIALOGUES") else { return };
    println!("{}", report(&results_of(DialogueSet::read(Path::new(&path)).expect("the set exists")).await));
}

async fn results_of(mut set: DialogueSet) -> Vec<TurnResult> {
    for turn in set.dialogues.iter_mut().flat_map(|dialogue| &mut dialogue.turns) {
        turn.expect = comparable(&turn.expect);
    }
    run_dialogues::<LondonEnv>(&set).await
}

/// Converts the expected agent to a call, which is compared like the others, and removes what other tests check.
fn comparable(expect: &Map<String, Value>) -> Map<String, Value> {
    let mut expect = expect.clone();
    for key in ["same_thread", "persisted", "http", "answer_given", "error_reported", "confidence"] {
        expect.remove(key);
    }
    if let Some(agent) = expect.remove("agent") {
        let mut calls = expect.get("calls").and_then(Value::as_array).cloned().unwrap_or_default();
        calls.push(json!({"name": "agent", "args": {"agent": agent}}));
        expect.insert("calls".to_owned(), Value::Array(calls));
    }
    if let Some(most) = expect.get("calls_max").and_then(Value::as_u64) {
        expect.insert("calls_max".to_owned(), json!(most + 1));
    }
    expect
}

/// How much later a user asks again after a failure, which is cached for a moment.
const RETRY_AFTER: jiff::SignedDuration = jiff::SignedDuration::from_secs(6);

/// The environment of a dialogue.
struct LondonEnv {
    env: Option<TestEnv>,
    clock: Timestamp,
    threads: BTreeMap<(String, String), ThreadId>,
    _folder: tempfile::TempDir,
}

impl LondonEnv {
    fn env(&self) -> &TestEnv {
        self.env.as_ref().expect("the environment is only absent during a restart")
    }
}

impl DialogueEnv for LondonEnv {
    async fn start(dialogue: &Dialogue) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        let env = TestEnv::over(&url, FakeTfl::start().await, None).await;
        let clock = dialogue.clock.as_deref().map_or_else(crate::env::now, |clock| clock.parse().expect("RFC 3339"));
        env.set_time(clock);
        for (key, value) in &dialogue.world {
            publish(&env.tfl, key, value);
        }
        Self { env: Some(env), clock, threads: BTreeMap::new(), _folder: folder }
    }

    async fn apply(&mut self, event: &str, value: &Value) {
        match event {
            "restart" => {
                let env = self.env.take().expect("the environment is only absent during a restart");
                self.env = Some(env.restarted().await);
            }
            "advance_clock_s" => self.clock += jiff::SignedDuration::from_secs(value.as_i64().unwrap_or(0)),
            // These replace all that was reported before.
            "set_status" => {
                self.env().tfl.world.lock().unwrap().status.clear();
                publish(&self.env().tfl, "status", value);
            }
            "set_arrivals" => {
                self.env().tfl.world.lock().unwrap().arrivals.clear();
                publish(&self.env().tfl, "arrivals", value);
            }
            "fail" => {
                fail(&self.env().tfl, value);
                self.clock += RETRY_AFTER;
            }
            _ => {}
        }
        self.env().set_time(self.clock);
    }

    async fn send(&mut self, user: &str, conversation: &str, text: &str) -> ObservedTurn {
        let key = (user.to_owned(), conversation.to_owned());
        let conversation = match self.threads.get(&key) {
            Some(thread) => self.env().existing_conversation(user, *thread),
            None => self.env().conversation(user).await,
        };
        let (thread, turn) = (conversation.thread, conversation.turn(text).await);
        self.threads.insert(key, thread);
        let named = turn.tool_calls.iter().map(|call| neutral(&call.name, &call.arguments.read().unwrap_or_default()));
        let agent = json!({"agent": turn.routed_agent.clone().unwrap_or_default()});
        let agent = ObservedCall { name: "agent".to_owned(), arguments: agent };
        let calls = named.chain([agent]).collect();
        let is_refusal =
            turn.reply == REFUSAL || threadkeep_underground::REFERRALS.iter().any(|(_, text)| turn.reply == *text);
        assert_ne!(turn.reply, "", "{text}");
        ObservedTurn { is_refusal: is_refusal && turn.reply != APOLOGY, calls, reply: turn.reply }
    }

    fn are_equal(name: &str, expected: &Value, actual: &Value) -> bool {
        are_equal(name, expected, actual)
    }
}

/// Converts a call to the names that the sets use.
fn neutral(tool: &str, arguments: &Value) -> ObservedCall {
    let call = |name: &str, arguments: Value| ObservedCall { name: name.to_owned(), arguments };
    match tool {
        "get_line_status" => {
            call("line_status", json!({"lines": arguments.get("lines").cloned().unwrap_or(json!("all"))}))
        }
        "get_next_trains" => call("arrivals", json!({"stop": arguments["station"], "line": arguments["line"]})),
        "get_route" => call(
            "journey",
            json!({"from": arguments["from_station"], "to": arguments["to_station"], "avoid": arguments["avoid_lines"]}),
        ),
        "get_station_info" => call("stop_disruption", json!({"stop": arguments["station"]})),
        other => call(other, arguments.clone()),
    }
}

fn publish(tfl: &FakeTfl, key: &str, value: &Value) {
    let mut world = tfl.world.lock().unwrap();
    for (name, value) in value.as_object().into_iter().flatten() {
        match key {
            "status" => drop(world.status.insert(name.clone(), value.clone())),
            "arrivals" => drop(world.arrivals.insert(name.clone(), value.clone())),
            "journeys" => drop(world.journeys.insert(name.clone(), value.clone())),
            "stop_disruptions" => {
                if let Some(text) = value.as_str() {
                    world.disruptions.insert(name.clone(), text.to_owned());
                }
            }
            _ => {}
        }
    }
    if key == "disambiguation" && !value.is_null() {
        world.disambiguation = Some(value.clone());
    }
}

fn fail(tfl: &FakeTfl, value: &Value) {
    let mut world = tfl.world.lock().unwrap();
    world.faults.clear();
    for (call, fault) in value.as_object().into_iter().flatten() {
        let part = match call.as_str() {
            "line_status" => "/Line/",
            "arrivals" => "/Arrivals",
            "journey" => "/Journey/",
            "stop_disruption" => "/Disruption",
            _ => "",
        };
        let fault = fault.as_u64().and_then(|status| u16::try_from(status).ok()).map_or(Fault::Slow, Fault::Status);
        world.faults.insert(part.to_owned(), fault);
    }
}

fn are_equal(name: &str, expected: &Value, actual: &Value) -> bool {
    let list = |value: &Value| -> Vec<String> {
        match value {
            Value::String(text) => text.split(',').map(|part| part.trim().to_owned()).collect(),
            other => other.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    };
    let lines = |value: &Value| -> Vec<&'static str> {
        let named = list(value);
        match named.iter().any(|name| name == "all") {
            true => LINES.iter().map(|line| line.id).collect(),
            false => named.iter().filter_map(|name| find_line(name)).map(|line| line.id).collect(),
        }
    };
    let complex = |value: &Value| match names().resolve(value.as_str().unwrap_or_default()) {
        Resolution::Certain(place) | Resolution::Assumed { taken: place, .. } => place.complex,
        Resolution::Several(places) => places.first().map(|place| place.complex.clone()).unwrap_or_default(),
        _ => value.as_str().unwrap_or_default().to_lowercase(),
    };
    match name {
        "agent" => list(expected).iter().any(|agent| Some(agent.as_str()) == actual.as_str()),
        // A request for additional lines is accepted.
        "lines" | "line" | "avoid" => {
            let actual = lines(actual);
            lines(expected).iter().all(|line| actual.contains(line))
        }
        "stop" | "from" | "to" => complex(expected) == complex(actual),
        _ => expected == actual,
    }
}
