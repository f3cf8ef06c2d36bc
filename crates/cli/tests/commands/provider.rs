//! A provider of models for tests of the server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::{Cli, TIMEOUT};

/// A provider whose model repeats the question. If the question contains `wait`, the reply starts and never finishes. `call`
/// makes the reply call a tool. `fail`, `refuse` and `nonsense` cause an error or an invalid reply, which quotes the question.
pub(super) struct Provider {
    pub(super) address: String,
    /// Receives an item for each request that waits.
    waits: Receiver<()>,
}

impl Provider {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (waiting_sender, waits) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let waiting_sender = waiting_sender.clone();
                std::thread::spawn(move || answer(stream.unwrap(), &waiting_sender));
            }
        });
        Self { address, waits }
    }

    /// Returns the command of a server that uses this provider.
    pub(super) fn command(&self, cli: &Cli) -> Command {
        let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "openai:echo"]);
        command.env("OPENAI_BASE_URL", format!("http://{}/v1", self.address)).env("OPENAI_API_KEY", "hidden-model-key");
        command.env("NO_PROXY", "*");
        command
    }

    /// Waits until `count` requests are waiting.
    pub(super) fn wait_for(&self, count: usize) {
        for _ in 0..count {
            self.waits.recv_timeout(TIMEOUT).unwrap();
        }
    }
}

fn answer(mut stream: TcpStream, waiting_sender: &Sender<()>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let body = read(&mut reader);
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let question = last["content"].to_string();
    let is_asked = |verb: &str| last["role"] == "user" && question.contains(verb);
    let response = |status: &str, kind: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}")
    };
    let stream_of = |body: &str| response("200 OK", "text/event-stream", body);
    let error = json!({ "error": { "message": format!("cannot take {question}"), "type": "invalid_request_error" } })
        .to_string();
    let first_chunk = chunk(&json!({ "content": "Let me see. " }), None);
    let answer = if is_asked("wait") {
        stream_of(&first_chunk)
    } else if is_asked("fail") {
        response("500 Internal Server Error", "application/json", &error)
    } else if is_asked("refuse") {
        response("400 Bad Request", "application/json", &error)
    } else if is_asked("nonsense") {
        stream_of(&format!("data: {{{question}\n\n"))
    } else if is_asked("call") {
        let function = json!({ "name": "recall", "arguments": json!({ "query": "hidden-argument" }).to_string() });
        let call =
            json!({ "tool_calls": [{ "index": 0, "id": "hidden-call", "type": "function", "function": function }] });
        stream_of(&format!("{}{}", chunk(&call, None), chunk(&json!({}), Some("tool_calls"))))
    } else {
        stream_of(&format!(
            "{first_chunk}{}{}",
            chunk(&json!({ "content": question }), None),
            chunk(&json!({}), Some("stop"))
        ))
    };
    // Errors are ignored, because a server that is shutting down no longer reads.
    drop(stream.write_all(answer.as_bytes()));
    if is_asked("wait") {
        waiting_sender.send(()).unwrap();
        drop(reader.read_to_end(&mut Vec::new()));
    }
}

fn read(reader: &mut impl BufRead) -> Value {
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(given) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = given.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    serde_json::from_slice(&body).unwrap_or_default()
}

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
    let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "model": "echo", "choices": [choice] });
    let end = if finish.is_some() { "data: [DONE]\n\n" } else { "" };
    format!("data: {chunk}\n\n{end}")
}
