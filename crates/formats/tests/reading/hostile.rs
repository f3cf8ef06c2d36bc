//! Hostile files, made from the fixture of each format: every value is replaced by values of other kinds and by values
//! that are too deep, too large or invalid. Each must be read to its end, with items that the stores accept.

use serde_json::{Value, json};
use threadkeep_core::exchange::ImportItem;
use threadkeep_formats::Format;

use super::{FIXTURES, fixture, open};

/// The values that replace others.
fn hostile_values() -> Vec<Value> {
    let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
    let wide = json!(vec![json!({}); 200]);
    vec![
        Value::Null,
        json!(-9_007_199_254_740_993_i64),
        json!(1e300),
        json!(true),
        json!(""),
        json!("\u{0}"),
        json!("\u{202e}..\\../<script>"),
        json!("9999999999999999999999"),
        json!([]),
        json!([[], "x", 7, null, {}]),
        json!({}),
        json!({"": {"": ""}}),
        deep,
        wide,
    ]
}

/// The number of values in a document.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces the value at index `at`, counted in document order.
fn replace(value: &mut Value, at: &mut usize, replacement: &Value) {
    if *at == 0 {
        *value = replacement.clone();
    }
    let Some(next) = at.checked_sub(1) else {
        *at = usize::MAX;
        return;
    };
    *at = next;
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, at, replacement)),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, at, replacement)),
        _ => {}
    }
}

/// Reads a file to its end. The number of items is bounded by the size of the file.
fn read(text: &str, format: Format) {
    let Ok(reader) = open(text, Some(format)) else { return };
    let bound = 2 * text.len() + 2;
    let mut number = 0;
    for item in reader {
        number += 1;
        assert!(number <= bound, "{format}: more than {bound} items");
        match item {
            Ok(ImportItem::Message(message)) => message.content.check().unwrap(),
            Ok(ImportItem::Tree(tree)) => tree.nodes.iter().for_each(|node| node.message.content.check().unwrap()),
            Ok(_) => {}
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}

#[test]
fn every_value_can_be_hostile() {
    let values = hostile_values();
    for (format, name, ..) in FIXTURES.into_iter().filter(|(_, name, ..)| !name.ends_with(".md")) {
        let text = String::from_utf8(fixture(name)).unwrap();
        let records: Vec<Value> = match name.ends_with(".jsonl") {
            true => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            false => vec![serde_json::from_str(&text).unwrap()],
        };
        let lines: Vec<String> = records.iter().map(Value::to_string).collect();
        for (index, record) in records.iter().enumerate() {
            for at in 0..count(record) {
                // Each value is replaced by one of the hostile values in turn; neighbours get different ones.
                for replacement in values.iter().skip((at + index) % 5).step_by(5) {
                    let mut changed = record.clone();
                    replace(&mut changed, &mut { at }, replacement);
                    let mut lines = lines.clone();
                    lines[index] = changed.to_string();
                    read(&lines.join("\n"), format);
                }
            }
        }
    }
}

#[test]
fn every_byte_of_a_markdown_history_can_be_hostile() {
    let text = String::from_utf8(fixture("aider.md")).unwrap();
    for at in (0..text.len()).step_by(7) {
        for inserted in ["\u{0}", "\n", "####", "> ", "# aider chat started at ", "\r", "\u{202e}"] {
            let changed = format!("{}{inserted}{}", &text[..at], &text[at..]);
            read(&changed, Format::Aider);
        }
    }
}

#[test]
fn other_hostile_files_are_read_by_every_reader() {
    let files = [
        "\u{0}".repeat(1_000),
        "[".repeat(100_000),
        "{".repeat(100_000),
        format!("[{}", "{},".repeat(10_000)),
        "{}\n".repeat(10_000),
        "null\n".repeat(1_000),
        "\"".repeat(1_001),
        format!("{{\"a\":\"{}\"}}", "x".repeat(5_000_000)),
        format!("[{}]", vec!["1"; 10_000].join(",")),
        "# aider chat started at \n".repeat(1_000),
    ];
    for format in Format::ALL {
        files.iter().for_each(|text| read(text, format));
    }
}
