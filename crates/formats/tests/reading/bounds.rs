//! What a record holds is bounded before it takes many times its bytes.

use threadkeep_formats::Format;

use super::{items_and_errors, threads};

fn errors_of(text: String, format: Format) -> Vec<String> {
    let (_, errors) = items_and_errors(text, format);
    errors.into_iter().map(|error| error.to_string()).collect()
}

#[test]
fn a_list_has_a_bounded_number_of_entries() {
    let text = format!(r#"{{"messages":[0{}]}}"#, ",0".repeat(1_000_000));
    let expected = "line 1: messages: a list with more than 1000000 entries";
    assert_eq!(errors_of(text, Format::OpenAiChat), [expected]);
}

#[test]
fn an_object_has_a_bounded_number_of_members() {
    let members = r#","":0"#.repeat(1_000_000);
    let text = format!(r#"{{"mapping":{{"":0{members}}}}}"#);
    let expected = "line 1: mapping: an object with more than 1000000 members";
    assert_eq!(errors_of(text, Format::ChatGptExport), [expected]);
}

#[test]
fn a_value_that_no_store_takes_is_not_read() {
    let large = "x".repeat(4 * 1024 * 1024);
    let text = format!(r#"{{"messages":[{{"role":"user","content":"a","more":"{large}"}}]}}"#);
    let expected = "line 1: message 1: larger than 4194304 bytes, the most that a value may have";
    assert_eq!(errors_of(text, Format::OpenAiChat), [expected]);
}

#[test]
fn beside_the_messages_such_a_value_is_named() {
    let large = "x".repeat(4 * 1024 * 1024);
    let (items, errors) = items_and_errors(format!(r#"{{"more":"{large}","messages":[]}}"#), Format::OpenAiChat);
    assert!(errors.is_empty(), "{errors:?}");
    let metadata = serde_json::to_string(&threads(&items)[0].metadata).unwrap();
    assert_eq!(metadata, r#"{"left_out":["more"]}"#);
}
