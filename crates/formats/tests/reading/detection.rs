//! Format detection, and the errors for unknown formats.

use std::error::Error;
use std::io::{self, Cursor, Read};

use threadkeep_formats::{FileName, Format, FormatError, Reader, open_named_stream, open_stream};

use super::{FIXTURES, fixture, fixture_path, gzip, items, open};

#[test]
fn the_first_record_determines_the_format() {
    for (format, name, _, _) in FIXTURES {
        assert_eq!(open(fixture(name), None).unwrap().format(), format);
    }
}

#[test]
fn format_names_round_trip() {
    for format in Format::ALL {
        assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
    }
    assert_eq!(
        "csv".parse::<Format>().unwrap_err().to_string(),
        "unknown format `csv`; supported formats are threadkeep, openai-chat, chatgpt, claude, sharegpt, locomo, sgd, claude-code, codex, gemini-cli, continue, cline, aider, open-webui, librechat, slack"
    );
}

#[test]
fn gzip_is_detected_by_content_and_not_by_name() {
    let folder = tempfile::tempdir().unwrap();
    for (format, name, _, _) in FIXTURES {
        let path = folder.path().join(name);
        std::fs::write(&path, gzip(&fixture(name))).unwrap();
        let mut reader = threadkeep_formats::open(&path, None).unwrap();
        assert_eq!(reader.format(), format);
        let plain = open_named_stream(Box::new(Cursor::new(fixture(name))), FileName::of(&path), None).unwrap();
        let plain: Vec<_> = plain.map(Result::unwrap).collect();
        assert_eq!(reader.by_ref().map(Result::unwrap).collect::<Vec<_>>(), plain);
        assert_eq!(reader.bytes_read(), std::fs::metadata(&path).unwrap().len());
    }
}

#[test]
fn several_gzip_members_are_read_as_one_file() {
    let text = fixture("sgd.jsonl");
    let middle = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let members = [gzip(&text[..middle]), gzip(&text[middle..])].concat();
    assert_eq!(items(members, None), items(text, None));
}

#[test]
fn a_byte_order_mark_and_carriage_returns_are_ignored() {
    for (_, name, _, _) in FIXTURES {
        let text = String::from_utf8(fixture(name)).unwrap();
        let plain = items(text.as_str(), None);
        assert_eq!(items(format!("\u{feff}{text}"), None), plain, "{name}");
        if name.ends_with(".jsonl") {
            assert_eq!(items(text.replace('\n', "\r\n"), None), plain, "{name}");
            assert_eq!(items(text.replace('\n', "\n \n"), None), plain, "{name}");
        }
    }
}

#[test]
fn the_layout_does_not_depend_on_the_format() {
    let lines = String::from_utf8(fixture("sgd.jsonl")).unwrap();
    let expected = items(lines.as_str(), None);
    let list = format!("[{}]", lines.trim().replace('\n', ","));
    assert_eq!(items(list, None), expected);
    assert_eq!(items(lines.trim_end(), None), expected);
    let pretty: String = lines
        .lines()
        .map(|line| serde_json::to_string_pretty(&serde_json::from_str::<serde_json::Value>(line).unwrap()).unwrap())
        .collect();
    assert_eq!(items(pretty, None), expected);
}

#[test]
fn invalid_first_records_do_not_prevent_detection() {
    let text = format!("oops\n{{}}\n{}", String::from_utf8(fixture("sgd.jsonl")).unwrap());
    let reader = open(text, None).unwrap();
    assert_eq!(reader.format(), Format::Sgd);
    let results: Vec<_> = reader.map(|item| item.is_ok()).collect();
    assert_eq!(results[..3], [false, false, true]);
    assert_eq!(results.len(), 2 + 8);
}

#[test]
fn unknown_formats_are_described() {
    let found = |bytes: &[u8]| match open(bytes, None) {
        Err(FormatError::Unrecognised { found }) => found,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        found(b"name,age\nAna,3\n"),
        "an invalid first record (line 1: invalid JSON (expected ident at column 2, byte offset 1))"
    );
    assert_eq!(found(b"\n[1, 2]"), "an invalid first record (line 2: expected an object, found a number)");
    assert_eq!(found(b"[]"), "an empty array");
    assert_eq!(found(b"{}"), "objects with no fields");
    assert_eq!(found(br#"{"a":1,"b\n":{"messages":[]}}"#), "objects with the fields `a`, `b\u{fffd}`");
    assert_eq!(
        found(br#"{"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1}"#),
        "objects with the fields `1`, `2`, `3`, `4`, `5`, `6`, `7`, `8` and others"
    );
    assert!(found(b"PK\x03\x04\x14\x00").starts_with("a zip archive"));
    assert!(found(b"\xff\xfe{\x00").starts_with("UTF-16 text"));
    assert!(found(&gzip(&gzip(b"{}"))).starts_with("gzip data inside"));
    assert_eq!(found(&gzip(b"{}")[..12]), "damaged or truncated gzip data");
    assert_eq!(found(b"\x1f\x8b"), "damaged or truncated gzip data");
    assert!(
        found(b"[{\"messages\": [").starts_with("an invalid first record (line 1: the file ends inside this record")
    );
    let error = open(&b"{}"[..], None).unwrap_err().to_string();
    assert!(
        error.ends_with(
            "supported formats are threadkeep, openai-chat, chatgpt, claude, sharegpt, locomo, sgd, claude-code, codex, gemini-cli, continue, cline, aider, open-webui, librechat, slack"
        ),
        "{error}"
    );
}

#[test]
fn an_empty_file_has_a_separate_error() {
    for bytes in [&b""[..], b" \r\n\t\n", "\u{feff}".as_bytes(), &gzip(b"")] {
        for format in [None, Some(Format::ShareGpt)] {
            assert!(matches!(open(bytes, format), Err(FormatError::Empty)), "{bytes:?}");
        }
    }
    assert_eq!(items(&b"[]"[..], Some(Format::ShareGpt)), []);
}

#[test]
fn the_error_for_a_missing_file_contains_its_path() {
    let path = fixture_path("nothing.json");
    let error = threadkeep_formats::open(&path, None).unwrap_err();
    assert_eq!(error.to_string(), format!("cannot open {}", path.display()));
    assert!(error.source().is_some());
    assert!(matches!(threadkeep_formats::open(&fixture_path(""), None), Err(FormatError::Read(_))));
}

#[test]
fn a_source_can_return_one_byte_at_a_time() {
    struct OneByteReader(std::vec::IntoIter<u8>);

    impl Read for OneByteReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match (self.0.next(), buffer.first_mut()) {
                (Some(byte), Some(slot)) => *slot = byte,
                _ => return Ok(0),
            }
            Ok(1)
        }
    }

    for (_, name, _, _) in FIXTURES {
        for bytes in [fixture(name), gzip(&fixture(name)), with_byte_order_mark(name)] {
            let reader: Reader = open_stream(Box::new(OneByteReader(bytes.into_iter())), None).unwrap();
            assert_eq!(reader.map(Result::unwrap).collect::<Vec<_>>(), items(fixture(name), None), "{name}");
        }
    }
}

fn with_byte_order_mark(name: &str) -> Vec<u8> {
    ["\u{feff}".as_bytes(), &fixture(name)].concat()
}
