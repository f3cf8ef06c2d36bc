use std::sync::Arc;

use futures::StreamExt;
use serde_json::{Value, json};
use threadkeep::agent::BusyPolicy;
use threadkeep::{Role, Scope, Start, SubscribeOptions, ThreadEvent, ThreadUpdate};
use threadkeep_server::KeyRole;

use crate::Client;
use crate::assistants::{keeper, with_keeper};
use crate::server::{PATIENCE, TestConfig, TestServer, send};

const TURNS: &str = "/v1/agents/keeper/turns";

/// The events of a stream: name and data.
pub(super) fn events(text: &str) -> Vec<(String, Value)> {
    let blocks = text.split("\n\n").filter(|block| block.starts_with("event: "));
    blocks
        .map(|block| {
            let (name, data) = block.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
            (name.to_owned(), serde_json::from_str(data).unwrap())
        })
        .collect()
}

/// Waits until an assistant has said something in a thread.
pub(super) async fn answered(server: &TestServer, thread: &str) {
    let scope = Scope::user("local", "me").unwrap();
    let options = SubscribeOptions { start: Start::After(0.into()), roles: vec![Role::Assistant] };
    let mut updates = server.memory.subscribe(&scope, thread.parse().unwrap(), options).await.unwrap();
    let is_said = |update: &ThreadUpdate| matches!(update, ThreadUpdate::Commit { events, .. } if events.iter().any(|event| matches!(event, ThreadEvent::Appended { messages, .. } if !messages.is_empty())));
    let waiting = async { while !is_said(&updates.next().await.unwrap().unwrap()) {} };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap();
}

fn ask(client: &Client, body: Value, headers: &[(&str, &str)]) -> reqwest::RequestBuilder {
    let request = client.request("POST", TURNS).json(&body);
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value))
}

#[tokio::test]
async fn a_turn_is_told_as_every_door_tells_it() {
    let (server, _) = with_keeper().await;
    let client = server.client();
    let agents = client.get("/v1/agents").await.expect(200);
    assert_eq!((&agents["data"][0]["name"], &agents["data"][0]["model"]), (&json!("keeper"), &json!("keeper")));
    assert_eq!(agents["data"][0]["tools"][0]["name"], "look");
    let turn = client.post(TURNS, json!({ "text": "look lamp" })).await.expect(200);
    let mut fields: Vec<&str> = turn.as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    let documented = "agent approvals confidence context data duration_ms error model reply routed_agent sources \
                      started_at status stored thread tool_calls turn usage";
    assert_eq!(fields.join(" "), documented);
    assert_eq!((&turn["status"], &turn["reply"]), (&json!("completed"), &json!(r#"Done: {"seen":"lamp"}"#)));
    let call = &turn["tool_calls"][0];
    assert_eq!((&call["name"], &call["arguments"]), (&json!("look"), &json!({ "thing": "lamp" })));
    assert_eq!((&call["ok"], &call["result"]), (&json!(true), &json!({ "seen": "lamp" })));
    assert_eq!((&turn["usage"]["model_calls"], &turn["usage"]["input_tokens"]), (&json!(2), &json!(14)));
    assert_eq!(turn["stored"].as_array().unwrap().len(), 4);
    let thread = turn["thread"].as_str().unwrap();
    let again = client.get(&format!("/v1/threads/{thread}/turns/{}", turn["turn"].as_str().unwrap())).await;
    assert_eq!(again.expect(200)["tool_calls"], turn["tool_calls"]);
    assert_eq!(client.get(&format!("/v1/threads/{thread}/turns/none")).await.code(404), "not_found");
    let failed = client.post(TURNS, json!({ "text": "fail", "thread": thread })).await.expect(200);
    assert_eq!((&failed["status"], &failed["error"]["code"]), (&json!("failed"), &json!("model_unavailable")));
    assert!(failed["reply"].as_str().unwrap().contains("could not answer"));
    assert_eq!(client.texts(thread).await.len(), 6, "the question is kept");
}

#[tokio::test]
async fn a_turn_takes_place_in_the_thread_that_is_named() {
    let (server, _) = with_keeper().await;
    let client = server.client();
    let keyed = |text: &str| client.post(TURNS, json!({ "text": text, "thread": "web:1" }));
    let (first, second) = (keyed("one").await.expect(200), keyed("two").await.expect(200));
    assert_eq!(first["thread"], second["thread"]);
    assert_eq!(second["context"]["messages"], 2, "the model saw what was said before");
    let thread = first["thread"].as_str().unwrap();
    let by_id = client.post(TURNS, json!({ "text": "three", "thread": thread })).await.expect(200);
    assert_eq!(by_id["stored"], json!([{ "seq": 5, "role": "user" }, { "seq": 6, "role": "assistant" }]));
    let nobody = "0190b4e2-0000-7000-8000-000000000000";
    assert_eq!(client.post(TURNS, json!({ "text": "x", "thread": nobody })).await.code(404), "not_found");
    let none = client.post("/v1/agents/nobody/turns", json!({ "text": "x" })).await;
    assert_eq!(none.code(404), "not_found");
    assert_eq!(client.post(TURNS, json!({ "text": " " })).await.error(400)["param"], "text");
    assert_eq!(client.post(TURNS, json!({ "text": "x", "author": "eve" })).await.error(400)["param"], "author");
    let reader = server.keyed("acme", Some("ana"), &[KeyRole::Read]).await;
    assert_eq!(reader.post(TURNS, json!({ "text": "x" })).await.code(403), "role_missing");
}

#[tokio::test]
async fn a_turn_is_told_as_it_happens() {
    let (server, _) = with_keeper().await;
    let client = server.client();
    let told = client.post(TURNS, json!({ "text": "look lamp", "stream": true })).await;
    assert_eq!(told.header("content-type"), "text/event-stream");
    let told = events(&told.text);
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["turn.started", "tool.started", "tool.finished", "token", "token", "turn.completed"]);
    let words: String = told[3..5].iter().map(|(_, data)| data["text"].as_str().unwrap()).collect();
    let turn = &told[5].1;
    assert_eq!((turn["reply"].as_str().unwrap(), &turn["turn"]), (words.as_str(), &told[0].1["turn"]));
    assert_eq!(told[2].1, turn["tool_calls"][0]);
    let asked = ask(&client, json!({ "text": "fail" }), &[("accept", "text/event-stream")]);
    let failed = events(&send(asked).await.text);
    assert_eq!(failed.last().unwrap().0, "turn.failed");
    assert_eq!(failed.last().unwrap().1["error"]["code"], "model_unavailable");
    // What keeps a turn from beginning is an error, not a stream.
    let nobody = json!({ "text": "x", "thread": "0190b4e2-0000-7000-8000-000000000000", "stream": true });
    assert_eq!(client.post(TURNS, nobody).await.code(404), "not_found");
}

#[tokio::test]
async fn a_request_that_comes_again_has_its_turn_already() {
    let (server, model) = with_keeper().await;
    let client = server.client();
    let keyed = |text: &str| send(ask(&client, json!({ "text": text }), &[("idempotency-key", "k")]));
    let first = keyed("one").await.expect(200);
    let again = keyed("one").await;
    assert_eq!((again.header("idempotency-replayed"), &again.expect(200)["turn"]), ("true", &first["turn"]));
    assert_eq!(keyed("two").await.code(409), "idempotency_key_reused");
    let thread = first["thread"].as_str().unwrap();
    let in_thread = |text: &str, retry: &str| {
        send(ask(&client, json!({ "text": text, "thread": thread }), &[("x-stainless-retry-count", retry)]))
    };
    let yes = in_thread("yes", "0").await.expect(200);
    assert_eq!(in_thread("yes", "1").await.expect(200)["turn"], yes["turn"]);
    let second = in_thread("yes", "0").await.expect(200);
    assert_ne!(second["turn"], yes["turn"], "a second honest yes is kept");
    in_thread("no", "0").await.expect(200);
    assert_ne!(in_thread("yes", "1").await.expect(200)["turn"], second["turn"], "it is the thread's end no more");
    assert_eq!(model.request_count(), 5);
    let streamed = ask(&client, json!({ "text": "one", "stream": true }), &[("idempotency-key", "k")]);
    assert_eq!(send(streamed).await.code(409), "idempotency_key_reused", "another body, another thread");
    let streamed = json!({ "text": "yes", "thread": thread, "stream": true });
    let told = events(&send(ask(&client, streamed, &[("x-stainless-retry-count", "2")])).await.text);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0, "turn.completed");
}

#[tokio::test]
async fn a_request_that_comes_again_waits_for_the_turn_of_the_first() {
    let (server, model) = with_keeper().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let key = ("idempotency-key", "k");
    for (first, again) in [(key, key), (("x-stainless-retry-count", "0"), ("x-stainless-retry-count", "1"))] {
        let body = json!({ "text": "wait", "thread": thread });
        let first = tokio::spawn(send(ask(&client, body.clone(), &[first])));
        model.wait_until_blocked().await;
        let again = tokio::spawn(send(ask(&client, body, &[again])));
        model.unblock();
        let (first, again) = (first.await.unwrap().expect(200), again.await.unwrap().expect(200));
        assert_eq!(first["turn"], again["turn"]);
    }
    assert_eq!(client.texts(&thread).await.len(), 4);
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_lose_the_turn() {
    let (server, model) = with_keeper().await;
    let client = server.client();
    for stream in [false, true] {
        let thread = client.new_thread().await;
        let body = json!({ "text": "wait", "thread": thread, "stream": stream });
        let asking = tokio::spawn(send(ask(&client, body, &[])));
        model.wait_until_blocked().await;
        asking.abort();
        assert!(asking.await.unwrap_err().is_cancelled());
        model.unblock();
        answered(&server, &thread).await;
        assert_eq!(client.texts(&thread).await, ["wait", "You said: wait"]);
    }
}

#[tokio::test]
async fn a_server_that_is_asked_to_stop_finishes_the_turn() {
    let (mut server, model) = with_keeper().await;
    let client = server.client();
    let streamed = json!({ "text": "wait", "stream": true });
    let (whole, streamed) = (
        tokio::spawn(send(ask(&client, json!({ "text": "wait" }), &[]))),
        tokio::spawn(send(ask(&client, streamed, &[]))),
    );
    model.wait_until_blocked().await;
    model.wait_until_blocked().await;
    server.request_shutdown();
    model.unblock();
    model.unblock();
    assert_eq!(whole.await.unwrap().expect(200)["status"], "completed");
    assert_eq!(events(&streamed.await.unwrap().text).last().unwrap().0, "turn.completed");
    server.stopped().await.unwrap();
}

#[tokio::test]
async fn a_turn_is_cancelled_from_any_instance() {
    let (server, model) = with_keeper().await;
    let (definition, _) = keeper("keeper");
    let other =
        TestServer::over(server.memory.clone(), TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let client = server.client();
    let thread = client.new_thread().await;
    let body = json!({ "text": "wait", "thread": thread });
    let asking = tokio::spawn(send(ask(&client, body, &[])));
    model.wait_until_blocked().await;
    let scope = Scope::user("local", "me").unwrap();
    let running = threadkeep::agent::find_running_turn(&server.memory, &scope, thread.parse().unwrap()).await.unwrap();
    let path = format!("/v1/threads/{thread}/turns/{}", running.unwrap().turn);
    assert_eq!(client.get(&path).await.expect(202)["status"], "running");
    let cancelled = other.client().post(&format!("{path}/cancel"), json!({})).await.expect(200);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!(asking.await.unwrap().expect(200)["error"]["code"], "stopped");
    // Once more it is what it is, and so is one that was over.
    assert_eq!(client.post(&format!("{path}/cancel"), json!({})).await.expect(200)["status"], "failed");
    let over = client.post(TURNS, json!({ "text": "hello", "thread": thread })).await.expect(200);
    let path = format!("/v1/threads/{thread}/turns/{}/cancel", over["turn"].as_str().unwrap());
    assert_eq!(client.post(&path, json!({})).await.expect(200)["status"], "completed");
    let unknown = format!("/v1/threads/{thread}/turns/none/cancel");
    assert_eq!(client.post(&unknown, json!({})).await.code(404), "not_found");
}

#[tokio::test]
async fn a_second_turn_waits_or_is_refused_as_the_assistant_says() {
    let (patient, model) = keeper("keeper");
    let (mut refusing, _) = keeper("refusing");
    refusing.busy = BusyPolicy::Refuse;
    refusing.model = Arc::clone(&patient.model);
    let server = TestServer::start_with(TestConfig { assistants: vec![patient, refusing], ..TestConfig::default() }).await;
    let client = server.client();
    let thread = client.new_thread().await;
    let body = |text: &str| json!({ "text": text, "thread": thread });
    let first = tokio::spawn(send(ask(&client, body("wait"), &[])));
    model.wait_until_blocked().await;
    let refused = client.post("/v1/agents/refusing/turns", body("now")).await;
    assert_eq!((refused.code(409).as_str(), refused.header("retry-after")), ("busy", "1"));
    let refused = client.post("/v1/agents/refusing/turns", json!({ "text": "now", "thread": thread, "stream": true }));
    assert_eq!(refused.await.code(409), "busy");
    let second = tokio::spawn(send(ask(&client, body("two"), &[])));
    model.unblock();
    assert_eq!(first.await.unwrap().expect(200)["reply"], "You said: wait");
    assert_eq!(second.await.unwrap().expect(200)["reply"], "You said: two");
    assert_eq!(client.texts(&thread).await, ["wait", "You said: wait", "two", "You said: two"]);
}
