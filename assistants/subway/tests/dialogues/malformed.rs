//! Tests of a provider whose model writes tool calls as text or fails to generate them: the tools run nevertheless.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use threadkeep::TurnStatus;
use threadkeep::models::{Provider, ProviderConfig, ProviderModel, Secret};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::env::{Conversation, TestEnv, calls};
use crate::mta::train;

type Replies = Arc<Mutex<VecDeque<(u16, Value)>>>;

/// A provider with OpenAI's chat completions API that responds from a list.
struct Server {
    replies: Replies,
    env: TestEnv,
}

impl Server {
    async fn start() -> Self {
        let replies = Replies::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let queued = Arc::clone(&replies);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                serve(stream, &queued).await;
            }
        });
        let config = ProviderConfig::new(Provider::Groq, "llama-3.3-70b-versatile", Secret::new("test-0123456789"));
        let config = ProviderConfig { base_url, streams: false, ..config };
        let env = TestEnv::with_model(ProviderModel::new(config).unwrap()).await;
        env.mta.show("nyct%2Fgtfs", 0, &[train("6", &[("636N", 130), ("635N", 250)])]);
        Self { replies, env }
    }

    fn queue(&self, replies: impl IntoIterator<Item = (u16, Value)>) {
        self.replies.lock().unwrap().extend(replies);
    }

    fn has_replied_with_all(&self) -> bool {
        self.replies.lock().unwrap().is_empty()
    }
}

async fn serve(mut stream: TcpStream, replies: &Replies) {
    let mut bytes = Vec::new();
    let mut buffer = vec![0; 16 * 1024];
    loop {
        let head = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        let length = head.and_then(|head| {
            let head = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok())
        });
        if head.zip(length).is_some_and(|(head, length)| bytes.len() >= head + 4 + length) {
            break;
        }
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
    let (status, body) = replies.lock().unwrap().pop_front().unwrap_or((418, json!({"error": "no reply is queued"})));
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
}

fn completion(text: &str) -> (u16, Value) {
    let message = json!({"role": "assistant", "content": text});
    (200, json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
}

fn failed_generation(generation: &str) -> (u16, Value) {
    let error = json!({
        "message": "Failed to call a function. Please adjust your prompt.", "type": "invalid_request_error",
        "code": "tool_use_failed", "failed_generation": generation,
    });
    (400, json!({"error": error}))
}

async fn assert_board(conversation: &Conversation<'_>, text: &str) {
    let turn = conversation.turn("when is the next 6 at astor place?").await;
    assert_eq!((turn.status, turn.usage.model_calls), (TurnStatus::Completed, 1), "{text}: {turn:#?}");
    assert_eq!(calls(&turn).len(), 1, "{text}");
    assert!(turn.reply.contains("in 2 min (10:02)"), "the result is the reply: {text}: {}", turn.reply);
}

const ARGUMENTS: &str = r#"{"station_name": "Astor Pl", "line": "6"}"#;

fn variants() -> Vec<String> {
    let escaped = ARGUMENTS.replace('"', "\\\"");
    vec![
        format!("<function=get_train_arrivals {ARGUMENTS}></function>"),
        format!("<function=get_train_arrivals{ARGUMENTS}></function>"),
        format!("<function=get_train_arrivals{ARGUMENTS}</function>"),
        format!("<function=get_train_arrivals>{ARGUMENTS}</function>"),
        format!("get_train_arrivals{ARGUMENTS}</function>"),
        format!("\\u003cfunction=get_train_arrivals {escaped}\\u003e\\u003c/function\\u003e"),
    ]
}

// S2.42, S2.45
#[tokio::test]
async fn call_written_as_text_is_made_and_its_result_is_the_reply() {
    let server = Server::start().await;
    let conversation = server.env.conversation("ana").await;
    for text in variants() {
        server.queue([completion(&text)]);
        assert_board(&conversation, &text).await;
    }
    assert!(server.has_replied_with_all());
}

// S2.44, S2.45, S2.55
#[tokio::test]
async fn call_in_a_failed_generation_is_made_and_its_result_is_the_reply() {
    let server = Server::start().await;
    let conversation = server.env.conversation("ana").await;
    for text in variants() {
        server.queue([failed_generation(&text)]);
        assert_board(&conversation, &text).await;
    }
    assert!(server.has_replied_with_all());
}

// S2.45
#[tokio::test]
async fn call_without_arguments_is_made() {
    let server = Server::start().await;
    let conversation = server.env.conversation("ana").await;
    for reply in [
        completion("<function=get_common_trips></function>"),
        failed_generation("<function=get_common_trips></function>"),
    ] {
        server.queue([reply]);
        let (calls, reply) = conversation.ask("my usual trips?").await;
        assert_eq!(
            (calls, reply.as_str()),
            (vec!["get_common_trips{}".to_owned()], "You have not asked for any trips yet.")
        );
    }
}

// S2.43
#[tokio::test]
async fn text_next_to_structured_calls_is_ignored() {
    let server = Server::start().await;
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "get_train_arrivals", "arguments": ARGUMENTS}});
    let message = json!({
        "role": "assistant", "content": "<function=get_common_trips></function>", "tool_calls": [call],
    });
    let structured = (200, json!({"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}));
    server.queue([structured, completion("In two minutes.")]);
    let turn = server.env.conversation("ana").await.turn("when is the next 6 at astor place?").await;
    assert_eq!(calls(&turn).len(), 1);
    assert!(calls(&turn)[0].starts_with("get_train_arrivals"), "{:?}", calls(&turn));
    assert_eq!(turn.reply, "In two minutes.");
}

// S2.45, S2.46
#[tokio::test]
async fn unknown_tool_and_invalid_arguments_get_an_apology() {
    let server = Server::start().await;
    let conversation = server.env.conversation("ana").await;
    for text in ["<function=launch {\"at\": 1}></function>", "<function=get_route {\"from_station\": }></function>"] {
        for reply in [completion(text), failed_generation(text)] {
            // The model is called twice before the turn fails.
            server.queue([reply.clone(), reply]);
            let turn = conversation.turn("how do i get to penn?").await;
            assert_eq!(turn.status, TurnStatus::Failed, "{text}");
            assert!(turn.reply.starts_with("Sorry, I could not look that up"), "{}", turn.reply);
            assert!(!turn.reply.contains("function") && !turn.reply.contains("launch"), "{}", turn.reply);
            server.replies.lock().unwrap().clear();
        }
    }
    server.queue([completion("I am back.")]);
    assert_eq!(conversation.say("hello?").await, "I am back.");
}
