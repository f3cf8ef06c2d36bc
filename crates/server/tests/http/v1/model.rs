//! Models for tests, and tests of the OpenAI API with them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use threadkeep::core::{
    ChatAnswer, ChatDelta, ChatModel, ChatRequest, DeltaSink, Embedder, EmbedderError, Embedding, Finish, ModelError,
};
use threadkeep::{JsonText, Part, TokenDetails, ToolCall, Usage};
use tokio::sync::Notify;

use crate::server::{TestConfig, TestServer, send};

/// A model that echoes the last message: `echo: TEXT (COUNT messages)`. `call` calls the first tool, `wait` blocks, `fail` fails,
/// `limit` exceeds the provider's rate limit, and `break` fails after the first delta.
/// If the request demands a format, the answer is a fixed JSON object.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    /// All requests, oldest first.
    pub(crate) requests: Mutex<Vec<ChatRequest>>,
    /// Notified when a request blocks.
    pub(crate) blocked: Notify,
    /// Unblocks a request.
    pub(crate) unblock: Notify,
    /// Whether the model supports no options, and reads only text and images.
    pub(crate) is_limited: AtomicBool,
}

#[async_trait]
impl ChatModel for Echo {
    fn name(&self) -> &str {
        "echo"
    }

    fn ignored(&self, request: &ChatRequest) -> Option<&'static str> {
        let is_raw = |part: &Part| matches!(part, Part::Raw { .. });
        let file = || request.messages.iter().flat_map(|message| &message.parts).any(is_raw).then_some("file");
        self.is_limited.load(Ordering::SeqCst).then(|| request.required_options().next().or_else(file)).flatten()
    }

    async fn answer(&self, request: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let number = {
            let mut requests = self.requests.lock().unwrap();
            requests.push(request.clone());
            requests.len()
        };
        let last = request.messages.last().map(|message| message.parts.clone()).unwrap_or_default();
        let text = last.iter().find_map(|part| match part {
            Part::Text(text) => Some(text.clone()),
            Part::ToolResult(result) => Some(result.output.clone()),
            _ => None,
        });
        let text = text.unwrap_or_default();
        if text == "wait" {
            self.blocked.notify_one();
            self.unblock.notified().await;
        }
        let details = TokenDetails { cached_input: 5, reasoning: 2, ..TokenDetails::default() };
        let usage = Usage { input_tokens: 7, output_tokens: 3, details, ..Usage::default() };
        let answer =
            |parts, finish| ChatAnswer { parts, finish, model: "echo-1".to_owned(), usage: Some(usage.clone()) };
        match (text.as_str(), request.tools.first()) {
            ("fail", _) => Err(ModelError::Unavailable {
                model: "echo".to_owned(),
                detail: "the test requested a failure".to_owned(),
                retry_after: None,
            }),
            ("limit", _) => Err(ModelError::RateLimited {
                model: "echo".to_owned(),
                detail: "too many tokens per minute".to_owned(),
                retry_after: Some(Duration::from_secs(7)),
            }),
            ("break", _) => {
                deltas(ChatDelta::Text("I ".to_owned()));
                let detail = "the connection was lost".to_owned();
                Err(ModelError::Unavailable { model: "echo".to_owned(), detail, retry_after: None })
            }
            ("call", Some(tool)) => {
                let arguments = JsonText::new(r#"{"at":"14 St"}"#).unwrap();
                let call = ToolCall { id: format!("call_{number}"), name: tool.name.clone(), arguments };
                Ok(answer(vec![Part::ToolCall(call)], Finish::ToolCalls))
            }
            _ => {
                let answer_text = match request.format {
                    Some(_) => r#"{"at":"14 St"}"#.to_owned(),
                    None => format!("echo: {text} ({} messages)", request.messages.len()),
                };
                let (first, rest) = answer_text.split_at(5);
                deltas(ChatDelta::Text(first.to_owned()));
                deltas(ChatDelta::Text(rest.to_owned()));
                Ok(answer(vec![Part::Text(answer_text)], Finish::Stop))
            }
        }
    }
}

/// An embedder that maps each text to a vector of its length and 0.5.
#[derive(Debug)]
pub(crate) struct LengthEmbedder;

#[async_trait]
impl Embedder for LengthEmbedder {
    fn model(&self) -> &str {
        "lengths"
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Embedding>, EmbedderError> {
        if texts.iter().any(|text| text == "limit") {
            let (model, detail) = ("lengths".to_owned(), "too many tokens per minute".to_owned());
            let source = ModelError::RateLimited { model, detail, retry_after: Some(Duration::from_secs(7)) };
            return Err(EmbedderError::Unavailable(Some(Box::new(source))));
        }
        let embedding = |text: &String| Embedding { model: "lengths".to_owned(), vector: vec![text.len() as f32, 0.5] };
        Ok(texts.iter().map(embedding).collect())
    }
}

pub(crate) async fn start_with_model() -> (TestServer, Arc<Echo>) {
    let (config, model) = config_with_model();
    (TestServer::start_with(config).await, model)
}

/// Starts a server with a model on its own PostgreSQL database; `None` if tests on PostgreSQL are skipped.
pub(crate) async fn start_with_model_on_postgres() -> Option<(TestServer, Arc<Echo>)> {
    let (config, model) = config_with_model();
    Some((TestServer::start_on_postgres(config).await?, model))
}

/// Starts a server with a model on a Redis server; `None` if tests on Redis are skipped.
pub(crate) async fn start_with_model_on_redis() -> Option<(TestServer, Arc<Echo>)> {
    let (config, model) = config_with_model();
    Some((TestServer::start_on_redis(config).await?, model))
}

/// Starts a server with a model on a Redis Cluster; `None` if tests on Redis are skipped.
pub(crate) async fn start_with_model_on_redis_cluster() -> Option<(TestServer, Arc<Echo>)> {
    let (config, model) = config_with_model();
    Some((TestServer::start_on_redis_cluster(config).await?, model))
}

pub(crate) fn config_with_model() -> (TestConfig, Arc<Echo>) {
    let model = Arc::new(Echo::default());
    (
        TestConfig { model: Some(model.clone()), embedder: Some(Arc::new(LengthEmbedder)), ..TestConfig::default() },
        model,
    )
}

/// Parses the data of each event of a stream.
pub(super) fn parse_data(text: &str) -> Vec<Value> {
    let lines = text.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    lines.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn models_are_listed_and_compute_embeddings() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let models = client.get("/v1/models").await.expect(200);
    assert_eq!((&models["data"][0]["id"], &models["data"][1]["id"]), (&json!("echo"), &json!("lengths")));
    assert_eq!(client.get("/v1/models/echo").await.expect(200)["object"], "model");
    assert_eq!(client.get("/v1/models/other").await.code(404), "model_not_found");
    let embeddings = client.post("/v1/embeddings", json!({ "input": ["ab", "abc"] })).await.expect(200);
    assert_eq!(embeddings["data"][1]["embedding"], json!([3.0, 0.5]));
    let packed = json!({ "input": "ab", "encoding_format": "base64" });
    assert_eq!(client.post("/v1/embeddings", packed).await.expect(200)["data"][0]["embedding"], "AAAAQAAAAD8=");
    client.post("/v1/embeddings", json!({ "input": "ab", "dimensions": 2 })).await.expect(200);
    let other = client.post("/v1/embeddings", json!({ "input": "ab", "dimensions": 256 })).await;
    assert_eq!(other.error(400)["param"], "dimensions");
    for (path, body) in [
        ("/v1/responses", json!({ "input": "" })),
        ("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": null }] })),
    ] {
        assert_eq!(client.post(path, body).await.code(400), "invalid_request", "an empty request: {path}");
    }
    let without_models = TestServer::start().await;
    for (path, body) in [
        ("/v1/embeddings", json!({ "input": "a" })),
        ("/v1/responses", json!({ "input": "a" })),
        ("/v1/chat/completions", json!({ "messages": [{ "role": "user", "content": "a" }] })),
    ] {
        assert_eq!(without_models.client().post(path, body).await.code(404), "model_not_found", "{path}");
    }
    assert_eq!(without_models.client().get("/v1/models").await.expect(200)["data"], json!([]));
}

#[tokio::test]
async fn completions_are_stateless_or_continue_a_thread() {
    let (server, model) = start_with_model().await;
    let client = server.client();
    let ask = |text: &str| json!({ "model": "any", "messages": [{ "role": "system", "content": "Be brief." }, { "role": "user", "content": text }] });
    let stateless = client.post("/v1/chat/completions", ask("hello")).await.expect(200);
    assert_eq!(stateless["choices"][0]["message"]["content"], "echo: hello (2 messages)");
    assert_eq!(
        (&stateless["choices"][0]["finish_reason"], &stateless["usage"]["total_tokens"]),
        (&json!("stop"), &json!(10))
    );
    let usage = &stateless["usage"];
    assert_eq!(usage["prompt_tokens_details"], json!({ "cached_tokens": 5 }));
    assert_eq!(usage["completion_tokens_details"], json!({ "reasoning_tokens": 2 }));
    assert_eq!(client.get("/v1/threads").await.expect(200)["data"], json!([]));
    let thread = client.new_thread().await;
    let in_thread = |text: &str, retry: &str| {
        let request = client.request("POST", "/v1/chat/completions").header("threadkeep-thread", &thread);
        send(request.header("x-stainless-retry-count", retry).json(&ask(text)))
    };
    in_thread("one", "0").await.expect(200);
    let second = in_thread("two", "0").await.expect(200);
    assert_eq!(second["choices"][0]["message"]["content"], "echo: two (4 messages)");
    let retried = in_thread("two", "1").await.expect(200);
    assert_eq!((&retried["id"], &retried["choices"]), (&second["id"], &second["choices"]));
    assert_eq!(client.texts(&thread).await, ["one", "echo: one (2 messages)", "two", "echo: two (4 messages)"]);
    assert_eq!(model.requests.lock().unwrap().len(), 3, "a retry does not call the model");
    assert_eq!(in_thread("fail", "0").await.code(503), "model_unavailable");
    assert_eq!(client.texts(&thread).await.len(), 4, "failed requests store nothing");
    let mut with_thread = ask("three");
    with_thread["metadata"] = json!({ "thread": thread });
    client.post("/v1/chat/completions", with_thread).await.expect(200);
    assert_eq!(client.texts(&thread).await.len(), 6);
}

#[tokio::test]
async fn completions_can_be_streamed() {
    let (server, _) = start_with_model().await;
    let client = server.client();
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } }]);
    let ask = |text: &str| {
        let body = json!({ "messages": [{ "role": "user", "content": text }], "tools": tools, "stream": true, "stream_options": { "include_usage": true } });
        client.post("/v1/chat/completions", body)
    };
    let streamed = ask("hello").await;
    assert_eq!(streamed.header("content-type"), "text/event-stream");
    assert!(streamed.text.ends_with("data: [DONE]\n\n"));
    let chunks = parse_data(&streamed.text);
    let deltas: Vec<&Value> = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]).collect();
    assert_eq!(*deltas[0], json!({ "role": "assistant", "content": "" }));
    let words: String = deltas.iter().filter_map(|delta| delta["content"].as_str()).collect();
    assert_eq!(words, "echo: hello (1 messages)");
    assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "stop");
    let last = chunks.last().unwrap();
    assert_eq!((&last["choices"], &last["usage"]["prompt_tokens"]), (&json!([]), &json!(7)));
    let called = parse_data(&ask("call").await.text);
    assert_eq!(called[1]["choices"][0]["delta"]["tool_calls"][0]["function"]["name"], "look");
    assert_eq!(called[2]["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"], r#"{"at":"14 St"}"#);
    assert_eq!(called[0]["choices"][0]["delta"], json!({ "role": "assistant", "content": null }));
    let broken = parse_data(&ask("break").await.text);
    assert_eq!(broken.last().unwrap()["error"]["code"], "model_unavailable");
}
