use std::sync::{Arc, LazyLock};

use futures::StreamExt;
use serde_json::{Value, json};
use threadkeep::agent::BusyPolicy;
use threadkeep::agent::plugin::{MapLine, MapStation, NetworkMap};
use threadkeep::{Role, Scope, Start, SubscribeOptions, ThreadEvent, ThreadUpdate};
use threadkeep_server::KeyRole;

use crate::Client;
use crate::assistants::{start_with_test_assistant, test_assistant};
use crate::server::{TIMEOUT, TestConfig, TestServer, send};

const TURNS_PATH: &str = "/v1/agents/keeper/turns";

/// Parses the events of a stream into names and data.
pub(super) fn parse_events(text: &str) -> Vec<(String, Value)> {
    let blocks = text.split("\n\n").filter(|block| block.starts_with("event: "));
    blocks
        .map(|block| {
            let (name, data) = block.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
            (name.to_owned(), serde_json::from_str(data).unwrap())
        })
        .collect()
}

/// Waits until an assistant has written a message in a thread.
pub(super) async fn wait_for_answer(server: &TestServer, thread: &str) {
    let scope = Scope::user("local", "me").unwrap();
    let options = SubscribeOptions { start: Start::After(0.into()), roles: vec![Role::Assistant] };
    let mut updates = server.memory.subscribe(&scope, thread.parse().unwrap(), options).await.unwrap();
    let is_answer = |update: &ThreadUpdate| matches!(update, ThreadUpdate::Commit { events, .. } if events.iter().any(|event| matches!(event, ThreadEvent::Appended { messages, .. } if !messages.is_empty())));
    let waiting = async { while !is_answer(&updates.next().await.unwrap().unwrap()) {} };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

/// Returns a request that starts a turn.
fn turn_request(client: &Client, body: Value, headers: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let request = client.request("POST", TURNS_PATH).json(&body);
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
}

#[tokio::test]
async fn turns_are_returned_with_all_documented_fields() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let agents = client.get("/v1/agents").await.expect(200);
    assert_eq!((&agents["data"][0]["name"], &agents["data"][0]["model"]), (&json!("keeper"), &json!("keeper")));
    assert_eq!(agents["data"][0]["tools"][0]["name"], "look");
    let turn = client.post(TURNS_PATH, json!({ "text": "look lamp" })).await.expect(200);
    let mut members: Vec<&str> = turn.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    let documented = "agent approvals confidence context data duration_ms error model reply routed_agent sources \
                      started_at status stored thread tool_calls turn usage";
    assert_eq!(members.join(" "), documented);
    assert_eq!((&turn["status"], &turn["reply"]), (&json!("completed"), &json!(r#"Done: {"seen":"lamp"}"#)));
    let call = &turn["tool_calls"][0];
    assert_eq!((&call["name"], &call["arguments"]), (&json!("look"), &json!({ "thing": "lamp" })));
    assert_eq!((&call["ok"], &call["result"]), (&json!(true), &json!({ "seen": "lamp" })));
    assert_eq!((&turn["usage"]["model_calls"], &turn["usage"]["input_tokens"]), (&json!(2), &json!(14)));
    assert_eq!(turn["stored"].as_array().unwrap().len(), 4);
    let thread = turn["thread"].as_str().unwrap();
    let repeated = client.get(&format!("/v1/threads/{thread}/turns/{}", turn["turn"].as_str().unwrap())).await;
    assert_eq!(repeated.expect(200)["tool_calls"], turn["tool_calls"]);
    assert_eq!(client.get(&format!("/v1/threads/{thread}/turns/none")).await.code(404), "not_found");
    let failed = client.post(TURNS_PATH, json!({ "text": "fail", "thread": thread })).await.expect(200);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("model_unavailable")));
    assert!(failed["reply"].as_str().unwrap().contains("could not answer"));
    assert_eq!(client.texts(thread).await.len(), 6, "the question is stored");
}

#[tokio::test]
async fn turns_run_in_the_named_thread() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let ask_in_thread = |text: &str| client.post(TURNS_PATH, json!({ "text": text, "thread": "web:1" }));
    let (first, second) = (ask_in_thread("one").await.expect(200), ask_in_thread("two").await.expect(200));
    assert_eq!(first["thread"], second["thread"]);
    assert_eq!(second["context"]["messages"], 2, "the model received the previous messages");
    let thread = first["thread"].as_str().unwrap();
    let by_id = client.post(TURNS_PATH, json!({ "text": "three", "thread": thread })).await.expect(200);
    assert_eq!(by_id["stored"], json!([{ "seq": 5, "role": "user" }, { "seq": 6, "role": "assistant" }]));
    let unknown = "0190b4e2-0000-7000-8000-000000000000";
    assert_eq!(client.post(TURNS_PATH, json!({ "text": "x", "thread": unknown })).await.code(404), "not_found");
    let unknown_agent = client.post("/v1/agents/unknown/turns", json!({ "text": "x" })).await;
    assert_eq!(unknown_agent.code(404), "not_found");
    assert_eq!(client.post(TURNS_PATH, json!({ "text": " " })).await.error(400)["param"], "text");
    assert_eq!(client.post(TURNS_PATH, json!({ "text": "x", "author": "eve" })).await.error(400)["param"], "author");
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    assert_eq!(reader.post(TURNS_PATH, json!({ "text": "x" })).await.code(403), "role_missing");
}

#[tokio::test]
async fn turns_can_be_streamed() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let received = client.post(TURNS_PATH, json!({ "text": "look lamp", "stream": true })).await;
    assert_eq!(received.header("content-type"), "text/event-stream");
    let received = parse_events(&received.text);
    let names: Vec<&str> = received.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["turn.started", "tool.started", "tool.finished", "token", "token", "turn.completed"]);
    let text: String = received[3..5].iter().map(|(_, data)| data["text"].as_str().unwrap()).collect();
    let turn = &received[5].1;
    assert_eq!((turn["reply"].as_str().unwrap(), &turn["turn"]), (text.as_str(), &received[0].1["turn"]));
    assert_eq!(received[2].1, turn["tool_calls"][0]);
    let request = turn_request(&client, json!({ "text": "fail" }), &[("accept", "text/event-stream")]);
    let failed = parse_events(&send(request).await.text);
    assert_eq!(failed.last().unwrap().0, "turn.failed");
    assert_eq!(failed.last().unwrap().1["error"]["code"], "model_unavailable");
    // If a turn cannot start, the response is an error instead of a stream.
    let unknown = json!({ "text": "x", "thread": "0190b4e2-0000-7000-8000-000000000000", "stream": true });
    assert_eq!(client.post(TURNS_PATH, unknown).await.code(404), "not_found");
}

#[tokio::test]
async fn repeated_requests_return_the_stored_turn() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let ask_with_key = |text: &str| send(turn_request(&client, json!({ "text": text }), &[("idempotency-key", "k")]));
    let first = ask_with_key("one").await.expect(200);
    let repeated = ask_with_key("one").await;
    assert_eq!((repeated.header("idempotency-replayed"), &repeated.expect(200)["turn"]), ("true", &first["turn"]));
    assert_eq!(ask_with_key("two").await.code(409), "idempotency_key_reused");
    let thread = first["thread"].as_str().unwrap();
    let in_thread = |text: &str, retry: &str| {
        send(turn_request(&client, json!({ "text": text, "thread": thread }), &[("x-stainless-retry-count", retry)]))
    };
    let yes = in_thread("yes", "0").await.expect(200);
    assert_eq!(in_thread("yes", "1").await.expect(200)["turn"], yes["turn"]);
    let second = in_thread("yes", "0").await.expect(200);
    assert_ne!(second["turn"], yes["turn"], "identical requests that are not retries are separate turns");
    in_thread("no", "0").await.expect(200);
    assert_ne!(
        in_thread("yes", "1").await.expect(200)["turn"],
        second["turn"],
        "the turn is no longer the last of the thread"
    );
    assert_eq!(model.request_count(), 5);
    let streamed = turn_request(&client, json!({ "text": "one", "stream": true }), &[("idempotency-key", "k")]);
    assert_eq!(send(streamed).await.code(409), "idempotency_key_reused", "the key is the same, but the body differs");
    let streamed = json!({ "text": "yes", "thread": thread, "stream": true });
    let received = parse_events(&send(turn_request(&client, streamed, &[("x-stainless-retry-count", "2")])).await.text);
    assert_eq!(received.len(), 1, "{received:?}");
    assert_eq!(received[0].0, "turn.completed");
}

#[tokio::test]
async fn repeated_requests_wait_for_the_running_turn() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let key = ("idempotency-key", "k");
    for (first, repeated) in [(key, key), (("x-stainless-retry-count", "0"), ("x-stainless-retry-count", "1"))] {
        let body = json!({ "text": "wait", "thread": thread });
        let first = tokio::spawn(send(turn_request(&client, body.clone(), &[first])));
        model.wait_until_blocked().await;
        let repeated = tokio::spawn(send(turn_request(&client, body, &[repeated])));
        model.unblock();
        let (first, repeated) = (first.await.unwrap().expect(200), repeated.await.unwrap().expect(200));
        assert_eq!(first["turn"], repeated["turn"]);
    }
    assert_eq!(client.texts(&thread).await.len(), 4);
}

#[tokio::test]
async fn turns_finish_if_the_client_disconnects() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    for stream in [false, true] {
        let thread = client.new_thread().await;
        let body = json!({ "text": "wait", "thread": thread, "stream": stream });
        let pending = tokio::spawn(send(turn_request(&client, body, &[])));
        model.wait_until_blocked().await;
        pending.abort();
        assert!(pending.await.unwrap_err().is_cancelled());
        model.unblock();
        wait_for_answer(&server, &thread).await;
        assert_eq!(client.texts(&thread).await, ["wait", "You said: wait"]);
    }
}

#[tokio::test]
async fn turns_finish_during_shutdown() {
    let (mut server, model) = start_with_test_assistant().await;
    let client = server.client();
    let streamed = json!({ "text": "wait", "stream": true });
    let (unstreamed, streamed) = (
        tokio::spawn(send(turn_request(&client, json!({ "text": "wait" }), &[]))),
        tokio::spawn(send(turn_request(&client, streamed, &[]))),
    );
    model.wait_until_blocked().await;
    model.wait_until_blocked().await;
    server.request_shutdown();
    model.unblock();
    model.unblock();
    assert_eq!(unstreamed.await.unwrap().expect(200)["status"], "completed");
    assert_eq!(parse_events(&streamed.await.unwrap().text).last().unwrap().0, "turn.completed");
    server.wait_until_stopped().await.unwrap();
}

#[tokio::test]
async fn turns_can_be_cancelled_from_any_instance() {
    let (server, model) = start_with_test_assistant().await;
    let (definition, _) = test_assistant("keeper");
    let other = TestServer::start_on(
        server.memory.clone(),
        TestConfig { assistants: vec![definition], ..TestConfig::default() },
    )
    .await;
    let client = server.client();
    let thread = client.new_thread().await;
    let body = json!({ "text": "wait", "thread": thread });
    let pending = tokio::spawn(send(turn_request(&client, body, &[])));
    model.wait_until_blocked().await;
    let scope = Scope::user("local", "me").unwrap();
    let running = threadkeep::agent::find_running_turn(&server.memory, &scope, thread.parse().unwrap()).await.unwrap();
    let path = format!("/v1/threads/{thread}/turns/{}", running.unwrap().turn);
    assert_eq!(client.get(&path).await.expect(202)["status"], "running");
    let cancelled = other.client().post(&format!("{path}/cancel"), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!(pending.await.unwrap().expect(200)["error"]["code"], "stopped");
    // Cancelling again, or cancelling a finished turn, returns the turn unchanged.
    assert_eq!(client.post(&format!("{path}/cancel"), json!({})).await.expect(200)["status"], "failed");
    let finished = client.post(TURNS_PATH, json!({ "text": "hello", "thread": thread })).await.expect(200);
    let path = format!("/v1/threads/{thread}/turns/{}/cancel", finished["turn"].as_str().unwrap());
    assert_eq!(client.post(&path, json!({})).await.expect(200)["status"], "completed");
    let unknown = format!("/v1/threads/{thread}/turns/none/cancel");
    assert_eq!(client.post(&unknown, json!({})).await.code(404), "not_found");
}

#[tokio::test]
async fn concurrent_turns_wait_or_are_rejected_by_policy() {
    let (waiting, model) = test_assistant("keeper");
    let (mut refusing, _) = test_assistant("refusing");
    refusing.busy = BusyPolicy::Refuse;
    refusing.model = Arc::clone(&waiting.model);
    let server =
        TestServer::start_with(TestConfig { assistants: vec![waiting, refusing], ..TestConfig::default() }).await;
    let client = server.client();
    let thread = client.new_thread().await;
    let body = |text: &str| json!({ "text": text, "thread": thread });
    let first = tokio::spawn(send(turn_request(&client, body("wait"), &[])));
    model.wait_until_blocked().await;
    let refused = client.post("/v1/agents/refusing/turns", body("now")).await;
    assert_eq!((refused.code(409).as_str(), refused.header("retry-after")), ("busy", "1"));
    let refused = client.post("/v1/agents/refusing/turns", json!({ "text": "now", "thread": thread, "stream": true }));
    assert_eq!(refused.await.code(409), "busy");
    let second = tokio::spawn(send(turn_request(&client, body("two"), &[])));
    model.unblock();
    assert_eq!(first.await.unwrap().expect(200)["reply"], "You said: wait");
    assert_eq!(second.await.unwrap().expect(200)["reply"], "You said: two");
    assert_eq!(client.texts(&thread).await, ["wait", "You said: wait", "two", "You said: two"]);
}

/// The map of a test assistant: one line with two stations.
fn map() -> &'static NetworkMap {
    static MAP: LazyLock<NetworkMap> = LazyLock::new(|| {
        let station = |id: &str, latitude| MapStation {
            id: id.to_owned(),
            complex: "c".to_owned(),
            name: format!("{id} <Street>"),
            latitude,
            longitude: -0.25,
        };
        let line = MapLine {
            id: "x".to_owned(),
            name: "X".to_owned(),
            full_name: None,
            colour: "#0039a6",
            patterns: vec![vec![1, 0]],
        };
        NetworkMap { stations: vec![station("a", 51.5), station("b", 51.75)], lines: vec![line] }
    });
    &MAP
}

#[tokio::test]
async fn an_assistants_map_is_returned_and_can_be_revalidated() {
    let assistants = vec![test_assistant("keeper").0];
    let config = TestConfig { assistants, network_map: Some(map), ..TestConfig::default() };
    let server = TestServer::start_with(config).await;
    let client = server.client();
    assert_eq!(client.get("/v1/agents").await.expect(200)["data"][0]["has_map"], true);
    let found = client.get("/v1/agents/keeper/map").await;
    assert_eq!(found.header("cache-control"), "private, no-cache");
    let etag = found.header("etag").to_owned();
    let station = |id: &str, latitude: f64| json!({ "id": id, "complex": "c", "name": format!("{id} <Street>"), "latitude": latitude, "longitude": -0.25 });
    let expected = json!({
        "stations": [station("a", 51.5), station("b", 51.75)],
        "lines": [{ "id": "x", "name": "X", "colour": "#0039a6", "patterns": [[1, 0]] }],
    });
    assert_eq!(found.expect(200), expected);
    let with_tag = |tag: String| client.request("GET", "/v1/agents/keeper/map").header("if-none-match", tag);
    for known in [etag.clone(), format!("\"x\", W/{etag}")] {
        let unchanged = send(with_tag(known)).await;
        assert_eq!((unchanged.status, unchanged.header("etag"), unchanged.text.as_str()), (304, etag.as_str(), ""));
    }
    assert_eq!(send(with_tag("\"x\"".to_owned())).await.status, 200);
    assert_eq!(server.anonymous_client().get("/v1/agents/keeper/map").await.status, 401);
}

#[tokio::test]
async fn an_assistant_without_a_collection_has_no_sources() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    assert_eq!(client.get("/v1/agents/keeper/source?kind=tesis&id=1").await.code(404), "not_found");
    assert_eq!(client.get("/v1/agents/unknown/source?kind=tesis&id=1").await.code(404), "not_found");
    let error = client.get("/v1/agents/keeper/source?kind=tesis").await.error(400);
    assert_eq!(error["param"], "id");
    assert_eq!(client.get("/v1/agents/keeper/source?kind=a&id=1&text=x").await.error(400)["param"], "text");
}

#[tokio::test]
async fn an_assistant_without_a_map_is_not_reported_as_unknown() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    assert_eq!(client.get("/v1/agents").await.expect(200)["data"][0]["has_map"], false);
    assert_eq!(client.get("/v1/agents/keeper").await.expect(200)["has_map"], false);
    let error = client.get("/v1/agents/keeper/map").await.error(404);
    assert_eq!(error["code"], "no_map");
    assert!(error["message"].as_str().unwrap().contains("has_map"), "{error}");
    assert_eq!(client.get("/v1/agents/unknown/map").await.code(404), "not_found");
}
