//! How much of a conversation its summary keeps, over dialogues with known facts. They are found through
//! `THREADKEEP_DATA`.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]
#![expect(clippy::disallowed_methods, reason = "the crate does no I/O; this test reads a data set")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde_json::Value;
use threadkeep_context::{ContextInput, ContextPolicy, SummaryPolicy, ThreadRange, assemble};
use threadkeep_core::{ApproximateCounter, Content, Message, MessageId, Part, Role, Timestamp};

const WINDOW: usize = 6;

fn dialogues() -> Vec<Value> {
    let folder = std::env::var_os("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must name the folder of the data sets; `cargo xtask test --data` sets it");
    let file = File::open(PathBuf::from(folder).join("sgd-dialogues/sgd-dev.jsonl.gz")).unwrap();
    let lines = BufReader::new(GzDecoder::new(file)).lines();
    lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect()
}

fn messages(dialogue: &Value) -> Vec<Message> {
    let turns = dialogue["turns"].as_array().unwrap();
    let message = |(seq, turn): (u64, &Value)| {
        let role = if turn["speaker"] == "user" { Role::User } else { Role::Assistant };
        Message {
            seq,
            id: MessageId::from_name(&seq.to_be_bytes()),
            external_id: None,
            revision: 0,
            created_at: Timestamp::MIN,
            content: Content::text(role, turn["text"].as_str().unwrap()),
        }
    };
    (1..).zip(turns).map(message).collect()
}

/// What a model sees at the end, the context having been read after each turn.
fn seen_at_the_end(messages: &[Message], policy: &ContextPolicy) -> String {
    let (mut summary, mut seen) = (None, String::new());
    for turn in 1..=messages.len() {
        let input = ContextInput {
            thread: ThreadRange { first_seq: 1, last_seq: turn as u64 },
            history: &messages[turn.saturating_sub(WINDOW + 2)..turn],
            summary: summary.as_ref(),
            ..ContextInput::default()
        };
        let context = assemble(&input, policy, &ApproximateCounter).unwrap();
        let texts = context.messages.iter().flat_map(|message| message.parts.iter().filter_map(Part::text));
        seen = texts.collect::<Vec<_>>().join("\n").to_lowercase();
        summary = context.summary;
    }
    seen
}

#[test]
fn a_summary_keeps_what_was_settled() {
    let (mut total, mut said, mut with, mut without) = (0_u32, 0, 0, 0);
    for dialogue in dialogues() {
        let messages = messages(&dialogue);
        let whole = messages.iter().map(|message| message.plain_text().to_lowercase()).collect::<Vec<_>>().join("\n");
        let summarised = ContextPolicy { summary: Some(SummaryPolicy::default()), ..ContextPolicy::window(WINDOW) };
        let summarised = seen_at_the_end(&messages, &summarised);
        let plain = seen_at_the_end(&messages, &ContextPolicy::window(WINDOW));
        let services = dialogue["final_state"].as_object().unwrap().values();
        for spellings in services.flat_map(|slots| slots.as_object().unwrap().values()) {
            let spellings: Vec<String> =
                spellings.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_lowercase()).collect();
            let holds = |text: &str| u32::from(spellings.iter().any(|spelling| text.contains(spelling)));
            total += 1;
            said += holds(&whole);
            with += holds(&summarised);
            without += holds(&plain);
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(total);
    println!(
        "{total} slot values: {:.3} were said, {:.3} are seen with a summary, {:.3} without",
        share(said),
        share(with),
        share(without)
    );
    assert!(share(with) >= 0.9, "{:.3}", share(with));
    assert!(with > without);
}
