//! Invalid records are reported and the other records are read. A damaged file ends with one error.

use std::error::Error;
use std::io::{self, Cursor, Read};

use threadkeep_core::exchange::ImportItem;
use threadkeep_core::limits;
use threadkeep_formats::{Fault, Format, LINE_BYTES, open_stream};

use super::{FIXTURES, errors, external_ids, fixture, gzip, items, items_and_errors, messages, open, threads};

const GOOD: &str = r#"{"messages":[{"role":"user","content":"fine"}]}"#;

fn around(bad: &[u8]) -> Vec<u8> {
    [GOOD.as_bytes(), b"\n", bad, b"\n", GOOD.as_bytes(), b"\n"].concat()
}

/// Returns the error for an invalid message next to a valid one, and checks that the valid one is read.
fn in_message(bad: &str) -> String {
    let conversation = format!(r#"{{"messages":[{bad},{{"role":"user","content":"fine too"}}]}}"#);
    in_conversation(&conversation, 3)
}

/// Returns the error for a conversation between two valid ones, and checks that the other `count` messages are read.
fn in_conversation(bad: &str, count: usize) -> String {
    let (items, errors) = items_and_errors(around(bad.as_ref()), Format::OpenAiChat);
    assert_eq!((threads(&items).len(), messages(&items).len()), (3, count));
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!((error.line, error.record, error.fault.is_final()), (2, 1, false));
    error.fault.to_string()
}

/// Returns the error for a record between two valid ones, and checks that these are read.
fn between(bad: impl AsRef<[u8]>) -> String {
    let (items, errors) = items_and_errors(around(bad.as_ref()), Format::OpenAiChat);
    assert_eq!((threads(&items).len(), messages(&items).len()), (2, 2));
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!((error.line, error.record, error.fault.is_final()), (2, 1, false));
    error.fault.to_string()
}

#[test]
fn line_returns_the_line_of_the_last_item() {
    let mut reader = open(around(b"\n[]"), Some(Format::OpenAiChat)).unwrap();
    assert_eq!(reader.line(), 0);
    let mut lines = Vec::new();
    while reader.next().is_some() {
        lines.push(reader.line());
    }
    // A thread and its message, the bad record, then the second thread and its message.
    assert_eq!(lines, [1, 1, 3, 4, 4]);
}

#[test]
fn an_invalid_line_is_reported_and_the_others_are_read() {
    assert_eq!(between("{\"messages\":"), "invalid JSON (EOF while parsing a value at column 12, byte offset 59)");
    assert_eq!(between("[]"), "expected an object, found an array");
    assert_eq!(between("{}"), "`messages` is missing");
    assert_eq!(between(r#"{"messages":{}}"#), "messages: expected an array, found an object");
}

#[test]
fn an_invalid_message_does_not_affect_others() {
    assert_eq!(in_message("7"), "message 1: expected an object, found a number");
    assert_eq!(in_message(r#"{"content":"x"}"#), "message 1: `role` is missing");
    assert_eq!(
        in_message(r#"{"role":"owner","content":"x"}"#),
        "message 1: `role` is not one of system, developer, user, assistant, tool, function"
    );
    assert_eq!(in_message(r#"{"role":"user","content":5}"#), "message 1: content: expected a string, found a number");
}

#[test]
fn a_conversation_without_a_readable_message_is_rejected() {
    assert_eq!(between(r#"{"messages":[{"content":"x"},7]}"#), "message 1: `role` is missing");
}

#[test]
fn errors_do_not_contain_message_text() {
    let bad = r#"{"messages":[{"role":"my secret","content":"my secret"}], "my secret": 1e999}"#;
    assert!(!between(bad).contains("secret"));
    let export = r#"{"thread":{"id":"my secret","owner":"my secret","created_at":7}}"#;
    let text = format!("{}\n{export}", r#"{"threadkeep":{"version":1}}"#);
    assert_eq!(errors(text, Format::Threadkeep), ["line 2: thread: invalid value at column 17 of the object"]);
}

#[test]
fn invalid_utf_8_is_reported_with_its_line() {
    assert_eq!(
        between(b"{\"messages\":[{\"role\":\"user\",\"content\":\"\xff\"}]}"),
        "invalid UTF-8 on line 2 at byte offset 87"
    );
    let list = [b"[\n{\"a\":\n\n\"\xc3\x28\"},", GOOD.as_bytes(), b"]"].concat();
    assert_eq!(errors(list, Format::OpenAiChat), ["line 2: invalid UTF-8 on line 4 at byte offset 10"]);
}

#[test]
fn nul_is_rejected_in_text_and_replaced_in_names() {
    let nul = r#"{"role":"user","content":"a\u0000b"}"#;
    assert_eq!(in_message(nul), "message 1: invalid text: contains a NUL character");
    let in_metadata = r#"{"messages":[],"note":"a\u0000b","topic":"boats"}"#;
    assert_eq!(in_conversation(in_metadata, 2), "note: invalid thread metadata or state: contains a NUL character");
    let (read, _) = items_and_errors(in_metadata, Format::OpenAiChat);
    let metadata = serde_json::to_string(&threads(&read)[0].metadata).unwrap();
    assert_eq!(metadata, r#"{"left_out":["note"],"topic":"boats"}"#);
    let in_name = r#"{"messages":[{"role":"user","content":"a","name":"A\u0000na"}]}"#;
    assert_eq!(messages(&items(in_name, None))[0].content.author.as_deref(), Some("A na"));
}

#[test]
fn deep_nesting_is_rejected_without_stack_overflow() {
    let nested = |depth: usize| format!("{{\"messages\":[],\"x\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
    assert_eq!(items(nested(limits::JSON_DEPTH), None).len(), 1);
    assert_eq!(between(nested(limits::JSON_DEPTH + 1)), "JSON nesting depth: 65 exceeds the maximum of 64");
    assert_eq!(between(nested(1_000_000)), "JSON nesting depth: 65 exceeds the maximum of 64");
    let first = format!("{}\n{GOOD}", nested(1_000_000));
    assert_eq!(errors(first, Format::OpenAiChat), ["line 1: JSON nesting depth: 65 exceeds the maximum of 64"]);
    let list = format!("[{},{GOOD}]", nested(1_000_000));
    let (items, errors) = items_and_errors(list, Format::OpenAiChat);
    assert_eq!((items.len(), errors.len()), (2, 1));
}

#[test]
fn lone_surrogates_are_rejected() {
    let bad = r#"{"messages":[{"role":"user","content":"\ud800"}]}"#;
    assert!(between(bad).starts_with("message 1: content: "), "{}", between(bad));
}

#[test]
fn messages_that_are_too_large_are_rejected() {
    let large = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(limits::MESSAGE_BYTES + 1));
    assert_eq!(in_message(&large), "message 1: text: 4194305 exceeds the maximum of 4194304");
    // Each part is within the limit, but not the message.
    let part = format!(r#"{{"type":"text","text":"{}"}}"#, "x".repeat(limits::MESSAGE_BYTES / 2));
    let parts = format!(r#"{{"role":"user","content":[{part},{part}]}}"#);
    assert!(in_message(&parts).ends_with("exceeds the maximum of 4194304"), "{}", in_message(&parts));
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let text = |before: usize| {
        let endless = io::repeat(b'x').take(LINE_BYTES as u64 + 1);
        let before = Cursor::new(format!("{GOOD}\n").repeat(before));
        before.chain(endless).chain(Cursor::new(format!("\n{GOOD}\n")))
    };
    let reader = open_stream(Box::new(text(1)), None).unwrap();
    let seen: Vec<_> = reader.map(|item| item.map_err(|error| error.to_string()).map(drop)).collect();
    let too_long = "line 2: line exceeds 67108864 bytes".to_owned();
    assert_eq!(seen, [Ok(()), Ok(()), Err(too_long), Ok(()), Ok(())]);
}

#[test]
fn an_invalid_element_is_reported_with_its_first_line() {
    let list = format!("[\n{GOOD},\n\n{{\n \"messages\": oops\n}},\n{GOOD}]");
    let (items, errors) = items_and_errors(list, Format::OpenAiChat);
    assert_eq!(threads(&items).len(), 2);
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!(error.record, 1);
    assert_eq!(
        error.to_string(),
        format!(
            "line 4: invalid JSON (expected value at line 2 of the record, column 14, byte offset {})",
            2 + GOOD.len() + 3 + 2 + 13
        )
    );
}

#[test]
fn a_truncated_array_ends_with_one_error() {
    for (format, name, _, _) in FIXTURES.into_iter().filter(|(_, name, _, _)| fixture(name).starts_with(b"[")) {
        let whole = items(fixture(name), None);
        let text = fixture(name);
        let cut = text.trim_ascii_end();
        let (good, bad) = items_and_errors(&cut[..cut.len() - 1], format);
        assert_eq!(good, whole, "{name}");
        let [error] = bad.as_slice() else { panic!("{bad:?}") };
        assert!(
            matches!(&error.fault, Fault::File(why) if why.starts_with("the file ends before the array is closed (byte"))
        );
        let (good, bad) = items_and_errors(&cut[..cut.len() - 5], format);
        assert!(good.len() < whole.len() && whole.starts_with(&good), "{name}");
        assert!(matches!(bad.as_slice(), [error] if error.fault.is_final()), "{bad:?}");
    }
}

#[test]
fn a_truncated_first_line_does_not_affect_the_others() {
    let (items, errors) = items_and_errors(format!("{}\n{GOOD}\n{GOOD}", &GOOD[..20]), Format::OpenAiChat);
    assert_eq!((threads(&items).len(), errors.len(), errors[0].line), (2, 1, 1));
}

#[test]
fn a_truncated_last_line_is_one_invalid_record() {
    let text = format!("{GOOD}\n{}", &GOOD[..20]);
    assert_eq!(
        errors(text, Format::OpenAiChat),
        [format!(
            "line 2: invalid JSON (EOF while parsing an object at column 20, byte offset {})",
            GOOD.len() + 1 + 19
        )]
    );
}

#[test]
fn truncated_gzip_data_ends_with_one_error() {
    let lines: String = (0..5000).map(|i| GOOD.replace("fine", &format!("line {i}")) + "\n").collect();
    let compressed = gzip(lines.as_bytes());
    for truncated in [compressed[..compressed.len() - 3].to_vec(), compressed[..compressed.len() / 2].to_vec()] {
        let (good, bad) = items_and_errors(truncated, Format::OpenAiChat);
        assert!(good.len() > 100 && good.len() <= 10_000);
        let [error] = bad.as_slice() else { panic!("{bad:?}") };
        assert!(matches!(&error.fault, Fault::File(why) if why == "damaged or truncated gzip data"));
    }
}

#[test]
fn a_device_error_ends_reading() {
    struct Failing;

    impl Read for Failing {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("device removed"))
        }
    }

    let source = Cursor::new(format!("{GOOD}\n")).chain(Failing);
    let mut reader = open_stream(Box::new(source), None).unwrap();
    assert_eq!(reader.by_ref().take(2).filter(Result::is_ok).count(), 2);
    let error = reader.next().unwrap().unwrap_err();
    assert!(error.fault.is_final());
    assert_eq!(error.source().unwrap().to_string(), "device removed");
    assert!(reader.next().is_none());
}

#[test]
fn a_wrong_format_is_reported_for_every_record() {
    let (items, errors) = items_and_errors(fixture("sgd.jsonl"), Format::ShareGpt);
    assert!(items.is_empty());
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let expected = [1, 2].map(|n| format!("line {n}, conversation d-{n}: `conversations` is missing"));
    assert_eq!(messages, expected);
    assert!(open(fixture("sgd.jsonl"), Some(Format::Threadkeep)).is_err());
}

#[test]
fn metadata_that_is_too_large_is_omitted_and_listed() {
    let text = format!(r#"{{"dialogue_id":"d","turns":[],"services":["A"],"final_state":"{}"}}"#, "x".repeat(300_000));
    let items = items(text, None);
    let metadata = serde_json::to_string(&threads(&items)[0].metadata).unwrap();
    assert_eq!(metadata, r#"{"services":["A"],"left_out":["final_state"]}"#);
}

#[test]
fn a_repeated_id_in_a_conversation_is_replaced() {
    let text = r#"{"uuid":"c","chat_messages":[{"uuid":"m","sender":"human","text":"1"},{"uuid":"m","sender":"human","text":"2"}]}"#;
    let items = items(text, None);
    let ids = external_ids(&items);
    assert_eq!(ids[0], "m");
    assert!(ids[1].starts_with("2:"), "{ids:?}");
}

#[test]
fn every_format_reports_the_location_of_errors() {
    let cases = [
        (Format::ChatGptExport, r#"{"title":"t"}"#, "`mapping` is missing"),
        (Format::ChatGptExport, r#"{"mapping":{"n":{"message":{"id":"m"}}}}"#, "node n: `author` is missing"),
        (Format::ClaudeExport, r#"{"chat_messages":[{"text":"x"}]}"#, "message 1: `sender` is missing"),
        (
            Format::ClaudeExport,
            r#"{"chat_messages":[{"sender":"robot"}]}"#,
            "message 1: `sender` is neither human nor assistant",
        ),
        (Format::ShareGpt, r#"{"conversations":[{"from":"gpt","value":null}]}"#, "message 1: `value` is missing"),
        (
            Format::Locomo,
            r#"{"conversation":{"session_2":[{"speaker":"A","text":"x"},{"text":"x"}]}}"#,
            "session 2, turn 2: `speaker` is missing",
        ),
        (Format::Locomo, r#"{"conversation":{"session_2":7}}"#, "session_2: expected an array, found a number"),
        (Format::Sgd, r#"{"turns":[{"speaker":"cat","text":"x"}]}"#, "turn 1: `speaker` is neither user nor system"),
    ];
    for (format, text, reason) in cases {
        assert_eq!(errors(text, format), [format!("line 1: {reason}")], "{format}");
    }
}

#[test]
fn an_error_names_its_conversation_and_location() {
    let nodes = r#""a":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["fine"]}}},
        "b":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["nul \u0000"]}},"parent":"a"},
        "c":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["after"]}},"parent":"b"}"#;
    let nodes = nodes.replace('\n', "");
    let good = format!(r#"{{"title":"Boats","mapping":{{{nodes}}},"conversation_id":"c-1"}}"#);
    let cyclic = r#"{"title":"Circles","mapping":{"a":{"parent":"a"}},"conversation_id":"c-2"}"#;
    let broken = r#"{"title":"Broken","conversation_id":"c-3","mapping":{"a":oops}}"#;
    let text = format!("[{good},{cyclic},{broken}]");
    let (items, errors) = items_and_errors(text.as_str(), Format::ChatGptExport);
    assert_eq!(external_ids(&items), ["a", "c"], "the child of the skipped message is read");
    let ImportItem::Tree(tree) = &items[0] else { panic!("{items:?}") };
    assert_eq!(tree.nodes.iter().map(|node| node.parent).collect::<Vec<_>>(), [None, Some(0)]);
    let named: Vec<_> = errors
        .iter()
        .map(|error| (error.conversation.title.as_deref().unwrap(), error.conversation.id.as_deref().unwrap()))
        .collect();
    assert_eq!(named, [("Boats", "c-1"), ("Circles", "c-2"), ("Broken", "c-3")]);
    let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let offset = text.find("oops").unwrap();
    assert_eq!(texts[0], "line 1, conversation c-1: node b: invalid text: contains a NUL character");
    assert_eq!(texts[1], "line 1, conversation c-2: mapping: the messages form a cycle");
    assert!(
        texts[2].starts_with("line 1, conversation c-3: invalid JSON (")
            && texts[2].ends_with(&format!("byte offset {offset})")),
        "{}",
        texts[2]
    );
    assert!(!texts.concat().contains("Boats"), "errors must not contain titles");
}
