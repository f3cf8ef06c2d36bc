//! Streamed responses: interrupting and resuming the stream by sequence number.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;
use serde_json::{Value, json};
use threadkeep::Part;
use threadkeep::core::{ChatAnswer, ChatDelta, ChatModel, ChatRequest, DeltaSink, Finish, ModelError};
use threadkeep_server::ServerOptions;
use tokio::sync::{Mutex, mpsc};

use super::agents::parse_events;
use crate::Client;
use crate::assistants::test_assistant;
use crate::clients::{is_skipped, program};
use crate::server::{TIMEOUT, TOKEN, TestConfig, TestServer};

/// A model that streams each piece of text that the test sends. An empty piece ends the answer.
#[derive(Debug)]
struct ChannelModel(Mutex<mpsc::UnboundedReceiver<&'static str>>);

#[async_trait]
impl ChatModel for ChannelModel {
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

/// Starts a server with a [`ChannelModel`], and returns the sender for the model's pieces.
async fn start_with_channel_model() -> (TestServer, mpsc::UnboundedSender<&'static str>) {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let model: Arc<dyn ChatModel> = Arc::new(ChannelModel(Mutex::new(receiver)));
    (TestServer::start_with(TestConfig { model: Some(model), ..TestConfig::default() }).await, pieces)
}

/// The event stream of a response.
struct Stream {
    bytes: futures::stream::BoxStream<'static, reqwest::Result<bytes::Bytes>>,
    /// Everything read so far.
    text: String,
}

impl Stream {
    async fn open(request: reqwest::RequestBuilder) -> Self {
        let response = tokio::time::timeout(TIMEOUT, request.send()).await.unwrap().unwrap();
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self { bytes: response.bytes_stream().boxed(), text: String::new() }
    }

    /// Reads until this many text deltas have been received, or to the end. Returns all events so far.
    async fn read_until(&mut self, deltas: usize) -> Vec<(String, Value)> {
        while self.text.matches("event: response.output_text.delta").count() < deltas || !self.text.ends_with("\n\n") {
            let bytes = tokio::time::timeout(TIMEOUT, self.bytes.next()).await.unwrap();
            let Some(bytes) = bytes else { break };
            self.text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        }
        parse_events(&self.text)
    }

    async fn read_all(mut self) -> Vec<(String, Value)> {
        self.read_until(usize::MAX).await
    }
}

fn create_request(client: &Client, members: Value) -> reqwest::RequestBuilder {
    let mut body = json!({ "input": "hello", "stream": true });
    body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
    client.request("POST", "/v1/responses").json(&body)
}

fn retrieve_request(client: &Client, id: &str, after: Option<u64>) -> reqwest::RequestBuilder {
    let after = after.map(|after| format!("&starting_after={after}")).unwrap_or_default();
    client.request("GET", &format!("/v1/responses/{id}?stream=true{after}"))
}

fn response_id(events: &[(String, Value)]) -> String {
    events[0].1["response"]["id"].as_str().unwrap().to_owned()
}

fn sequence_numbers(events: &[(String, Value)]) -> Vec<u64> {
    events.iter().map(|(_, data)| data["sequence_number"].as_u64().unwrap()).collect()
}

fn text_deltas(events: &[(String, Value)]) -> Vec<&str> {
    let deltas = events.iter().filter(|(kind, _)| kind == "response.output_text.delta");
    deltas.map(|(_, data)| data["delta"].as_str().unwrap()).collect()
}

fn event_types(events: &[(String, Value)]) -> Vec<&str> {
    events.iter().map(|(kind, _)| kind.as_str()).collect()
}

#[tokio::test]
async fn background_streams_can_be_resumed_on_any_instance() {
    let (server, model) = start_with_channel_model().await;
    let other = TestServer::start_on(server.memory.clone(), TestConfig::default()).await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200);
    for conversation in [Value::Null, conversation["id"].clone()] {
        let mut live =
            Stream::open(create_request(&client, json!({ "background": true, "conversation": conversation }))).await;
        model.send("A lamp").unwrap();
        model.send(" is").unwrap();
        let first = live.read_until(2).await;
        assert_eq!(first[0].1["response"]["background"], true);
        let id = response_id(&first);
        // The response continues after the client has disconnected.
        drop(live);
        let mut resumed = Stream::open(retrieve_request(&other.client(), &id, Some(4))).await;
        model.send(" on").unwrap();
        resumed.read_until(2).await;
        assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200)["status"], "in_progress");
        model.send(".").unwrap();
        model.send("").unwrap();
        let rest = resumed.read_all().await;
        assert_eq!(text_deltas(&first[..5]), ["A lamp"]);
        assert_eq!(text_deltas(&rest), [" is", " on", "."]);
        let events: Vec<_> = first[..5].iter().cloned().chain(rest).collect();
        assert_eq!(sequence_numbers(&events), (0..events.len() as u64).collect::<Vec<_>>());
        let (last, data) = events.last().unwrap();
        assert_eq!((last.as_str(), &data["response"]["status"]), ("response.completed", &json!("completed")));
        assert_eq!(data["response"]["output"][0]["content"][0]["text"], "A lamp is on.");
        assert_eq!(client.get(&format!("/v1/responses/{id}")).await.expect(200), data["response"]);
        // A complete response is replayed with the same deltas.
        for client in [&client, &other.client()] {
            let replayed = Stream::open(retrieve_request(client, &id, None)).await.read_all().await;
            assert_eq!(replayed[2..], events[2..], "only the first two events, which contain the time, differ");
            assert_eq!(event_types(&replayed), event_types(&events));
        }
        let end = Stream::open(retrieve_request(&client, &id, Some(1_000))).await.read_all().await;
        assert_eq!((event_types(&end), sequence_numbers(&end)), (vec!["response.completed"], vec![1_001]));
    }
}

#[tokio::test]
async fn stored_responses_are_replayed_without_deleted_items() {
    let (server, model) = start_with_channel_model().await;
    let client = server.client();
    let conversation = client.post("/v1/conversations", json!({})).await.expect(200)["id"].clone();
    for conversation in [Value::Null, conversation.clone()] {
        ["One, ", "two", ""].iter().for_each(|piece| model.send(piece).unwrap());
        let events =
            Stream::open(create_request(&client, json!({ "conversation": conversation }))).await.read_all().await;
        assert_eq!(text_deltas(&events), ["One, ", "two"]);
        let replayed = Stream::open(retrieve_request(&client, &response_id(&events), Some(1))).await.read_all().await;
        assert_eq!(replayed, events[2..]);
        // A response that was not streamed is replayed with one delta.
        ["One, ", "two", ""].iter().for_each(|piece| model.send(piece).unwrap());
        let response =
            client.post("/v1/responses", json!({ "input": "x", "conversation": conversation })).await.expect(200);
        let events =
            Stream::open(retrieve_request(&client, response["id"].as_str().unwrap(), None)).await.read_all().await;
        assert_eq!((text_deltas(&events), &events.last().unwrap().1["response"]), (vec!["One, two"], &response));
        let Some(conversation) = conversation.as_str() else { continue };
        let item = response["output"][0]["id"].as_str().unwrap();
        client.delete(&format!("/v1/conversations/{conversation}/items/{item}")).await.expect(200);
        let events = Stream::open(retrieve_request(&client, response["id"].as_str().unwrap(), None)).await;
        let events = events.read_all().await;
        assert_eq!(event_types(&events), ["response.created", "response.in_progress", "response.completed"]);
    }
    let unknown = client.get("/v1/responses/resp_00000000000000000000000000000000?stream=true").await;
    assert_eq!(unknown.code(404), "not_found");
    for wrong in ["stream=perhaps", "stream=true&starting_after=-1"] {
        let path = format!("/v1/responses/resp_00000000000000000000000000000000?{wrong}");
        assert_eq!(client.get(&path).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn cancelling_a_response_ends_all_its_streams() {
    let (server, model) = start_with_channel_model().await;
    let client = server.client();
    let mut live = Stream::open(create_request(&client, json!({ "background": true }))).await;
    model.send("A lamp").unwrap();
    let id = response_id(&live.read_until(1).await);
    let second = Stream::open(retrieve_request(&client, &id, None)).await;
    client.post(&format!("/v1/responses/{id}/cancel"), json!({})).await.expect(200);
    for stream in [live, second] {
        let events = stream.read_all().await;
        let (kind, data) = events.last().unwrap();
        assert_eq!((kind.as_str(), &data["response"]["status"]), ("response.cancelled", &json!("cancelled")));
    }
}

#[tokio::test]
async fn shutdown_ends_streams_with_an_event() {
    let (pieces, receiver) = mpsc::unbounded_channel();
    let model: Arc<dyn ChatModel> = Arc::new(ChannelModel(Mutex::new(receiver)));
    let options = ServerOptions { grace: std::time::Duration::from_millis(500), ..TestConfig::default().options };
    let mut server = TestServer::start_with(TestConfig { model: Some(model), options, ..TestConfig::default() }).await;
    let client = server.client();
    let mut live = Stream::open(create_request(&client, json!({ "background": true }))).await;
    pieces.send("A lamp").unwrap();
    let id = response_id(&live.read_until(1).await);
    let mut second = Stream::open(retrieve_request(&client, &id, None)).await;
    second.read_until(1).await;
    server.request_shutdown();
    for stream in [live, second] {
        let events = stream.read_all().await;
        let (kind, data) = events.last().unwrap();
        assert_eq!((kind.as_str(), &data["code"]), ("error", &json!("shutdown")));
        assert_eq!(sequence_numbers(&events), (0..events.len() as u64).collect::<Vec<_>>());
    }
}

/// The official client interrupts a stream at its first delta, and resumes it.
#[tokio::test]
async fn client_resumes_interrupted_streams() {
    if is_skipped() {
        return;
    }
    let config = super::config_with_model().0;
    let server = TestServer::start_with(TestConfig { assistants: vec![test_assistant("keeper").0], ..config }).await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/http/streams.py");
    let mut command = tokio::process::Command::new(program("python"));
    command.args([script, &server.url("/v1")]).kill_on_drop(true);
    command.env("NO_PROXY", "*").env("OPENAI_API_KEY", TOKEN);
    let output = tokio::time::timeout(TIMEOUT * 2, command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results: Value = serde_json::from_slice(&output.stdout).unwrap();
    for (name, text) in [
        ("background", "echo: hello there (1 messages)"),
        ("plain", "echo: hello there (1 messages)"),
        ("assistant", "You said: hello there"),
    ] {
        let result = &results[name];
        let count = result["kinds"].as_array().unwrap().len() as u64;
        assert_eq!(result["numbers"], json!((0..count).collect::<Vec<_>>()), "{name}");
        for member in ["text", "whole", "retrieved"] {
            assert_eq!(result[member], text, "{name} {member}");
        }
        assert_eq!(
            (&result["again"], &result["kinds"][count as usize - 1]),
            (&json!(true), &json!("response.completed"))
        );
    }
}
