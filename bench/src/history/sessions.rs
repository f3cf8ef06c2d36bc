//! Sessions as the programs write them, with generated texts. The shapes are those of the fixtures of the readers.

use serde_json::{Value, json};

use crate::texts::Language;

/// The number of exchanges in a session.
const EXCHANGES: u64 = 50;
/// The sizes of the texts of an exchange.
const QUESTION_BYTES: usize = 300;
const REASONING_BYTES: usize = 250;
const ANSWER_BYTES: usize = 900;
const OUTPUT_BYTES: usize = 4_000;
/// When the first session began, in seconds since the Unix epoch.
const BEGIN: i64 = 1_750_000_000;

/// A program whose sessions are generated.
#[derive(Clone, Copy, Debug)]
pub(super) enum Program {
    ClaudeCode,
    Codex,
    GeminiCli,
    Cline,
    Continue,
}

/// The programs of 20 consecutive sessions.
pub(super) const MIX: [Program; 20] = {
    use Program::{ClaudeCode, Cline, Codex, Continue, GeminiCli};
    [
        ClaudeCode, Codex, ClaudeCode, GeminiCli, ClaudeCode, Codex, ClaudeCode, Cline, ClaudeCode, Codex, ClaudeCode,
        Continue, ClaudeCode, Codex, GeminiCli, ClaudeCode, Cline, Codex, ClaudeCode, Continue,
    ]
};

/// A generated session.
pub(super) struct Session {
    /// Its path in the home folder.
    pub(super) path: String,
    pub(super) text: String,
}

/// Returns a word that only the last question of a session contains.
pub(super) fn marker(number: u64) -> String {
    format!("marker{number}q")
}

/// The texts of an exchange.
struct Exchange {
    question: String,
    reasoning: String,
    answer: String,
    output: String,
    /// The time in milliseconds.
    at: i64,
    id: String,
}

impl Exchange {
    fn time(&self) -> String {
        jiff::Timestamp::from_millisecond(self.at).map_or_else(|_| String::new(), |at| format!("{at:.3}"))
    }
}

fn exchanges(language: &Language, session: u64) -> Vec<Exchange> {
    let exchange = |index: u64| {
        let number = session * EXCHANGES + index;
        let text = |part: u64, bytes| language.text(number * 4 + part, bytes);
        let mut question = text(0, QUESTION_BYTES);
        if index + 1 == EXCHANGES {
            question = format!("{question} {}", marker(session));
        }
        let at = (BEGIN + i64::try_from(number).unwrap_or_default() * 60) * 1_000;
        let id = format!("{number:012x}");
        Exchange {
            question,
            reasoning: text(1, REASONING_BYTES),
            answer: text(2, ANSWER_BYTES),
            output: text(3, OUTPUT_BYTES),
            at,
            id,
        }
    };
    (0..EXCHANGES).map(exchange).collect()
}

impl Program {
    /// Returns the session with this number.
    pub(super) fn session(self, language: &Language, number: u64) -> Session {
        let exchanges = exchanges(language, number);
        let id = format!("0e3c1aa9-af7b-4cfa-a442-{number:012x}");
        let project = number % 20;
        let (path, text) = match self {
            Self::ClaudeCode => (
                format!(".claude/projects/-home-ana-project{project}/{id}.jsonl"),
                lines(exchanges.iter().flat_map(|exchange| claude_code(exchange, &id, project))),
            ),
            Self::Codex => {
                let meta = json!({ "id": id, "cwd": format!("/home/ana/project{project}"), "cli_version": "0.169.0" });
                let first = json!({ "timestamp": exchanges[0].time(), "type": "session_meta", "payload": meta });
                (
                    format!(".codex/sessions/2025/{:02}/rollout-{number:05}-{id}.jsonl", number % 12 + 1),
                    lines(std::iter::once(first).chain(exchanges.iter().flat_map(codex))),
                )
            }
            Self::GeminiCli => {
                let time = exchanges[0].time();
                let first = json!({ "sessionId": id, "projectHash": id, "startTime": time, "lastUpdated": time, "kind": "main" });
                (
                    format!(".gemini/tmp/project{project}/chats/session-{id}.jsonl"),
                    lines(std::iter::once(first).chain(exchanges.iter().flat_map(gemini))),
                )
            }
            Self::Cline => {
                let messages: Vec<Value> = exchanges.iter().flat_map(cline).collect();
                let session = json!({ "version": 1, "agent": "lead", "sessionId": id, "messages": messages });
                (format!(".cline/data/sessions/{id}/{id}.messages.json"), session.to_string())
            }
            Self::Continue => {
                let history: Vec<Value> = exchanges.iter().flat_map(continue_dev).collect();
                let session = json!({ "sessionId": id, "title": format!("Session {number}"), "history": history });
                (format!(".continue/sessions/{id}.json"), session.to_string())
            }
        };
        Session { path, text }
    }
}

fn lines(values: impl Iterator<Item = Value>) -> String {
    values.map(|value| value.to_string() + "\n").collect()
}

fn claude_code(exchange: &Exchange, session: &str, project: u64) -> Vec<Value> {
    let call = format!("toolu_{}", exchange.id);
    let contents = [
        ("user", json!(exchange.question)),
        ("assistant", json!([{ "type": "thinking", "thinking": exchange.reasoning, "signature": "c2ln" }])),
        (
            "assistant",
            json!([{ "type": "tool_use", "id": call, "name": "Read", "input": { "file_path": "notes.txt" } }]),
        ),
        ("user", json!([{ "type": "tool_result", "tool_use_id": call, "content": exchange.output }])),
        ("assistant", json!([{ "type": "text", "text": exchange.answer }])),
    ];
    let line = |(index, (role, content)): (usize, (&str, Value))| {
        let parent = index.checked_sub(1).map(|before| format!("{}-{before}", exchange.id));
        let usage = json!({ "input_tokens": 20, "output_tokens": 12, "service_tier": "standard" });
        json!({
            "parentUuid": parent, "isSidechain": false, "type": role, "uuid": format!("{}-{index}", exchange.id),
            "message": { "role": role, "content": content, "usage": usage }, "timestamp": exchange.time(),
            "cwd": format!("/home/ana/project{project}"), "sessionId": session, "version": "2.1.197",
        })
    };
    contents.into_iter().enumerate().map(line).collect()
}

fn codex(exchange: &Exchange) -> Vec<Value> {
    let (id, call) = (&exchange.id, format!("call_{}", exchange.id));
    let text = |role: &str, kind: &str, text: &str| json!({ "type": "message", "id": format!("msg_{role}_{id}"), "role": role, "content": [{ "type": kind, "text": text }] });
    let items = [
        text("user", "input_text", &exchange.question),
        json!({ "type": "reasoning", "id": format!("rs_{id}"), "summary": [{ "type": "summary_text", "text": exchange.reasoning }], "content": null }),
        json!({ "type": "function_call", "id": format!("fc_{id}"), "name": "exec_command", "arguments": "{\"cmd\": \"cat notes.txt\"}", "call_id": call }),
        json!({ "type": "function_call_output", "id": format!("fco_{id}"), "call_id": call, "output": exchange.output }),
        text("assistant", "output_text", &exchange.answer),
    ];
    // The program writes texts twice: as items of the conversation, and as events for its display.
    let event = json!({ "type": "item_completed", "item": { "type": "AgentMessage", "content": [{ "type": "Text", "text": exchange.answer }] } });
    let items = items.into_iter().map(|item| ("response_item", item)).chain([("event_msg", event)]);
    items.map(|(kind, payload)| json!({ "timestamp": exchange.time(), "type": kind, "payload": payload })).collect()
}

fn gemini(exchange: &Exchange) -> Vec<Value> {
    let (id, time, call) = (&exchange.id, exchange.time(), format!("read_file_{}", exchange.id));
    let result =
        json!([{ "functionResponse": { "id": call, "name": "read_file", "response": { "output": exchange.output } } }]);
    vec![
        json!({ "id": format!("u{id}"), "timestamp": time, "type": "user", "content": [{ "text": exchange.question }] }),
        json!({
            "id": format!("g{id}"), "timestamp": time, "type": "gemini", "content": exchange.answer, "model": "gemini-2.5-pro",
            "thoughts": [{ "subject": "Planning", "description": exchange.reasoning, "timestamp": time }],
            "toolCalls": [{ "id": call, "name": "read_file", "args": { "file_path": "notes.txt" }, "result": result, "status": "success" }],
        }),
        json!({ "$set": { "lastUpdated": time } }),
    ]
}

fn cline(exchange: &Exchange) -> Vec<Value> {
    let (id, call) = (&exchange.id, format!("call_{}", exchange.id));
    let message = |index: u64, role: &str, content: Value| json!({ "id": format!("{id}-{index}"), "role": role, "content": content, "ts": exchange.at });
    vec![
        message(0, "user", json!([{ "type": "text", "text": exchange.question }])),
        message(
            1,
            "assistant",
            json!([{ "type": "text", "text": exchange.reasoning }, { "type": "tool_use", "id": call, "name": "read_files", "input": { "file_paths": ["notes.txt"] } }]),
        ),
        message(2, "user", json!([{ "type": "tool_result", "tool_use_id": call, "content": exchange.output }])),
        message(3, "assistant", json!([{ "type": "text", "text": exchange.answer }])),
    ]
}

fn continue_dev(exchange: &Exchange) -> Vec<Value> {
    let call = format!("call_{}", exchange.id);
    let function = json!({ "id": call, "type": "function", "function": { "name": "Read", "arguments": "{\"filepath\":\"notes.txt\"}" } });
    vec![
        json!({ "message": { "role": "user", "content": exchange.question }, "contextItems": [] }),
        json!({
            "message": { "role": "assistant", "content": exchange.reasoning, "toolCalls": [function] }, "contextItems": [],
            "toolCallStates": [{ "toolCallId": call, "toolCall": function, "status": "done", "output": [{ "content": exchange.output }] }],
        }),
        json!({ "message": { "role": "assistant", "content": exchange.answer }, "contextItems": [] }),
    ]
}
