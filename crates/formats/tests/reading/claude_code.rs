//! Session files of Claude Code: growing files, truncated lines, sub-agents, and hostile input.

use threadkeep_core::{Part, Role};
use threadkeep_formats::{Format, LINE_BYTES};

use super::{errors, external_ids, fixture, items, items_and_errors, keys, messages, threads};

fn session() -> String {
    String::from_utf8(fixture("claude-code.jsonl")).unwrap()
}

fn line(uuid: &str, members: &str) -> String {
    format!(r#"{{"type":"user","uuid":"{uuid}","sessionId":"s",{members}}}"#)
}

fn text(uuid: &str) -> String {
    line(uuid, r#""message":{"role":"user","content":"words"}"#)
}

#[test]
fn a_message_that_was_sent_while_the_model_was_working_is_the_users() {
    let queued = r#"{"type":"attachment","uuid":"q","sessionId":"s","attachment":{"type":"queued_command","prompt":"Also check the tide.","commandMode":"prompt"}}"#;
    let items = items(format!("{}\n{queued}\n", text("a")), None);
    let content = &messages(&items)[1].content;
    assert_eq!((content.role, content.plain_text().into_owned()), (Role::User, "Also check the tide.".to_owned()));
}

#[test]
fn each_kind_of_content_is_read() {
    let items = items(session(), None);
    let contents: Vec<_> = messages(&items).iter().map(|message| &message.content).collect();
    let has = |expected: fn(&Part) -> bool| contents.iter().flat_map(|content| &content.parts).any(expected);
    assert!(has(|part| matches!(part, Part::Reasoning(text) if text == "I should read the file.")));
    assert!(has(|part| matches!(part, Part::ToolCall(call) if call.name == "Bash")));
    assert!(has(|part| matches!(part, Part::ToolResult(result) if result.output == "The pier opens at nine.")));
    assert!(contents.iter().any(|content| content.role == Role::Tool));
    let summary = contents.iter().find(|content| content.metadata.contains_key("isCompactSummary")).unwrap();
    assert_eq!(summary.role, Role::System);
    assert_eq!(threads(&items)[0].created_at, messages(&items)[0].created_at);
    assert!(messages(&items).iter().all(|message| message.created_at.is_some()));
}

#[test]
fn a_growing_file_keeps_the_identities_of_earlier_messages() {
    let session = session();
    let all = items(session.as_str(), None);
    for (end, _) in session.match_indices('\n') {
        let (read, errors) = items_and_errors(&session[..=end], Format::ClaudeCode);
        assert!(errors.is_empty() && all.starts_with(&read), "{errors:?}");
    }
}

#[test]
fn a_truncated_last_line_is_reported_and_read_when_it_is_complete() {
    let session = session();
    let last = session.trim_end().rfind('\n').unwrap() + 1;
    let before = items(&session[..last], None);
    let (read, errors) = items_and_errors(&session[..last + 20], Format::ClaudeCode);
    assert_eq!(read, before);
    let [error] = errors.as_slice() else { panic!("{errors:?}") };
    assert_eq!(error.line, session.lines().count() as u64);
    assert!(error.to_string().contains("invalid JSON"), "{error}");
    assert!(items(session, None).starts_with(&before));
}

#[test]
fn a_sub_agent_has_its_own_thread() {
    let items = items(fixture("claude-code-agent.jsonl"), None);
    let [key] = keys(&items)[..] else { panic!("{items:?}") };
    assert!(key.ends_with("/ace9afc197975d22b"), "{key}");
    assert_eq!(messages(&items).len(), 2);
}

#[test]
fn unknown_content_is_kept_verbatim() {
    let image = r#"{"type":"image","source":{"type":"base64","data":"AA=="}}"#;
    let message = line("a", &format!(r#""message":{{"role":"user","content":[{image}]}}"#));
    let attachment = r#"{"type":"attachment","uuid":"b","sessionId":"s","attachment":{"type":"file"}}"#;
    let items = items(format!("{message}\n{attachment}\n"), None);
    let parts: Vec<_> = messages(&items).iter().flat_map(|message| &message.content.parts).collect();
    let [Part::Raw { json: first, .. }, Part::Raw { json: second, .. }] = parts[..] else { panic!("{parts:?}") };
    assert_eq!((first.as_str(), second.as_str()), (image, attachment));
}

#[test]
fn invalid_lines_are_reported_and_the_others_are_read() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let bad = [
        (line("x", r#""message":7"#), "message: expected an object, found a number"),
        (line("x", r#""message":{"role":"owner","content":""}"#), "`role` is neither user nor assistant"),
        (line("x", r#""message":{"role":"user","content":7}"#), "content: expected a string, found a number"),
        (line("x", r#""message":{"role":"user","content":[7]}"#), "content 1: expected an object, found a number"),
        (line("x", r#""message":{"role":"user"}"#), "`content` is missing"),
        (line("x", r#""cwd":"a""#), "`message` is missing"),
        (line("x", &format!(r#""message":{deep}"#)), "JSON nesting depth: 65 exceeds the maximum of 64"),
        (r#"{"type":"user","uuid":"x","message":{"role":"user","content":""}}"#.to_owned(), "`sessionId` is missing"),
        (r#"{"type":5}"#.to_owned(), "type: expected a string, found a number"),
        ("[]".to_owned(), "expected an object, found an array"),
    ];
    for (bad, expected) in bad {
        let (items, errors) = items_and_errors(format!("{}\n{bad}\n{}\n", text("a"), text("b")), Format::ClaudeCode);
        assert_eq!(external_ids(&items), ["a", "b"]);
        assert_eq!(errors.len(), 1, "{expected}");
        assert_eq!(errors[0].to_string(), format!("line 2, conversation s: {expected}"));
    }
}

#[test]
fn a_line_that_is_too_long_is_skipped() {
    let long = "x".repeat(LINE_BYTES);
    let found = errors(format!("{}\n{long}\n{}\n", text("a"), text("b")), Format::ClaudeCode);
    assert_eq!(found, [format!("line 2: line exceeds {LINE_BYTES} bytes")]);
}

#[test]
fn a_cycle_of_parents_does_not_affect_the_order() {
    let message = |uuid: &str, parent: &str| {
        line(uuid, &format!(r#""parentUuid":"{parent}","message":{{"role":"user","content":"words"}}"#))
    };
    let items = items(format!("{}\n{}\n", message("a", "b"), message("b", "a")), None);
    assert_eq!(external_ids(&items), ["a", "b"]);
}
