//! A local fake provider that records requests and replies from a list.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use threadkeep_core::{
    ChatAnswer, ChatDelta, ChatMessage, ChatModel, ChatRequest, JsonText, ModelError, Part, Role, ToolDescription,
};
use threadkeep_models::{HttpOptions, Pacing, Provider, ProviderConfig, ProviderModel, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A recorded request.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRequest {
    pub(crate) line: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// The reply to one request.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    head: String,
    pieces: Vec<Vec<u8>>,
    /// Whether the connection stays open without further data.
    hangs: bool,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", [body.to_string()])
    }

    pub(crate) fn stream<T: Into<Vec<u8>>>(pieces: impl IntoIterator<Item = T>) -> Self {
        Self::new(200, "text/event-stream; charset=utf-8", pieces)
    }

    pub(crate) fn new<T: Into<Vec<u8>>>(status: u16, kind: &str, pieces: impl IntoIterator<Item = T>) -> Self {
        let head = format!("HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\nconnection: close\r\n");
        Self { head, pieces: pieces.into_iter().map(Into::into).collect(), hangs: false }
    }

    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    pub(crate) fn then_hangs(mut self) -> Self {
        self.hangs = true;
        self
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    /// Receives an item when the client closes the connection of a hanging reply.
    pub(crate) closed: mpsc::UnboundedReceiver<()>,
}

impl Server {
    pub(crate) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("the listener is bound"));
        let replies = Arc::new(Mutex::new(replies.into_iter().collect::<VecDeque<_>>()));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (closed_sender, closed) = mpsc::unbounded_channel();
        let server = Self { url, replies: replies.clone(), requests: requests.clone(), closed };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, replies.clone(), requests.clone(), closed_sender.clone()));
            }
        });
        server
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().expect("the lock is not poisoned").clone()
    }

    pub(crate) fn has_answered_all(&self) -> bool {
        self.replies.lock().expect("the lock is not poisoned").is_empty()
    }
}

async fn serve(
    mut stream: TcpStream,
    replies: Arc<Mutex<VecDeque<Reply>>>,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    closed_sender: mpsc::UnboundedSender<()>,
) {
    let Some(request) = read_request(&mut stream).await else { return };
    requests.lock().expect("the lock is not poisoned").push(request);
    let reply = replies.lock().expect("the lock is not poisoned").pop_front();
    let reply = reply.unwrap_or_else(|| Reply::json(599, &Value::String("no replies left".to_owned())));
    // Write errors are ignored, because the client may have closed the connection.
    let _gone = stream.write_all(format!("{}\r\n", reply.head).as_bytes()).await;
    for piece in reply.pieces {
        let _gone = stream.write_all(&piece).await;
        let _gone = stream.flush().await;
    }
    if reply.hangs {
        let mut byte = [0];
        while !matches!(stream.read(&mut byte).await, Ok(0) | Err(_)) {}
        let _over = closed_sender.send(());
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<RecordedRequest> {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let (line, rest) = text.split_once("\r\n").unwrap_or((&text, ""));
    let headers: BTreeMap<String, String> = rest
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < head + 4 + length {
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    let body = serde_json::from_slice(&bytes[head + 4..]).unwrap_or(Value::Null);
    Some(RecordedRequest { line: line.to_owned(), headers, body })
}

/// Pacing without randomness or pauses. Records the requested waits.
#[derive(Debug, Default)]
pub(crate) struct RecordingPacing(pub(crate) Mutex<Vec<Duration>>);

#[async_trait]
impl Pacing for RecordingPacing {
    fn random_fraction(&self) -> f64 {
        0.0
    }

    async fn pause(&self, wait: Duration) {
        self.0.lock().expect("the lock is not poisoned").push(wait);
    }
}

pub(crate) const KEY: &str = "sk-test-0123456789";

pub(crate) fn config(provider: Provider, server: &Server, model: &str) -> ProviderConfig {
    ProviderConfig {
        base_url: format!("{}/v1", server.url),
        http: HttpOptions { silence_timeout: Duration::from_secs(20), ..HttpOptions::default() },
        ..ProviderConfig::new(provider, model, Secret::new(KEY))
    }
}

/// Creates a model, and the pacing that records its waits.
pub(crate) fn model(config: ProviderConfig) -> (ProviderModel, Arc<RecordingPacing>) {
    let pacing = Arc::new(RecordingPacing::default());
    let model = ProviderModel::with_pacing(config, pacing.clone()).expect("the address is valid");
    (model, pacing)
}

/// Sends a request. Returns the answer and the streamed deltas.
pub(crate) async fn ask(model: &ProviderModel, request: &ChatRequest) -> (Result<ChatAnswer, ModelError>, Vec<String>) {
    let mut streamed = Vec::new();
    let mut sink = |delta| {
        streamed.push(match delta {
            ChatDelta::Text(text) => text,
            ChatDelta::Reasoning(text) => format!("({text})"),
            ChatDelta::Restarted => "RESTARTED".to_owned(),
            other => format!("{other:?}"),
        });
    };
    (model.answer(request, &mut sink).await, streamed)
}

pub(crate) fn tool(name: &str) -> ToolDescription {
    let schema = r#"{"type":"object","properties":{"station":{"type":"string"}},"required":["station"]}"#;
    ToolDescription {
        name: name.to_owned(),
        description: format!("What {name} does."),
        parameters: JsonText::new(schema).expect("this is JSON"),
        is_strict: None,
    }
}

pub(crate) fn request_with(text: &str) -> ChatRequest {
    let message = ChatMessage { seq: Some(5), ..ChatMessage::text(Role::User, text) };
    ChatRequest { messages: vec![message], tools: vec![tool("arrivals")], ..ChatRequest::default() }
}

/// Describes the parts of an answer.
pub(crate) fn short(answer: &ChatAnswer) -> Vec<String> {
    let short = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Reasoning(text) => format!("({text})"),
        Part::Raw { json, .. } => json.to_string(),
        Part::ToolCall(call) => format!("{} {} {}", call.id, call.name, call.arguments),
        other => format!("{other:?}"),
    };
    answer.parts.iter().map(short).collect()
}

/// Formats an event of a stream.
pub(crate) fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Formats an event with its type, as Anthropic sends events.
pub(crate) fn named_event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap_or_default())
}
