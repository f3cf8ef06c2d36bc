//! Reads the data sets in `THREADKEEP_DATA` and compares every field with the source.
#![expect(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};
use threadkeep_core::exchange::{ImportItem, ImportedMessage, ImportedThread};
use threadkeep_core::{Part, Role, Timestamp};
use threadkeep_formats::Format;

fn data(path: &str) -> PathBuf {
    let folder = std::env::var_os("THREADKEEP_DATA")
        .expect("THREADKEEP_DATA must name the folder of the data sets; `cargo xtask test --data` sets it");
    PathBuf::from(folder).join(path)
}

type Conversation = (ImportedThread, Vec<ImportedMessage>);

fn conversations(path: &str, format: Format) -> Vec<Conversation> {
    let reader = threadkeep_formats::open(&data(path), None).unwrap();
    assert_eq!(reader.format(), format);
    let mut conversations: Vec<Conversation> = Vec::new();
    for item in reader {
        match item.unwrap() {
            ImportItem::Thread(thread) => conversations.push((*thread, Vec::new())),
            ImportItem::Message(message) => conversations.last_mut().unwrap().1.push(*message),
            ImportItem::Tree(_) | ImportItem::Record { .. } => panic!("neither data set has branches or records"),
        }
    }
    conversations
}

fn count(conversations: &[Conversation]) -> (usize, usize) {
    (conversations.len(), conversations.iter().map(|(_, messages)| messages.len()).sum())
}

#[test]
fn locomo_items_equal_their_source() {
    let source: Vec<Value> = serde_json::from_reader(File::open(data("locomo/locomo-dev.json")).unwrap()).unwrap();
    let read = conversations("locomo/locomo-dev.json", Format::Locomo);
    assert_eq!(count(&read), (5, 2760));
    for (source, (thread, messages)) in source.iter().zip(&read) {
        let key = format!("import:locomo:{}", source["sample_id"].as_str().unwrap());
        assert_eq!(thread.key.as_ref().unwrap().as_str(), key);
        assert_eq!(thread.created_at, messages[0].created_at);
        assert_eq!(thread.metadata["speaker_a"], source["conversation"]["speaker_a"]);
        assert_eq!(thread.metadata["speaker_b"], source["conversation"]["speaker_b"]);
        let turns = locomo_turns(&source["conversation"]);
        assert_eq!(messages.len(), turns.len());
        assert!(messages.windows(2).all(|pair| pair[0].created_at < pair[1].created_at), "{key}");
        let first_speaker = turns[0].turn["speaker"].as_str().unwrap();
        for (message, turn) in messages.iter().zip(&turns) {
            check_locomo_turn(message, turn, first_speaker);
        }
    }
}

struct Turn<'a> {
    session: usize,
    date: &'a str,
    index: i64,
    turn: &'a Map<String, Value>,
}

fn locomo_turns(conversation: &Value) -> Vec<Turn<'_>> {
    let mut turns = Vec::new();
    for session in 1..100 {
        let Some(list) = conversation[format!("session_{session}")].as_array() else { continue };
        let date = conversation[format!("session_{session}_date_time")].as_str().unwrap();
        let numbered = (0..).zip(list);
        turns.extend(numbered.map(|(index, turn)| Turn { session, date, index, turn: turn.as_object().unwrap() }));
    }
    turns
}

fn check_locomo_turn(message: &ImportedMessage, turn: &Turn<'_>, first_speaker: &str) {
    let Turn { session, date, index, turn } = turn;
    assert_eq!(message.external_id.as_deref(), turn["dia_id"].as_str());
    assert_eq!(message.created_at.unwrap(), locomo_date(date).plus_ms(*index));
    let content = &message.content;
    assert_eq!(content.author.as_deref(), turn["speaker"].as_str());
    let role = if turn["speaker"] == first_speaker { Role::User } else { Role::Assistant };
    assert_eq!(content.role, role);
    assert_eq!(content.parts[0], Part::Text(turn["text"].as_str().unwrap().to_owned()));
    let caption = turn.get("blip_caption").map(|caption| caption.as_str().unwrap());
    match &content.parts[1..] {
        [] => assert!(caption.is_none() && !turn.contains_key("img_url")),
        [Part::Image(image)] => {
            assert_eq!(image.description.as_deref(), caption);
            assert_eq!(image.url, turn.get("img_url").map_or("", |urls| urls[0].as_str().unwrap()));
        }
        other => panic!("{other:?}"),
    }
    let mut expected = Map::new();
    expected.insert("session".to_owned(), json!(session));
    expected.insert("session_date".to_owned(), json!(date));
    let other_fields = ["speaker", "dia_id", "text", "blip_caption"];
    let rest = turn.iter().filter(|(name, _)| !other_fields.contains(&name.as_str()));
    expected.extend(rest.map(|(name, value)| (name.clone(), value.clone())));
    assert_eq!(content.data.as_ref().unwrap().read::<Value>().unwrap(), Value::Object(expected));
    assert!(content.metadata.is_empty());
}

/// Parses `1:56 pm on 8 May, 2023` independently of the reader.
fn locomo_date(date: &str) -> Timestamp {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let words: Vec<_> = date.split([' ', ':', ',']).filter(|word| !word.is_empty()).collect();
    let [hour, minute, half, "on", day, month, year] = words.as_slice() else { panic!("{date}") };
    let hour = hour.parse::<u32>().unwrap() % 12 + if *half == "pm" { 12 } else { 0 };
    let month = MONTHS.iter().position(|name| name == month).unwrap() + 1;
    format!("{year}-{month:02}-{day:0>2}T{hour:02}:{minute}:00Z").parse().unwrap()
}

#[test]
fn sgd_items_equal_their_source() {
    let decoder = GzDecoder::new(File::open(data("sgd-dialogues/sgd-dev.jsonl.gz")).unwrap());
    let source: Vec<Value> =
        BufReader::new(decoder).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    let read = conversations("sgd-dialogues/sgd-dev.jsonl.gz", Format::Sgd);
    assert_eq!(count(&read), (600, 12_310));
    for (source, (thread, messages)) in source.iter().zip(&read) {
        let key = format!("import:sgd:{}", source["dialogue_id"].as_str().unwrap());
        assert_eq!(thread.key.as_ref().unwrap().as_str(), key);
        let metadata = json!({"services": source["services"], "final_state": source["final_state"]});
        assert_eq!(Value::Object(thread.metadata.clone()), metadata);
        let turns = source["turns"].as_array().unwrap();
        assert_eq!(messages.len(), turns.len());
        for (message, turn) in messages.iter().zip(turns) {
            let role = if turn["speaker"] == "user" { Role::User } else { Role::Assistant };
            assert_eq!(message.content.role, role);
            assert_eq!(message.content.author.as_deref(), turn["speaker"].as_str());
            assert_eq!(message.content.parts, [Part::Text(turn["text"].as_str().unwrap().to_owned())]);
            assert_eq!((&message.content.data, message.content.metadata.len()), (&None, 0));
        }
    }
}
