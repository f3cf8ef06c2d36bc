//! Measures how much of a conversation its summary retains, on dialogues with known facts from the data sets in
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

/// Returns the final context in lower case, after assembling a context for each turn.
fn final_context(messages: &[Message], policy: &ContextPolicy) -> String {
    let (mut summary, mut text) = (None, String::new());
    for turn in 1..=messages.len() {
        let input = ContextInput {
            thread: ThreadRange { first_seq: 1, last_seq: turn as u64 },
            history: &messages[turn.saturating_sub(WINDOW + 2)..turn],
            summary: summary.as_ref(),
            ..ContextInput::default()
        };
        let context = assemble(&input, policy, &ApproximateCounter).unwrap();
        let texts = context.messages.iter().flat_map(|message| message.parts.iter().filter_map(Part::text));
        text = texts.collect::<Vec<_>>().join("\n").to_lowercase();
        summary = context.summary;
    }
    text
}

#[test]
fn a_summary_retains_known_facts() {
    let (mut total, mut in_dialogue, mut with_summary, mut without_summary) = (0_u32, 0, 0, 0);
    for dialogue in dialogues() {
        let messages = messages(&dialogue);
        let whole = messages.iter().map(|message| message.plain_text().to_lowercase()).collect::<Vec<_>>().join("\n");
        let summarised = ContextPolicy { summary: Some(SummaryPolicy::default()), ..ContextPolicy::window(WINDOW) };
        let summarised = final_context(&messages, &summarised);
        let plain = final_context(&messages, &ContextPolicy::window(WINDOW));
        let services = dialogue["final_state"].as_object().unwrap().values();
        for spellings in services.flat_map(|slots| slots.as_object().unwrap().values()) {
            let spellings: Vec<String> =
                spellings.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_lowercase()).collect();
            let holds = |text: &str| u32::from(spellings.iter().any(|spelling| text.contains(spelling)));
            total += 1;
            in_dialogue += holds(&whole);
            with_summary += holds(&summarised);
            without_summary += holds(&plain);
        }
    }
    let share = |count: u32| f64::from(count) / f64::from(total);
    println!(
        "{total} slot values: {:.3} occur in the dialogue, {:.3} in the context with a summary, {:.3} without",
        share(in_dialogue),
        share(with_summary),
        share(without_summary)
    );
    assert!(share(with_summary) >= 0.9, "{:.3}", share(with_summary));
    assert!(with_summary > without_summary);
}
