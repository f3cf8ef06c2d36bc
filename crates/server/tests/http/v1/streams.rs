//! Streams of responses that are cut, and taken up again by their numbers.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};
use threadkeep::Part;
use threadkeep::core::{ChatAnswer, ChatDelta, ChatModel, ChatRequest, DeltaSink, Finish, ModelError};
use threadkeep_server::ServerOptions;
use tokio::sync::{Mutex, mpsc};

use super::agents::events;
use crate::Client;
use crate::assistants::keeper;
use crate::clients::{is_skipped, program};
use crate::server::{PATIENCE, TestConfig, TOKEN, TestServer};

/// Says what it is given, piece by piece, until it is given an empty one.
#[derive(Debug)]
struct Piecewise(Mutex<mpsc::UnboundedReceiver<&'static str>>);

#[async_trait]
impl ChatModel for Piecewise {
    fn name(&self) -> &str {
        "piecewise"
    }

    async fn answer(&self, _: &ChatRequest, deltas: DeltaSink<'_>) -> Result<ChatAnswer, ModelError> {
        let (mut pieces, mut text) = (self.0.lock().await, String::new());
        while let Some(piece) = pieces.recv().await.filter(|piece| !piece.is_empty()) {
            deltas(ChatDelta::Text(piece.to_owned()));
            text.push_str(piece);
        }
        Ok(ChatAnswer {
            parts: vec![Part::Text(text)],
            finish: Finish::Stop,
            model: "piecewise".to_owned(),
            usage: None,
        })
    }
}

/// A server with that model, and what gives it pieces.
async fn with_pieces() -> (TestServer, mpsc::UnboundedSender<&'static str>) {
    let (gives, given) = mpsc::unbounded_channel();
    let model: Arc<dyn ChatModel> = Arc::new(Piecewise(Mutex::new(given)));
    (TestServer::start_with(TestConfig { model: Some(model), ..TestConfig::default() }).await, gives)
}

/// A stream on its way.
struct Stream {
    bytes: futures::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    text: String,
}

impl Stream {
    async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = tokio::time::timeout(PATIENCE, request.send()).await.unwrap().unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self { bytes: response.bytes_stream().boxed(), text: String::new() }
    }

    /// Everything up to so many words, or to the end.
    async fn until(&mut self, deltas: usize) -> Vec<(String, Value)> {
        while self.text.matches("event: response.output_text.delta").count() < deltas || !self.text.ends_with("\n\n") {
            let bytes = tokio::time::timeout(PATIENCE, self.bytes.next()).await.unwrap();
            let Some(bytes) = bytes else { break };
            self.text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        }
        events(&self.text)
    }

    async fn whole(mut self) -> Vec<(String, Value)> {
        self.until(usize::MAX).await
    }
}

fn asking(client: &Client, members: Value) -> reqwest::RequestBuilder {
    let mut body = json!({ "input": "hello", "stream": true });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    client.request("POST", "/v1/responses").json(&body)
}

fn again(client: &Client, id: &str, after: Option<u64>) -> reqwest::RequestBuilder {
    let after = after.map(|after| format!("&starting_after={after}")).unwrap_or_default();
    client.request("GET", &format!("/v1/responses/{id}?stream=true{after}"))
}

fn id_of(told: &[(String, Value)]) -> String {
    told[0].1["response"]["id"].as_str().unwrap().to_owned()
}

fn numbers(told: &[(String, Value)]) -> Vec<u64> {
    told.iter().map(|(_, data)| data["sequence_number"].as_u64().unwrap()).collect()
}

fn said(told: &[(String, Value)]) -> Vec<&str> {
    let words = told.iter().filter(|(kind, _)| kind == "response.output_text.delta");
    words.map(|(_, data)| data["delta"].as_str().unwrap()).collect()
}

fn kinds(told: &[(String, Value)]) -> Vec<&str> {
    told.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[tokio::test]
async fn a_stream_in_the_background_is_taken_up_on_any_instance() {
    let (server, model) = with_pieces().await;
    let other = TestServer::over(server.memory.clone(), TestConfig::default()).await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    for conversation in [Value::Null, conversation["id"].clone()] {
        let mut live = Stream::open(asking(&client, json!({ "background": true, "conversation": conversation }))).await;
        model.send("A lamp").unwrap();
        model.send(" is").unwrap();
        let first = live.until(2).await;
        assert_eq!(first[0].1["response"]["background"], true);
        let id = id_of(&first);
        // The client goes away, and the answer goes on.
        drop(live);
        let mut taken_up = Stream::open(again(&other.client(), &id, Some(4))).await;
        model.send(" on").unwrap();
        taken_up.until(2).await;
        assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200)["status"], "in_progress");
        model.send(".").unwrap();
        model.send("").unwrap();
        let rest = taken_up.whole().await;
        assert_eq!(said(&first[..5]), ["A lamp"]);
        assert_eq!(said(&rest), [" is", " on", "."]);
        let told: Vec<_> = first[..5].iter().cloned().chain(rest).collect();
        assert_eq!(numbers(&told), (0..told.len() as u64).collect::<Vec<_>>());
        let (last, whole) = told.last().unwrap();
        assert_eq!((last.as_str(), &whole["response"]["status"]), ("response.completed", &json!("completed")));
        assert_eq!(whole["response"]["output"][0]["content"][0]["text"], "A lamp is on.");
        assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200), whole["response"]);
        // Once it is over it is told in the same pieces.
        for client in [&client, &other.client()] {
            let told_again = Stream::open(again(client, &id, None)).await.whole().await;
            assert_eq!(told_again[2..], told[2..], "but for the beginning, which tells the time");
            assert_eq!(kinds(&told_again), kinds(&told));
        }
        let end = Stream::open(again(&client, &id, Some(1_000))).await.whole().await;
        assert_eq!((kinds(&end), numbers(&end)), (vec!["response.completed"], vec![1_001]));
    }
}

#[tokio::test]
async fn a_stream_that_is_stored_is_told_again_and_what_is_erased_is_not() {
    let (server, model) = with_pieces().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200)["id"].clone();
    for conversation in [Value::Null, conversation.clone()] {
        ["One, ", "two", ""].iter().for_each(|piece| model.send(piece).unwrap());
        let told = Stream::open(asking(&client, json!({ "conversation": conversation }))).await.whole().await;
        assert_eq!(said(&told), ["One, ", "two"]);
        let told_again = Stream::open(again(&client, &id_of(&told), Some(1))).await.whole().await;
        assert_eq!(told_again, told[2..]);
        // What was not told piece by piece comes as one.
        ["One, ", "two", ""].iter().for_each(|piece| model.send(piece).unwrap());
        let whole =
            client.post("/v1/responses", json!({ "input": "x", "conversation": conversation })).await.expect(200);
        let told = Stream::open(again(&client, whole["id"].as_str().unwrap(), None)).await.whole().await;
        assert_eq!((said(&told), &told.last().unwrap().1["response"]), (vec!["One, two"], &whole));
        let Some(conversation) = conversation.as_str() else { continue };
        let item = whole["output"][0]["id"].as_str().unwrap();
        client.delete(&format!("/v1/conversations/{conversation}/items/{item}")).await.expect(200);
        let told = Stream::open(again(&client, whole["id"].as_str().unwrap(), None)).await;
        let told = told.whole().await;
        assert_eq!(kinds(&told), ["response.created", "response.in_progress", "response.completed"]);
    }
    let unknown = client.get("/v1/responses/resp_00000000000000000000000000000000?stream=true").await;
    assert_eq!(unknown.code(404), "not_found");
    for wrong in ["stream=perhaps", "stream=true&starting_after=-1"] {
        let path = format!("/v1/responses/resp_00000000000000000000000000000000?{wrong}");
        assert_eq!(client.get(&path).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn cancelling_ends_every_stream_of_a_response() {
    let (server, model) = with_pieces().await;
    let client = server.client();
    let mut live = Stream::open(asking(&client, json!({ "background": true }))).await;
    model.send("A lamp").unwrap();
    let id = id_of(&live.until(1).await);
    let followed = Stream::open(again(&client, &id, None)).await;
    client.post(&format!("/v1/responses/{id}/cancel"), json!({})).await.expect(200);
    for stream in [live, followed] {
        let told = stream.whole().await;
        let (kind, data) = told.last().unwrap();
        assert_eq!((kind.as_str(), &data["response"]["status"]), ("response.cancelled", &json!("cancelled")));
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_streams_with_an_event() {
    let (gives, given) = mpsc::unbounded_channel();
    let model: Arc<dyn ChatModel> = Arc::new(Piecewise(Mutex::new(given)));
    let options = ServerOptions { grace: std::time::Duration::from_millis(500), ..TestConfig::default().options };
    let mut server = TestServer::start_with(TestConfig { model: Some(model), options, ..TestConfig::default() }).await;
    let client = server.client();
    let mut live = Stream::open(asking(&client, json!({ "background": true }))).await;
    gives.send("A lamp").unwrap();
    let id = id_of(&live.until(1).await);
    let mut followed = Stream::open(again(&client, &id, None)).await;
    followed.until(1).await;
    server.request_shutdown();
    for stream in [live, followed] {
        let told = stream.whole().await;
        let (kind, data) = told.last().unwrap();
        assert_eq!((kind.as_str(), &data["code"]), ("error", &json!("shutdown")));
        assert_eq!(numbers(&told), (0..told.len() as u64).collect::<Vec<_>>());
    }
}

/// The official client cuts the stream at its first words, and takes it up.
#[tokio::test]
async fn the_client_takes_up_a_stream_that_was_cut() {
    if is_skipped() {
        return;
    }
    let config = super::config_with_model().0;
    let server = TestServer::start_with(TestConfig { assistants: vec![keeper("keeper").0], ..config }).await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/streams.py");
    let mut command = tokio::process::Command::new(program("python"));
    command.args([script, &server.url("/v1")]).kill_on_drop(true);
    command.env("NO_PROXY", "*").env("OPENAI_API_KEY", TOKEN);
    let output = tokio::time::timeout(PATIENCE * 2, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (name, text) in [
        ("background", "echo: hello there (1 messages)"),
        ("plain", "echo: hello there (1 messages)"),
        ("assistant", "You said: hello there"),
    ] {
        let told = &told[name];
        let count = told["kinds"].as_array().unwrap().len() as u64;
        assert_eq!(told["numbers"], json!((0..count).collect::<Vec<_>>()), "{name}");
        for member in ["text", "whole", "retrieved"] {
            assert_eq!(told[member], text, "{name} {member}");
        }
        assert_eq!((&told["again"], &told["kinds"][count as usize - 1]), (&json!(true), &json!("response.completed")));
    }
}
