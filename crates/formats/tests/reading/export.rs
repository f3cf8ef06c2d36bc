//! Threadkeep's own export.

use threadkeep_core::exchange::{ExportLine, ExportedMessage, ExportedThread, ImportItem};
use threadkeep_core::{Content, MessageId, Owner, RecordOwner, Role, ThreadId, Timestamp};
use threadkeep_formats::{Format, FormatError};

use super::{errors, fixture, items, items_and_errors, open};

const HEADER: &str = r#"{"threadkeep":{"version":1,"exported_at":"2026-03-01T12:00:00Z"}}"#;
const THREAD: &str =
    r#"{"thread":{"id":"018f0000-0000-7000-8000-000000000001","owner":"tenant","created_at":"2026-02-01T08:00:00Z"}}"#;
const MESSAGE: &str = r#"{"message":{"seq":1,"id":"018f0000-0000-7000-8000-00000000000a","role":"user","parts":[{"text":"hi"}],"created_at":"2026-02-01T08:00:00Z"}}"#;

fn record(owner: &str, namespace: &str) -> String {
    format!(
        r#"{{"document":{{"owner":{owner},"document":{{"namespace":"{namespace}","key":"k","value":1,"version":1,"expires_at":null}}}}}}"#
    )
}

fn lines(lines: &[&str]) -> String {
    lines.join("\n")
}

#[test]
fn exported_lines_round_trip() {
    let at: Timestamp = "2026-02-01T08:00:00.123456Z".parse().unwrap();
    let thread = ExportedThread {
        id: ThreadId::from_name(b"thread"),
        owner: Owner::Tenant,
        key: None,
        title: Some("two\nlines".to_owned()),
        metadata: Default::default(),
        state: Default::default(),
        created_at: at,
        expires_at: Some(at),
    };
    let message = ExportedMessage {
        seq: 7,
        id: MessageId::from_name(b"message"),
        external_id: Some("x".to_owned()),
        role: Role::Tool,
        author: Some("Ana".to_owned()),
        parts: Content::text(Role::Tool, " \u{1f600}\r\n\u{7}").parts,
        agent: None,
        data: None,
        sources: Vec::new(),
        usage: None,
        metadata: Default::default(),
        revision: 3,
        created_at: at,
    };
    let export = [
        ExportLine::Threadkeep { version: threadkeep_core::exchange::EXPORT_VERSION, exported_at: at },
        ExportLine::Thread(thread.clone()),
        ExportLine::Message(Box::new(message.clone())),
    ];
    let text: String = export.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
    let items = items(text, None);
    let [ImportItem::Thread(read_thread), ImportItem::Message(read_message)] = items.as_slice() else {
        panic!("{items:?}")
    };
    assert_eq!((read_thread.id, read_thread.key.as_ref()), (Some(thread.id), None));
    assert_eq!(
        (&read_thread.title, read_thread.created_at, read_thread.expires_at),
        (&thread.title, Some(at), Some(at))
    );
    assert_eq!((read_message.id, &read_message.external_id), (Some(message.id), &message.external_id));
    assert_eq!(read_message.created_at, Some(at));
    assert_eq!(read_message.content, message.into_content());
}

#[test]
fn json_text_is_preserved_exactly() {
    let items = items(fixture("threadkeep.jsonl"), None);
    let ImportItem::Message(message) = &items[2] else { panic!("{items:?}") };
    assert_eq!(message.content.data.as_ref().unwrap().as_str(), r#"{"line": "7"}"#);
    let ImportItem::Record { owner, record } = &items[3] else { panic!("{items:?}") };
    assert!(matches!(owner, RecordOwner::Thread(_)));
    assert_eq!(record.value.as_str(), r#"{"seats": 2}"#);
}

#[test]
fn a_later_version_is_rejected() {
    let later = HEADER.replace("\"version\":1", "\"version\":2");
    for format in [None, Some(Format::Threadkeep)] {
        let error = open(lines(&[&later, THREAD]), format).unwrap_err();
        assert!(matches!(error, FormatError::LaterVersion { version: 2, known: 1 }));
        assert_eq!(error.to_string(), "export version 2 is not supported; the latest supported version is 1");
    }
    let mixed = lines(&[HEADER, THREAD, MESSAGE, &later, MESSAGE]);
    assert_eq!(
        errors(mixed, Format::Threadkeep),
        ["line 4: export version 2 is not supported", "line 5: message: no valid thread precedes the message"]
    );
}

#[test]
fn concatenated_exports_are_read() {
    assert_eq!(items(lines(&[HEADER, THREAD, MESSAGE, HEADER, THREAD, MESSAGE]), None).len(), 4);
}

#[test]
fn a_header_is_required() {
    let no_header = open(lines(&[THREAD, MESSAGE]), Some(Format::Threadkeep)).unwrap_err();
    assert!(matches!(no_header, FormatError::Unrecognised { .. }), "{no_header}");
    let no_version = open(r#"{"threadkeep":{"version":"one"}}"#, None).unwrap_err();
    assert!(matches!(no_version, FormatError::Unrecognised { .. }), "{no_version}");
}

#[test]
fn messages_of_an_unreadable_thread_are_not_added_to_the_previous_one() {
    let expected = "no valid thread precedes the message";
    assert_eq!(errors(lines(&[HEADER, MESSAGE]), Format::Threadkeep), [format!("line 2: message: {expected}")]);
    let bad_thread = r#"{"thread":{"id":"018f0000-0000-7000-8000-000000000002"}}"#;
    let (items, errors) = items_and_errors(lines(&[HEADER, THREAD, bad_thread, MESSAGE]), Format::Threadkeep);
    assert_eq!(items.len(), 1);
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(messages, ["line 3: thread: missing field `owner`".to_owned(), format!("line 4: message: {expected}")]);
}

#[test]
fn an_invalid_message_does_not_affect_others() {
    let bad = MESSAGE.replace("\"user\"", "\"owner\"");
    let (items, errors) = items_and_errors(lines(&[HEADER, THREAD, &bad, MESSAGE]), Format::Threadkeep);
    assert_eq!((items.len(), errors.len(), errors[0].line), (2, 1, 3));
}

#[test]
fn system_records_and_records_of_other_threads_are_rejected() {
    let system = record(r#""tenant""#, "system/approvals");
    let foreign = record(r#"{"thread":"018f0000-0000-7000-8000-000000000009"}"#, "app/notes");
    let own = record(r#"{"thread":"018f0000-0000-7000-8000-000000000001"}"#, "app/notes");
    let text = lines(&[HEADER, THREAD, &system, &foreign, &own]);
    let (items, errors) = items_and_errors(text, Format::Threadkeep);
    assert!(matches!(items.as_slice(), [_, ImportItem::Record { .. }]), "{items:?}");
    let messages: Vec<_> = errors.iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "line 3, conversation 018f0000-0000-7000-8000-000000000001: document: system records cannot be imported",
            "line 4, conversation 018f0000-0000-7000-8000-000000000001: document: the record belongs to another thread"
        ]
    );
}

#[test]
fn lines_of_an_unknown_kind_are_reported() {
    let text = lines(&[HEADER, r#"{"poem":{}}"#]);
    assert_eq!(errors(text, Format::Threadkeep), ["line 2: not a thread, message or record"]);
}
