//! Limits on the contents of a record, which bound memory use.

use threadkeep_formats::Format;

use super::{items_and_errors, threads};

fn errors_of(text: String, format: Format) -> Vec<String> {
    let (_, errors) = items_and_errors(text, format);
    errors.into_iter().map(|error| error.to_string()).collect()
}

#[test]
fn the_number_of_array_entries_is_limited() {
    let text = format!(r#"{{"messages":[0{}]}}"#, ",0".repeat(1_000_000));
    let expected = "line 1: messages: more than 1000000 entries";
    assert_eq!(errors_of(text, Format::OpenAiChat), [expected]);
}

#[test]
fn the_number_of_object_fields_is_limited() {
    let members = r#","":0"#.repeat(1_000_000);
    let text = format!(r#"{{"mapping":{{"":0{members}}}}}"#);
    let expected = "line 1: mapping: more than 1000000 fields";
    assert_eq!(errors_of(text, Format::ChatGptExport), [expected]);
}

#[test]
fn a_value_larger_than_a_message_is_rejected() {
    let large = "x".repeat(4 * 1024 * 1024);
    let text = format!(r#"{{"messages":[{{"role":"user","content":"a","more":"{large}"}}]}}"#);
    let expected = "line 1: message 1: value exceeds 4194304 bytes";
    assert_eq!(errors_of(text, Format::OpenAiChat), [expected]);
}

#[test]
fn a_large_value_next_to_the_messages_is_omitted_and_listed() {
    let large = "x".repeat(4 * 1024 * 1024);
    let (items, errors) = items_and_errors(format!(r#"{{"more":"{large}","messages":[]}}"#), Format::OpenAiChat);
    assert!(errors.is_empty(), "{errors:?}");
    let metadata = serde_json::to_string(&threads(&items)[0].metadata).unwrap();
    assert_eq!(metadata, r#"{"left_out":["more"]}"#);
}
