//! Session files that programs write: growing files, truncated files, and how each kind of content is read. The first
//! tests cover all formats.

use threadkeep_core::exchange::ImportItem;
use threadkeep_core::{Content, Part, Role, Value};
use threadkeep_formats::{Format, LINE_BYTES};

use super::{
    FIXTURES, errors, external_ids, fixture, items, items_and_errors, keys, messages, open, open_named, threads,
};

/// What identifies a message, and its content.
fn identified(items: &[ImportItem]) -> Vec<(String, Content)> {
    let messages = messages(items);
    messages.iter().map(|message| (message.external_id.clone().unwrap_or_default(), message.content.clone())).collect()
}

/// The formats of programs that append to a file.
fn growing() -> impl Iterator<Item = (Format, String)> {
    let text = |name| String::from_utf8(fixture(name)).unwrap();
    let is_growing = |name: &str| ["codex.jsonl", "gemini-cli.jsonl", "claude-code.jsonl", "aider.md"].contains(&name);
    FIXTURES
        .into_iter()
        .filter(move |(_, name, ..)| is_growing(name))
        .map(move |(format, name, ..)| (format, text(name)))
}

#[test]
fn reading_twice_gives_the_same_identities() {
    for (format, name, ..) in FIXTURES.into_iter().filter(|(format, ..)| *format != Format::Threadkeep) {
        let (first, second) = (items(fixture(name), None), items(fixture(name), None));
        assert_eq!(first, second, "{format}");
        let mut ids: Vec<_> = keys(&first).into_iter().map(str::to_owned).collect();
        ids.dedup();
        assert_eq!(ids.len(), threads(&first).len(), "{format}");
        assert!(ids.iter().all(|key| key.starts_with(&format!("import:{format}:"))), "{format}");
    }
}

#[test]
fn a_growing_file_keeps_the_identities_of_earlier_messages() {
    for (format, text) in growing() {
        let whole = items(text.as_str(), None);
        for (end, _) in text.match_indices('\n') {
            let Ok(reader) = open(&text.as_bytes()[..=end], Some(format)) else { continue };
            let (read, errors): (Vec<_>, Vec<_>) = reader.partition(Result::is_ok);
            let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
            // An answer of Aider that ends without a blank line may be incomplete.
            assert!(errors.is_empty() || format == Format::Aider, "{format}: {errors:?}");
            // The last answer of a chat history of Aider may be continued by the next lines.
            let complete = read.len().saturating_sub(usize::from(format == Format::Aider));
            assert!(whole.starts_with(&read[..complete]), "{format} at byte {end}");
        }
    }
}

#[test]
fn a_file_truncated_at_any_byte_yields_only_messages_of_the_complete_file() {
    for (format, text) in growing() {
        let whole = identified(&items(text.as_str(), None));
        for end in
            (1..text.len()).step_by(37).filter(|end| text.is_char_boundary(*end) && !text[..*end].ends_with('\n'))
        {
            let Ok(reader) = open(&text.as_bytes()[..end], Some(format)) else { continue };
            let (read, errors): (Vec<_>, Vec<_>) = reader.partition(Result::is_ok);
            let read: Vec<_> = read.into_iter().map(Result::unwrap).collect();
            let read = identified(&read);
            assert!(whole.starts_with(&read), "{format} at byte {end}");
            assert!(errors.len() <= 1, "{format} at byte {end}: {errors:?}");
        }
    }
}

#[test]
fn a_session_that_is_one_object_keeps_the_identities_of_earlier_messages() {
    for (name, list) in [("continue.json", "history"), ("cline.json", "messages")] {
        let mut session: Value = serde_json::from_slice(&fixture(name)).unwrap();
        let whole = identified(&items(session.to_string(), None));
        while let Some(list) = session[list].as_array_mut().filter(|list| !list.is_empty()) {
            list.pop();
            let read = identified(&items(session.to_string(), None));
            assert!(whole.starts_with(&read), "{name}");
        }
    }
}

/// Returns each message as `ROLE PARTS`, where the parts are abbreviated to their kind and text.
fn outline(items: &[ImportItem]) -> Vec<String> {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Reasoning(text) => format!("({text})"),
        Part::ToolCall(call) => format!("{}{}", call.name, call.arguments.as_str()),
        Part::ToolResult(result) => format!("={}", result.output.trim_end()),
        Part::Image(_) => "an image".to_owned(),
        Part::Raw { .. } => "raw".to_owned(),
    };
    let line = |content: &Content| {
        let parts: Vec<_> = content.parts.iter().map(part).collect();
        format!("{} {}", content.role, parts.join(" | "))
    };
    messages(items).iter().map(|message| line(&message.content)).collect()
}

const NOTES: &str = "The pier opens at nine.\nOn Sundays at ten.";
const QUESTION: &str = "user Please read the notes and tell me when the pier opens.";
const ANSWER: &str = "assistant The pier opens at nine, and on Sundays at ten.";
const LEDGER: [&str; 2] = [
    "user Should the ledger be in Postgres or in SQLite?",
    "assistant Decision: the ledger is a SQLite file, because it has one writer.",
];

#[test]
fn codex_sessions_have_texts_reasoning_and_tools() {
    let items = items(fixture("codex.jsonl"), None);
    let outline: Vec<_> = outline(&items).into_iter().filter(|line| !line.starts_with("system")).collect();
    let output =
        "Chunk ID: 3b12e4\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 11\nOutput:";
    let expected = [
        QUESTION,
        "assistant (I should read the file.)",
        r#"assistant exec_command{"cmd": "cat notes.txt"}"#,
        &format!("tool ={output}\n{NOTES}"),
        "assistant (The notes name the time.)",
        ANSWER,
        LEDGER[0],
        LEDGER[1],
    ];
    assert_eq!(outline, expected);
    assert_eq!(threads(&items)[0].metadata["cwd"], "/home/ana/pier");
}

#[test]
fn other_forms_of_codex_items_are_read() {
    let meta =
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s","forked_from_id":"p"}}"#;
    let parent = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"p"}}"#;
    let item =
        |payload: &str| format!(r#"{{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{payload}}}"#);
    let lines = [
        meta.to_owned(),
        parent.to_owned(),
        item(r#"{"type":"custom_tool_call","call_id":"c1","name":"apply_patch","input":"*** Begin Patch"}"#),
        item(r#"{"type":"custom_tool_call_output","call_id":"c1","output":[{"type":"input_text","text":"Done"}]}"#),
        item(r#"{"type":"local_shell_call","call_id":"c2","action":{"type":"exec","command":["ls"]}}"#),
        item(r#"{"type":"function_call_output","call_id":"c2","output":{"content":"no","success":false}}"#),
        item(r#"{"type":"reasoning","id":"r","summary":[],"encrypted_content":"gAAA"}"#),
        item(r#"{"type":"ghost_snapshot","ghost_commit":{"id":"1"}}"#),
        item(
            r#"{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://example.com/a.png"}]}"#,
        ),
        item(r#"{"type":"web_search_call","action":{"type":"search","query":"pier"}}"#),
        r#"{"timestamp":"2026-01-01T00:00:00Z","type":"compacted","payload":{"message":"We spoke of the pier."}}"#
            .to_owned(),
    ];
    let items = items(lines.join("\n") + "\n", None);
    assert_eq!(keys(&items), ["import:codex:s"], "the lines of the parent belong to the fork");
    let expected = [
        r#"assistant apply_patch"*** Begin Patch""#,
        "tool =Done",
        r#"assistant local_shell{"type":"exec","command":["ls"]}"#,
        "tool =no",
        "user an image",
        "system raw",
        "system We spoke of the pier.",
    ];
    assert_eq!(outline(&items), expected);
    assert!(matches!(&messages(&items)[3].content.parts[0], Part::ToolResult(result) if result.is_error));
}

#[test]
fn gemini_messages_that_are_written_again_are_read_once() {
    let items = items(fixture("gemini-cli.jsonl"), None);
    let expected = [
        QUESTION,
        "assistant (Planning: I should read the file.)",
        r#"assistant read_file{"file_path":"notes.txt","absolute_path":"/home/ana/pier/notes.txt"}"#,
        &format!("tool ={NOTES}"),
        "assistant (Reading the answer: The notes name the time.) | The pier opens at nine, and on Sundays at ten.",
        LEDGER[0],
        LEDGER[1],
    ];
    assert_eq!(outline(&items)[1..], expected);
    assert_eq!(messages(&items)[0].content.role, Role::System);
}

#[test]
fn earlier_gemini_sessions_are_one_object() {
    let session = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00Z","messages":[
        {"id":"1","timestamp":"2026-01-01T00:00:01Z","type":"user","content":"words"},
        {"id":"2","timestamp":"2026-01-01T00:00:02Z","type":"error","content":"no connection"},
        {"id":"3","timestamp":"2026-01-01T00:00:03Z","type":"gemini","content":"","toolCalls":[
            {"id":"c","name":"ls","args":{},"status":"error","result":[{"functionResponse":{"id":"c","name":"ls","response":{"error":"denied"}}}]}]}]}"#;
    let items = items(session, None);
    assert_eq!(outline(&items), ["user words", "system no connection", "assistant ls{}", "tool =denied"]);
}

#[test]
fn continue_and_cline_sessions_have_texts_and_tools() {
    let outline_of = |name: &str| outline(&items(fixture(name), None));
    let call = r#"assistant I will read the file. | Read{"filepath":"notes.txt"}"#;
    let result = format!("tool =Content of notes.txt:\n{NOTES}");
    assert_eq!(outline_of("continue.json"), [QUESTION, call, &result, ANSWER, LEDGER[0], LEDGER[1]]);
    let cline = outline_of("cline.json");
    assert_eq!((&*cline[0], &*cline[3]), (QUESTION, ANSWER), "the tags around the question are removed");
    assert!(cline[1].starts_with("assistant I will read the file. | read_files{") && cline[2].starts_with("tool =["));
}

#[test]
fn a_task_of_an_editor_is_named_by_its_folder() {
    let reader = open_named(fixture("cline-task.json"), "api_conversation_history.json", "1795646226173");
    assert_eq!(reader.format(), Format::Cline);
    let items: Vec<_> = reader.map(Result::unwrap).collect();
    assert_eq!(keys(&items), ["import:cline:1795646226173"]);
    assert_eq!(threads(&items)[0].created_at.unwrap().to_string(), "2026-11-25T22:37:06.173Z");
    let call = r#"assistant I will read the file. | read_file{"path": "notes.txt"}"#;
    assert_eq!(outline(&items), [&format!("{QUESTION} | raw"), call, &format!("tool ={NOTES} | raw"), ANSWER]);
    assert!(
        open(fixture("cline-task.json"), None).is_err(),
        "without the file name, the list could come from any program"
    );
}

#[test]
fn aider_histories_have_a_thread_for_each_session() {
    let items = items(fixture("aider.md"), None);
    let words: Vec<_> = outline(&items).into_iter().filter(|line| !line.starts_with("system")).collect();
    let question = "user Please read the notes and tell me when the pier opens.\n\nIt should say so.";
    assert_eq!(words, [question, "assistant The pier opens at nine.", LEDGER[0], LEDGER[1]]);
    let created: Vec<_> = threads(&items).iter().map(|thread| thread.created_at.unwrap().to_string()).collect();
    assert_eq!(created, ["2026-11-25T22:55:40Z", "2026-11-25T22:55:54Z"]);
    let (items, errors) = items_and_errors("# aider chat started at soon\n\n#### words  \n\n", Format::Aider);
    assert!(errors.is_empty() && outline(&items) == ["user words"] && threads(&items)[0].created_at.is_none());
}

#[test]
fn branches_of_open_webui_and_librechat_are_trees() {
    for (name, count, current) in [("open-webui.json", 4, Some(3)), ("librechat.json", 3, None)] {
        let items = items(fixture(name), None);
        let [ImportItem::Tree(tree)] = &items[..] else { panic!("{items:?}") };
        assert_eq!((tree.nodes.len(), tree.current), (count, current), "{name}");
    }
    let chat = outline(&items(fixture("open-webui.json"), None));
    assert!(chat.contains(&"user What is on this picture? | an image | raw".to_owned()), "{chat:?}");
    assert!(chat.iter().any(|line| line.starts_with("assistant (> One writer is enough.) | Decision: the ledger")));
    let libre = outline(&items(fixture("librechat.json"), None));
    let tools = r#"assistant (I should read the file.) | read_file{"path":"notes.txt"} | =The pier opens at nine. | The pier opens at nine."#;
    assert_eq!(libre, ["user Read the notes.", tools, "assistant At nine."]);
}

#[test]
fn deeply_nested_messages_of_librechat_are_read() {
    let nested = |depth: usize| {
        let start: String = (0..depth).map(|at| format!(r#"{{"messageId":"{at}","text":"t","children":["#)).collect();
        format!(r#"{{"conversationId":"c","messagesTree":[{start}{}]}}"#, "]}".repeat(depth))
    };
    assert_eq!(messages(&items(nested(500), None)).len(), 500);
    assert_eq!(errors(nested(2_002), Format::LibreChat), ["line 1, conversation c: more than 2000 nested messages"]);
}

#[test]
fn cycles_are_rejected() {
    let chat = r#"{"id":"c","title":"t","chat":{"history":{"messages":{"a":{"parentId":"b","role":"user","content":"x"},"b":{"parentId":"a","role":"user","content":"x"}}}}}"#;
    assert_eq!(errors(chat, Format::OpenWebUi), ["line 1, conversation c: history: the messages form a cycle"]);
    let libre = r#"{"conversationId":"c","messages":[{"messageId":"a","parentMessageId":"a","text":"x"}]}"#;
    assert_eq!(errors(libre, Format::LibreChat), ["line 1, conversation c: messages: the messages form a cycle"]);
}

#[test]
fn a_slack_channel_is_named_by_its_folder() {
    let items: Vec<_> = open_named(fixture("slack.json"), "2026-11-25.json", "general").map(Result::unwrap).collect();
    assert_eq!((keys(&items), threads(&items)[0].title.as_deref()), (vec!["import:slack:general"], Some("#general")));
    assert_eq!(
        external_ids(&items),
        ["1795646000.000100", "1795646100.123456", "1795646101.000200", "1795646102.000300"]
    );
    let expected = [
        "system <@U1> has joined the channel",
        "user Is the pier open & dry?",
        "assistant Open until nine.",
        "user See the plan",
    ];
    assert_eq!(outline(&items), expected);
    let authors: Vec<_> = messages(&items).iter().map(|message| message.content.author.clone().unwrap()).collect();
    assert_eq!(authors, ["U1", "ana", "harbour", "U2"]);
    assert_eq!(messages(&items)[1].created_at.unwrap().to_string(), "2026-11-25T22:35:00.123456Z");
}

#[test]
fn texts_of_blocks_and_attachments_of_slack_are_read() {
    let file = r#"[
        {"type":"message","subtype":"bot_message","bot_id":"B1","ts":"1777629602.000100","text":"","attachments":[{"title":"Alarm","text":"Disk &lt;full&gt;","fields":[{"title":"Host","value":"pier-1"}]},{"fallback":"See the log."}]},
        {"type":"message","user":"U1","ts":"1777629603.000100","text":"","blocks":[{"type":"section","text":{"type":"mrkdwn","text":"One"}},{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"two"}]}]}]},
        {"type":"message","user":"U1","ts":"1777629604.000100","text":"Said once","blocks":[{"type":"section","text":{"type":"mrkdwn","text":"Said once"}}]}
    ]"#;
    let read: Vec<_> = open_named(file, "2026-05-01.json", "ops").collect::<Result<_, _>>().unwrap();
    assert_eq!(
        outline(&read),
        ["assistant Alarm\nDisk <full>\nHost pier-1\nSee the log.", "user One\ntwo", "user Said once"]
    );
}

#[test]
fn a_line_that_is_too_long_is_skipped_in_each_layout() {
    let meta = r#"{"timestamp":"2026-01-01T00:00:00Z","type":"session_meta","payload":{"id":"s"}}"#;
    let long = "x".repeat(LINE_BYTES);
    assert_eq!(
        errors(format!("{meta}\n{long}\n"), Format::Codex),
        [format!("line 2: line exceeds {LINE_BYTES} bytes")]
    );
    let text = format!("# aider chat started at 2026-01-01 00:00:00\n\n{long}\n\n#### words  \n\n");
    let (items, errors) = items_and_errors(text, Format::Aider);
    assert_eq!(outline(&items), ["user words"]);
    assert_eq!(errors[0].to_string(), format!("line 3: block exceeds {LINE_BYTES} bytes"));
}
