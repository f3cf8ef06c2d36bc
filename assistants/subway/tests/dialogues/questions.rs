//! Typical questions, and how the offline model understands them. They were written before the model was tuned, and every third
//! one was held out.

use std::collections::BTreeSet;

use threadkeep::{Turn, TurnStatus, Value};
use threadkeep_subway::{REFUSAL, names, network};
use threadkeep_transit::{Place, Resolution};

use crate::env::TestEnv;

/// Questions and expected outcomes, in two columns. Earlier turns precede the question, separated by `>>`. Alternative
/// outcomes are separated by `or`, the tool calls of one reply by `+`. Stations are given by id, or in quotes if no station has
/// the name. Other outcomes are `ask` (the assistant asks a question), `refuse`, `unclear` (reported as not understood) and `talk`.
const QUESTIONS: &str = include_str!("questions.tsv");

/// Questions of the same form, written after the model was tuned on the others.
const FRESH: &str = include_str!("fresh.tsv");

#[tokio::test]
async fn most_questions_are_understood() {
    check(&judged(QUESTIONS, |number| number % 3 != 2).await);
}

#[tokio::test]
async fn most_questions_are_understood_held_out() {
    check(&judged(QUESTIONS, |number| number % 3 == 2).await);
}

#[tokio::test]
async fn most_fresh_questions_are_understood() {
    check(&judged(FRESH, |_| true).await);
}

fn check(judged: &[(&str, &str, Option<String>)]) {
    let wrong: Vec<String> = judged
        .iter()
        .filter_map(|(question, expected, got)| Some(format!("{question}\n    {expected}\n    {}", got.as_ref()?)))
        .collect();
    let right = judged.len() - wrong.len();
    assert!(right * 100 >= judged.len() * 90, "{right} of {} are right:\n{}", judged.len(), wrong.join("\n"));
}

/// Asks the chosen questions. Returns each with the actual outcome if it differs from the expected one.
async fn judged(
    questions: &'static str,
    is_chosen: impl Fn(usize) -> bool,
) -> Vec<(&'static str, &'static str, Option<String>)> {
    let env = TestEnv::new().await;
    let mut judged = Vec::new();
    for (_, line) in questions.lines().enumerate().filter(|(number, _)| is_chosen(*number)) {
        let (question, expected) = line.split_once('\t').unwrap();
        let conversation = env.conversation("ana").await;
        let mut last = None;
        for message in question.split(" >> ") {
            last = Some(conversation.turn(message).await);
        }
        let turn = last.unwrap();
        let is_right = expected.split(" or ").any(|expected| matches_outcome(&turn, expected));
        judged.push((question, expected, (!is_right).then(|| outcome(&turn))));
    }
    judged
}

fn matches_outcome(turn: &Turn, expected: &str) -> bool {
    let asks = || turn.reply.trim_end().ends_with('?');
    // A referral states what the assistant does not know and where to find it.
    let is_referral = || threadkeep_subway::REFERRALS.iter().any(|(_, text)| turn.reply == *text);
    let is_unclear = || turn.reply.starts_with("I did not understand") || is_referral();
    match expected {
        _ if turn.status != TurnStatus::Completed => false,
        "refuse" => turn.tool_calls.is_empty() && (turn.reply == REFUSAL || is_referral()),
        "unclear" => turn.tool_calls.is_empty() && is_unclear(),
        "ask" => turn.tool_calls.is_empty() && asks() && turn.reply != REFUSAL && !is_unclear(),
        "talk" => turn.tool_calls.is_empty() && !is_unclear() && turn.reply != REFUSAL,
        calls => {
            let calls: Vec<&str> = calls.split(" + ").collect();
            calls.len() == turn.tool_calls.len()
                && calls
                    .iter()
                    .zip(&turn.tool_calls)
                    .all(|(expected, call)| is_call(expected, &call.name, &call.arguments.read().unwrap_or_default()))
        }
    }
}

fn is_call(expected: &str, tool: &str, arguments: &Value) -> bool {
    let (name, rest) = expected.split_once(' ').unwrap_or((expected, ""));
    let name = if name == "compare" { "compare_local_vs_express" } else { name };
    let expected = members(rest);
    let conditions = ["direction", "leave_at", "arrive_by", "avoid_lines", "only_lines", "step_free"];
    let is_place_or_line = |name: &&String| !conditions.contains(&name.as_str());
    let count = arguments.as_object().map_or(0, |arguments| arguments.keys().filter(is_place_or_line).count());
    let lines: Vec<&str> = ["line", "local_line"].iter().filter_map(|name| arguments[*name].as_str()).collect();
    name == tool
        && expected.len() == count
        && expected.iter().all(|(member, value)| {
            let given = match member.as_str() {
                "from" | "to" | "transfer" => &arguments[format!("{member}_station")],
                "station" => arguments.get("station_name").unwrap_or(&arguments["station"]),
                "local" => &arguments["local_line"],
                "express" => &arguments["express_lines"],
                other => &arguments[other],
            };
            given.as_str().is_some_and(|given| is_value(member, value, given, &lines))
        })
}

/// Parses `from=128 to="the moon"` into names and values.
fn members(text: &str) -> Vec<(String, String)> {
    let mut members = Vec::new();
    let mut rest = text.trim();
    while let Some((name, after)) = rest.split_once('=') {
        let end = match after.strip_prefix('"') {
            Some(quoted) => quoted.find('"').unwrap() + 2,
            None => after.find(' ').unwrap_or(after.len()),
        };
        members.push((name.to_owned(), after[..end].to_owned()));
        rest = after[end..].trim_start();
    }
    members
}

fn is_value(member: &str, expected: &str, given: &str, lines: &[&str]) -> bool {
    let plain = expected.trim_matches('"');
    let folded = |text: &str| text.to_lowercase().replace(['_', '-'], " ");
    match member {
        "key" => folded(given) == folded(plain),
        "line" | "local" => given == plain,
        "express" => given.split(',').collect::<BTreeSet<_>>() == plain.split(',').collect::<BTreeSet<_>>(),
        _ if expected.starts_with('"') => folded(given).trim_start_matches("the ").contains(&folded(plain)),
        _ => {
            assert!(network().find_station(plain).is_some(), "{plain} is not a station");
            stations(given, lines).iter().any(|station| station == plain)
        }
    }
}

/// Returns the stations to which a tool resolves a name.
fn stations(name: &str, lines: &[&str]) -> Vec<String> {
    match names().resolve_on(name, lines) {
        Resolution::Certain(Place { stations, .. }) => stations,
        Resolution::Assumed { taken, .. } => taken.stations,
        _ => Vec::new(),
    }
}

fn outcome(turn: &Turn) -> String {
    let calls: Vec<String> = turn.tool_calls.iter().map(|call| format!("{}{}", call.name, call.arguments)).collect();
    let reply: String = turn.reply.chars().take(120).collect();
    format!("{} | {}", calls.join(" + "), reply.replace('\n', " "))
}
