//! A fake model provider, which provider models call over HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use threadkeep_models::{Provider, ProviderConfig, ProviderModel, Secret};

/// Returns a chat completion with this message.
pub(crate) fn completion(message: Value) -> Value {
    let choices = json!([{"index": 0, "finish_reason": "stop", "message": message}]);
    json!({"model": "gpt-x", "choices": choices, "usage": {"prompt_tokens": 9, "completion_tokens": 2}})
}

/// A provider that answers requests in order with a list of statuses and bodies. A request whose entry is `None` is never answered.
pub(crate) struct FakeProvider {
    url: String,
    requests: Receiver<String>,
}

impl FakeProvider {
    pub(crate) fn start(answers: Vec<Option<(u16, Value)>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        #[expect(clippy::disallowed_methods, reason = "a test server without a runtime")]
        std::thread::spawn(move || {
            let mut unanswered = Vec::new();
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                sender.send(read_body(&mut stream)).unwrap();
                match answer {
                    Some((status, answer)) => {
                        let (body, kind) = (answer.to_string(), "content-type: application/json\r\nconnection: close");
                        let length = body.len();
                        write!(stream, "HTTP/1.1 {status} X\r\n{kind}\r\ncontent-length: {length}\r\n\r\n{body}")
                            .unwrap();
                    }
                    None => unanswered.push(stream),
                }
            }
        });
        Self { url, requests }
    }

    pub(crate) fn model(&self, provider: Provider) -> ProviderModel {
        let config = ProviderConfig::new(provider, "claude-x", Secret::new("k"));
        ProviderModel::new(ProviderConfig { base_url: self.url.clone(), streams: false, ..config }).unwrap()
    }

    /// Waits for the next request and returns its body.
    pub(crate) fn next_request(&self) -> String {
        self.requests.recv_timeout(Duration::from_secs(60)).unwrap()
    }
}

fn read_body(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}
