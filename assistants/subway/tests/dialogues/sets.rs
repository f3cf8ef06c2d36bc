//! Sets of dialogues: written without sight of the phrases, and run once before anyone read their failures.

use std::collections::BTreeMap;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Map, Value};
use threadkeep_dialogue_sets::{DialogueSet, ObservedCall, ObservedTurn, TurnResult, mismatches, report};
use threadkeep_subway::{REFUSAL, names};
use threadkeep_transit::{Place, Resolution};

use crate::env::TestEnv;
use crate::mta::{FakeMta, Train, train};

/// The feeds and the lines in them.
const FEEDS: [(&str, &[&str]); 8] = [
    ("nyct%2Fgtfs", &["1", "2", "3", "4", "5", "6", "7", "S", "GS"]),
    ("nyct%2Fgtfs-ace", &["A", "C", "E", "H", "FS"]),
    ("nyct%2Fgtfs-bdfm", &["B", "D", "F", "M"]),
    ("nyct%2Fgtfs-g", &["G"]),
    ("nyct%2Fgtfs-jz", &["J", "Z"]),
    ("nyct%2Fgtfs-nqrw", &["N", "Q", "R", "W"]),
    ("nyct%2Fgtfs-l", &["L"]),
    ("nyct%2Fgtfs-si", &["SI"]),
];

/// The set in `THREADKEEP_DIALOGUES`, for measuring a new one: prints its report.
#[tokio::test]
async fn dialogues_of_a_given_set_are_reported() {
    let Some(path) = std::env::var_os("THREADKEEP_DIALOGUES") else { return };
    let set = DialogueSet::read(Path::new(&path)).expect("the set exists");
    println!("{}", report(&run(&set).await));
}

/// Plays the dialogues of a set. Turns with answers of a language model, and operations, are not played.
async fn run(set: &DialogueSet) -> Vec<TurnResult> {
    let mut results = Vec::new();
    for dialogue in &set.dialogues {
        if dialogue.turns.iter().any(|turn| turn.llm.is_some()) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("store.db").display());
        let mut env = TestEnv::over(&url, FakeMta::start().await, None).await;
        let mut clock: Timestamp =
            dialogue.clock.as_deref().map_or_else(crate::mta::now, |clock| clock.parse().expect("RFC 3339"));
        env.set_time(clock);
        let empty = Map::new();
        publish(&env.mta, clock, dialogue.world.get("arrivals").and_then(Value::as_object).unwrap_or(&empty));
        let mut threads = BTreeMap::new();
        for (number, turn) in dialogue.turns.iter().enumerate() {
            for event in &turn.before {
                for (name, value) in event {
                    match name.as_str() {
                        "restart" => env = env.restarted().await,
                        "advance_clock_s" => clock += jiff::SignedDuration::from_secs(value.as_i64().unwrap_or(0)),
                        "set_arrivals" => publish(&env.mta, clock, value.as_object().unwrap_or(&empty)),
                        "feeds_down" => take_down(&env.mta, value),
                        other => panic!("unknown event {other}"),
                    }
                }
                env.set_time(clock);
            }
            if turn.user.is_empty() {
                continue;
            }
            let user = turn.session.as_deref().unwrap_or("ana");
            let key = (user.to_owned(), turn.thread.clone().unwrap_or_default());
            let conversation = match threads.get(&key) {
                Some(thread) => env.existing_conversation(user, *thread),
                None => env.conversation(user).await,
            };
            threads.insert(key, conversation.thread);
            let done = conversation.turn(&turn.user).await;
            let calls = done.tool_calls.iter().map(|call| ObservedCall {
                name: call.name.clone(),
                arguments: call.arguments.read().unwrap_or_default(),
            });
            let observed =
                ObservedTurn { is_refusal: done.reply == REFUSAL, calls: calls.collect(), reply: done.reply.clone() };
            let made: Vec<String> =
                observed.calls.iter().map(|call| format!("{} {}", call.name, call.arguments)).collect();
            results.push(TurnResult {
                name: format!("{} turn {}", dialogue.id, number + 1),
                user: turn.user.clone(),
                kind: turn.kind.clone(),
                is_required: turn.level.as_deref() != Some("stretch"),
                mismatches: mismatches(&turn.expect, &observed, &is_equal),
                observed: format!("{} | {}", made.join(" + "), done.reply.replace('\n', " / ")),
            });
        }
    }
    results
}

/// Publishes all feeds: trains by stop and direction, in minutes from the time.
fn publish(mta: &FakeMta, clock: Timestamp, arrivals: &Map<String, Value>) {
    let mut trains: BTreeMap<&str, Vec<Train>> = FEEDS.iter().map(|(feed, _)| (*feed, Vec::new())).collect();
    for (stop, due) in arrivals {
        for arrival in due.as_array().into_iter().flatten() {
            let route = arrival["route"].as_str().unwrap_or_default();
            let minutes = arrival["minutes"].as_i64().unwrap_or_default();
            let feed = FEEDS.iter().find(|(_, lines)| lines.contains(&route)).expect("a line of the subway").0;
            trains.entry(feed).or_default().push(train(route, &[(stop.as_str(), minutes * 60), (stop, minutes * 60)]));
        }
    }
    for (feed, trains) in trains {
        mta.show_at(feed, clock, &trains);
    }
}

fn take_down(mta: &FakeMta, lines: &Value) {
    let lines: Vec<&str> = lines.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (feed, of_feed) in FEEDS {
        if of_feed.iter().any(|line| lines.contains(line)) || lines.contains(&"all") {
            mta.state.lock().unwrap().bodies.remove(&format!("/feeds/{feed}"));
        }
    }
}

/// Whether two arguments are equal: names of stations by the stations that they mean.
fn is_equal(name: &str, expected: &Value, actual: &Value) -> bool {
    let (Some(wanted), Some(given)) = (expected.as_str(), actual.as_str()) else { return expected == actual };
    let folded = |text: &str| text.to_lowercase().replace(['_', '-'], " ").replace("favourite", "favorite");
    let station = |text: &str| match names().resolve(text) {
        Resolution::Certain(Place { complex, .. }) => Some(complex),
        Resolution::Assumed { taken, .. } => Some(taken.complex),
        _ => None,
    };
    if name.contains("lines") {
        let split = |text: &str| {
            let mut lines: Vec<String> = text.split(',').map(|line| line.trim().to_owned()).collect();
            lines.sort();
            lines
        };
        return split(wanted) == split(given);
    }
    folded(wanted) == folded(given) || station(wanted).is_some_and(|wanted| Some(wanted) == station(given))
}
