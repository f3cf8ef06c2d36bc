//! Cancelling turns, verified by the requests that the model server receives.

use serde_json::{Value, json};

use super::background::{ModelEvent, ModelServer};
use crate::Client;
use crate::assistants::{start_with_test_assistant, test_assistant};
use crate::server::{TestConfig, TestServer};

const TURNS_PATH: &str = "/v1/agents/keeper/turns";

/// Starts a server with an assistant whose model the test controls.
async fn start_with_model_server() -> (TestServer, ModelServer) {
    let model = ModelServer::start().await;
    let (mut definition, _) = test_assistant("keeper");
    definition.model = model.model();
    (TestServer::start_with(TestConfig { assistants: vec![definition], ..TestConfig::default() }).await, model)
}

/// Sends a POST request without waiting for the response.
fn spawn_post(client: &Client, path: &str, body: Value) -> tokio::task::JoinHandle<Value> {
    let (client, path) = (client.clone(), path.to_owned());
    tokio::spawn(async move { client.post(&path, body).await.expect(200) })
}

/// Returns the path of a turn, and the path of its first approval.
fn paths_of(turn: &Value) -> (String, String) {
    let thread = turn["thread"].as_str().unwrap();
    let approval = turn["approvals"][0]["id"].as_str().unwrap();
    let turn = format!("/v1/threads/{thread}/turns/{}", turn["turn"].as_str().unwrap());
    (turn, format!("/v1/threads/{thread}/approvals/{approval}"))
}

#[tokio::test]
async fn turns_can_be_cancelled_after_a_decision() {
    let (server, mut model) = start_with_model_server().await;
    let client = server.client();
    let pending = spawn_post(&client, TURNS_PATH, json!({ "text": "Delete the lamp." }));
    assert_eq!(model.next_event().await, ModelEvent::Requested);
    model.answers.send("call delete").unwrap();
    let turn = pending.await.unwrap();
    assert_eq!(turn["status"], "waiting_for_approval");
    let (path, approval) = paths_of(&turn);
    let decision = spawn_post(&client, &approval, json!({ "decision": "approve" }));
    assert_eq!(model.next_event().await, ModelEvent::Requested);
    let cancelled = client.post(&format!("{path}/cancel"), json!({})).await.expect(200);
    assert_eq!(model.next_event().await, ModelEvent::Closed);
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!(cancelled["approvals"][0]["state"], "done", "the call had been executed");
    assert_eq!(decision.await.unwrap()["error"]["code"], "stopped");
    assert_eq!(client.get(&path).await.expect(200), cancelled);
    // The thread is unlocked.
    let pending = spawn_post(&client, TURNS_PATH, json!({ "text": "And now?", "thread": turn["thread"] }));
    assert_eq!(model.next_event().await, ModelEvent::Requested);
    model.answers.send("Now it is dark.").unwrap();
    assert_eq!(pending.await.unwrap()["reply"], "Now it is dark.");
}

#[tokio::test]
async fn turns_can_be_cancelled_while_waiting_for_a_decision() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let turn = client.post(TURNS_PATH, json!({ "text": "delete lamp" })).await.expect(200);
    assert_eq!(turn["status"], "waiting_for_approval");
    let (path, approval) = paths_of(&turn);
    // Reading the waiting turn returns the same result.
    let reread = client.get(&path).await.expect(200);
    assert_eq!(reread, turn);
    assert_eq!((&turn["usage"]["model_calls"], &turn["model"]), (&json!(1), &json!("keeper-1")));
    let cancelled = client.post(&format!("{path}/cancel"), json!({})).await.expect(200);
    assert_eq!((&cancelled["usage"], &cancelled["model"]), (&turn["usage"], &turn["model"]));
    assert_eq!((&cancelled["status"], &cancelled["error"]["code"]), (&json!("failed"), &json!("stopped")));
    assert_eq!(cancelled["approvals"][0]["state"], "replaced");
    assert_eq!(client.post(&approval, json!({ "decision": "approve" })).await.code(409), "approval_closed");
    assert_eq!(client.get("/v1/approvals").await.expect(200)["data"], json!([]));
    assert_eq!(client.post(&format!("{path}/cancel"), json!({})).await.expect(200), cancelled);
    assert!(model.deleted.lock().unwrap().is_empty());
    let body = json!({ "text": "hello", "thread": turn["thread"] });
    assert_eq!(client.post(TURNS_PATH, body).await.expect(200)["reply"], "You said: hello");
}

#[tokio::test]
async fn only_one_of_concurrent_cancellation_and_decision_succeeds() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    for _ in 0..8 {
        let turn = client.post(TURNS_PATH, json!({ "text": "delete lamp" })).await.expect(200);
        let (path, approval) = paths_of(&turn);
        let cancel = format!("{path}/cancel");
        let deleted_before = model.deleted.lock().unwrap().len();
        let (cancelled, decided) =
            futures::join!(client.post(&cancel, json!({})), client.post(&approval, json!({ "decision": "approve" })));
        let deleted = model.deleted.lock().unwrap().len() - deleted_before;
        let turn = cancelled.expect(200);
        match decided.status {
            409 => assert_eq!((deleted, &turn["error"]["code"]), (0, &json!("stopped"))),
            _ => assert!(deleted <= 1 && turn["status"] != "waiting_for_approval", "{turn}"),
        }
        assert_eq!(client.get(&path).await.expect(200)["status"], turn["status"]);
    }
}
