//! A provider of models, as far as a test of the server needs one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::{Value, json};

use super::{Cli, TIMEOUT};

/// Says again what it is asked. HeldEndpoint to `wait` it begins and never ends, asked to `call` it calls a tool, asked to `fail`,
/// `refuse` or talk `nonsense` it does so, in words that quote the question.
pub(super) struct Provider {
    pub(super) address: String,
    /// Hears of every request that waits.
    waits: Receiver<()>,
}

impl Provider {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (heard, waits) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let heard = heard.clone();
                std::thread::spawn(move || answer(stream.unwrap(), &heard));
            }
        });
        Self { address, waits }
    }

    /// A server that asks this provider.
    pub(super) fn command(&self, cli: &Cli) -> Command {
        let mut command = cli.command(&["serve", "--listen", "127.0.0.1:0", "--model", "openai:echo"]);
        command.env("OPENAI_BASE_URL", format!("http://{}/v1", self.address)).env("OPENAI_API_KEY", "hidden-model-key");
        command.env("NO_PROXY", "*");
        command
    }

    /// Waits until so many wait.
    pub(super) fn wait_for(&self, count: usize) {
        for _ in 0..count {
            self.waits.recv_timeout(TIMEOUT).unwrap();
        }
    }
}

fn answer(mut stream: TcpStream, heard: &Sender<()>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let body = read(&mut reader);
    let messages = body["messages"].as_array().cloned().unwrap_or_default();
    let last = messages.last().cloned().unwrap_or_default();
    let said = last["content"].to_string();
    let is_asked = |verb: &str| last["role"] == "user" && said.contains(verb);
    let response = |status: &str, kind: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}")
    };
    let stream_of = |body: &str| response("200 OK", "text/event-stream", body);
    let error =
        json!({ "error": { "message": format!("cannot take {said}"), "type": "invalid_request_error" } }).to_string();
    let begun = chunk(&json!({ "content": "Let me see. " }), None);
    let answer = if is_asked("wait") {
        stream_of(&begun)
    } else if is_asked("fail") {
        response("500 Internal Server Error", "application/json", &error)
    } else if is_asked("refuse") {
        response("400 Bad Request", "application/json", &error)
    } else if is_asked("nonsense") {
        stream_of(&format!("data: {{{said}\n\n"))
    } else if is_asked("call") {
        let function = json!({ "name": "recall", "arguments": json!({ "query": "hidden-argument" }).to_string() });
        let call =
            json!({ "tool_calls": [{ "index": 0, "id": "hidden-call", "type": "function", "function": function }] });
        stream_of(&format!("{}{}", chunk(&call, None), chunk(&json!({}), Some("tool_calls"))))
    } else {
        stream_of(&format!("{begun}{}{}", chunk(&json!({ "content": said }), None), chunk(&json!({}), Some("stop"))))
    };
    // A server that stops takes nothing any more.
    drop(stream.write_all(answer.as_bytes()));
    if is_asked("wait") {
        heard.send(()).unwrap();
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
