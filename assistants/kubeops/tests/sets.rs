//! Sets of dialogues that were written without sight of the code, and run once before anyone read their failures.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod world;

use serde_json::Value;
use threadkeep_dialogue_sets::{count_passed, report};
use world::script::run_dialogues;

/// A set that was blind at its first run, and the minimum share of turns that must pass, in percent, so that regressions are noticed.
struct Set {
    text: &'static str,
    least_percent: usize,
}

/// 147 of 201 turns passed at the first run (145 of the 190 that are required).
#[tokio::test]
async fn dialogues_of_the_first_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-1.json"), least_percent: 98 })).await;
}

/// 251 of 291 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_second_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-2.json"), least_percent: 98 })).await;
}

/// 141 of 264 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_third_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-3.json"), least_percent: 97 })).await;
}

/// 131 of 271 required turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_fourth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-4.json"), least_percent: 96 })).await;
}

/// 222 of 280 turns passed at the first run, with 5 wrong requests and 3 wrong changes, of which the worst kinds are fixed.
#[tokio::test]
async fn dialogues_of_the_fifth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-5.json"), least_percent: 87 })).await;
}

/// 172 of 234 required turns passed at the first run, with 4 wrong requests and 4 wrong changes, which are fixed.
#[tokio::test]
async fn dialogues_of_the_sixth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-6.json"), least_percent: 97 })).await;
}

/// 197 of 248 required turns passed at the first run, with 2 wrong requests and 1 wrong change, which are fixed; 202 after the failures of
/// the sixth set alone had been read.
#[tokio::test]
async fn dialogues_of_the_seventh_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-7.json"), least_percent: 97 })).await;
}

/// 143 of 185 required turns passed at the first run, with 3 wrong requests and 1 wrong change, which are fixed.
#[tokio::test]
async fn dialogues_of_the_eighth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-8.json"), least_percent: 96 })).await;
}

/// 188 of 232 required turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_ninth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-9.json"), least_percent: 93 })).await;
}

/// 169 of 204 required turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_tenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-10.json"), least_percent: 98 })).await;
}

/// 179 of 203 turns passed at the first run, with 3 wrong requests or changes, which are fixed.
#[tokio::test]
async fn dialogues_of_the_eleventh_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-11.json"), least_percent: 97 })).await;
}

/// 191 of 206 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_twelfth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-12.json"), least_percent: 91 })).await;
}

/// 191 of 207 turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_thirteenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-13.json"), least_percent: 91 })).await;
}

/// 192 of 218 required turns passed at the first run, 2 of the others because of the test's own Slack, and with 3 wrong requests, which
/// are fixed.
#[tokio::test]
async fn dialogues_of_the_fourteenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-14.json"), least_percent: 97 })).await;
}

/// 186 of 207 required turns passed at the first run, with 2 wrong requests, which are fixed.
#[tokio::test]
async fn dialogues_of_the_fifteenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-15.json"), least_percent: 97 })).await;
}

/// 187 of 217 required turns passed at the first run, with 2 wrong requests, which are fixed.
#[tokio::test]
async fn dialogues_of_the_sixteenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-16.json"), least_percent: 95 })).await;
}

/// 217 of 226 required turns passed at the first run.
#[tokio::test]
async fn dialogues_of_the_seventeenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-17.json"), least_percent: 96 })).await;
}

/// 179 of 199 required turns passed at the first run, with 1 wrong request, which is fixed.
#[tokio::test]
async fn dialogues_of_the_eighteenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-18.json"), least_percent: 94 })).await;
}

/// 190 of 198 required turns passed at the first run, with 1 wrong request, which is fixed.
#[tokio::test]
async fn dialogues_of_the_nineteenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-19.json"), least_percent: 97 })).await;
}

/// 212 of 222 required turns passed at the first run, without a wrong request.
#[tokio::test]
async fn dialogues_of_the_twentieth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-20.json"), least_percent: 95 })).await;
}

/// 253 of 294 required turns passed at the first run, with 1 wrong request, which is fixed.
#[tokio::test]
async fn dialogues_of_the_twenty_first_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-21.json"), least_percent: 97 })).await;
}

/// 257 of 281 required turns passed at the first run, with 1 wrong request, which is fixed.
#[tokio::test]
async fn dialogues_of_the_twenty_second_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/set-22.json"), least_percent: 97 })).await;
}

/// S4.42: 131 of 189 references were right at the first run, with 6 wrong requests. Of those that are left, some need more than the ten
/// messages that the assistant sees.
#[tokio::test]
async fn references_of_the_first_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-1.json"), least_percent: 97 })).await;
}

/// S4.42: 159 of 198 references were right at the first run, with 13 wrong requests.
#[tokio::test]
async fn references_of_the_second_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-2.json"), least_percent: 96 })).await;
}

/// S4.42: 149 of 177 references were right at the first run, with 7 wrong requests.
#[tokio::test]
async fn references_of_the_third_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-3.json"), least_percent: 93 })).await;
}

/// S4.42: 134 of 178 references were right at the first run, with 12 wrong requests.
#[tokio::test]
async fn references_of_the_fourth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-4.json"), least_percent: 94 })).await;
}

/// S4.42: 152 of 178 references were right at the first run, with 4 wrong requests.
#[tokio::test]
async fn references_of_the_fifth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-5.json"), least_percent: 95 })).await;
}

/// S4.42: 138 of 222 references (224 of 324 turns) were right at the first run, with 10 wrong requests, of which 2 are left. Its follow-ups are
/// shorter and about more kinds than those of the sets before it: nodes, ages, numbers of pods, and requests that wait.
#[tokio::test]
async fn references_of_the_sixth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-6.json"), least_percent: 87 })).await;
}

/// S4.42: 139 of 229 references (202 of 306 turns) were right at the first run, with 6 wrong requests, which are fixed.
#[tokio::test]
async fn references_of_the_seventh_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-7.json"), least_percent: 91 })).await;
}

/// S4.42: 221 of 298 turns were right at the first run.
#[tokio::test]
async fn references_of_the_eighth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-8.json"), least_percent: 99 })).await;
}

/// S4.42: 252 of 304 turns were right at the first run, with 6 wrong requests, which are fixed.
#[tokio::test]
async fn references_of_the_ninth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-9.json"), least_percent: 96 })).await;
}

/// S4.42: 180 of 271 turns were right at the first run, with 10 wrong requests; 2 more turns once the test's own cluster had the daemon sets and
/// ports of the set. "The ds one" may mean the daemon set that was spoken of, or one of two names.
#[tokio::test]
async fn references_of_the_tenth_set_pass() {
    Box::pin(check(&Set { text: include_str!("sets/references-10.json"), least_percent: 80 })).await;
}

/// Corrections, repetitions and references in sloppy words, written beside the code, so never blind.
#[tokio::test]
async fn dialogues_written_beside_the_code_pass() {
    Box::pin(check(&Set { text: include_str!("sets/own.json"), least_percent: 100 })).await;
}

async fn check(set: &Set) {
    let results = Box::pin(run_dialogues(&serde_json::from_str(set.text).unwrap())).await;
    let (passed, required) = count_passed(&results);
    assert!(required >= 180 && passed * 100 >= required * set.least_percent, "{}", report(&results));
}

/// The set in `THREADKEEP_DIALOGUES`, for measuring a new one: prints its report.
#[tokio::test]
async fn dialogues_of_a_given_set_are_reported() {
    let Some(path) = std::env::var_os("THREADKEEP_DIALOGUES") else { return };
    let set: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let results = Box::pin(run_dialogues(&set)).await;
    let all = results.iter().filter(|result| result.mismatches.is_empty()).count();
    println!("{all} of {} turns with those that stretch; required: {:?}", results.len(), count_passed(&results));
    println!("{}", report(&results));
}
