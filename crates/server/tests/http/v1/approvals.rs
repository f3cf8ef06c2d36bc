use std::sync::Arc;

use serde_json::{Value, json};
use threadkeep::Memory;
use threadkeep_server::KeyRole;

use super::agents::parse_events;
use super::live::Events;
use crate::Client;
use crate::assistants::{start_with_test_assistant, test_assistant};
use crate::clock::FakeClock;
use crate::server::{Answer, TestConfig, TestServer, send};

/// Starts a turn that waits for approval. Returns the turn, and the path of the approval.
async fn start_waiting_turn(client: &Client, text: &str, thread: Option<&str>) -> (Value, String) {
    let turn = client.post("/v1/agents/keeper/turns", json!({ "text": text, "thread": thread })).await.expect(200);
    assert_eq!(turn["status"], "waiting_for_approval", "{turn}");
    let approval = turn["approvals"].as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/threads/{}/approvals/{approval}", turn["thread"].as_str().unwrap());
    (turn, path)
}

async fn send_decision(client: &Client, path: &str, body: Value, header: (&str, &str)) -> Answer {
    send(client.request("POST", path).header(header.0, header.1).json(&body)).await
}

#[tokio::test]
async fn calls_are_executed_once_after_approval() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let (turn, path) = start_waiting_turn(&client, "delete lamp", None).await;
    assert_eq!(turn["approvals"][0]["preview"], "rm lamp");
    assert!(turn["reply"].as_str().unwrap().contains("`rm lamp`"));
    assert!(model.deleted.lock().unwrap().is_empty());
    let listed = client.get("/v1/approvals").await.expect(200);
    assert_eq!((&listed["data"].as_array().unwrap().len(), &listed["next"]), (&1, &Value::Null));
    assert_eq!(listed["data"][0], client.get(&path).await.expect(200));
    assert_eq!((&listed["data"][0]["state"], &listed["data"][0]["turn"]), (&json!("pending"), &turn["turn"]));
    let approve = || send_decision(&client, &path, json!({ "decision": "approve" }), ("idempotency-key", "k"));
    let finished = approve().await.expect(200);
    assert_eq!((&finished["status"], &finished["reply"]), (&json!("completed"), &json!("Done: lamp deleted")));
    assert_eq!(finished["approvals"][0]["state"], "done");
    let repeated = approve().await;
    assert_eq!((repeated.header("idempotency-replayed"), &repeated.expect(200)["turn"]), ("true", &finished["turn"]));
    let other = send_decision(&client, &path, json!({ "decision": "deny" }), ("idempotency-key", "k")).await;
    assert_eq!(other.code(409), "approval_closed");
    assert_eq!(client.post(&path, json!({ "decision": "approve" })).await.code(409), "approval_closed");
    assert_eq!(*model.deleted.lock().unwrap(), ["lamp"]);
    assert_eq!(client.get("/v1/approvals").await.expect(200)["data"], json!([]));
    let all = client.get("/v1/approvals?all=true").await.expect(200);
    assert_eq!((&all["data"][0]["state"], &all["data"][0]["by"]), (&json!("done"), &json!("me")));
}

#[tokio::test]
async fn decisions_can_change_a_call_or_deny_it_with_a_reason() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let (turn, path) = start_waiting_turn(&client, "delete lamp", None).await;
    let approve_changed = json!({ "decision": "approve", "arguments": { "thing": "candle" }, "stream": true });
    let received = parse_events(&client.post(&path, approve_changed).await.text);
    let names: Vec<&str> = received.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["turn.started", "tool.started", "tool.finished", "token", "token", "turn.completed"]);
    assert_eq!(received[0].1["turn"], turn["turn"]);
    assert_eq!(received.last().unwrap().1["reply"], "Done: candle deleted");
    let decided = client.get(&path).await.expect(200);
    assert_eq!((&decided["arguments"], &decided["preview"]), (&json!({ "thing": "candle" }), &json!("rm candle")));
    let thread = turn["thread"].as_str().unwrap();
    let (_, path) = start_waiting_turn(&client, "delete house", Some(thread)).await;
    let denied = client.post(&path, json!({ "decision": "deny", "reason": "I live there" })).await.expect(200);
    assert_eq!(denied["approvals"][0]["state"], "denied");
    assert!(model.requests.lock().unwrap().last().unwrap().contains("I live there"), "the model receives the reason");
    assert_eq!(client.get(&path).await.expect(200)["reason"], "I live there");
    assert_eq!(*model.deleted.lock().unwrap(), ["candle"]);
    for body in [
        json!({}),
        json!({ "decision": "replace" }),
        json!({ "decision": "approve", "reason": "x" }),
        json!({ "decision": "deny", "arguments": {} }),
    ] {
        assert_eq!(client.post(&path, body).await.status, 400);
    }
    let unknown = format!("/v1/threads/{thread}/approvals/none");
    assert_eq!(client.get(&unknown).await.code(404), "not_found");
    assert_eq!(client.post(&unknown, json!({ "decision": "approve" })).await.code(404), "not_found");
}

#[tokio::test]
async fn new_approval_requests_replace_pending_ones() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let (turn, first) = start_waiting_turn(&client, "delete lamp", None).await;
    start_waiting_turn(&client, "delete house", turn["thread"].as_str()).await;
    assert_eq!(client.get(&first).await.expect(200)["state"], "replaced");
    assert_eq!(client.post(&first, json!({ "decision": "approve" })).await.code(409), "approval_closed");
    assert_eq!(client.get("/v1/approvals").await.expect(200)["data"].as_array().unwrap().len(), 1);
    assert!(model.deleted.lock().unwrap().is_empty());
}

/// While the accepted decision changes the state of the turn, other clients can still read the turn.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_of_concurrent_decisions_is_accepted() {
    const ROUNDS: usize = 12;
    const DECIDERS: usize = 12;
    let (server, model) = start_with_test_assistant().await;
    let (definition, other_model) = test_assistant("keeper");
    let config = TestConfig { assistants: vec![definition], ..TestConfig::default() };
    let other = TestServer::start_on(threadkeep::open(&server.store_url()).await.unwrap(), config).await;
    for round in 0..ROUNDS {
        let (turn, path) = start_waiting_turn(&server.client(), &format!("delete thing{round}"), None).await;
        let turn_path =
            format!("/v1/threads/{}/turns/{}", turn["thread"].as_str().unwrap(), turn["turn"].as_str().unwrap());
        let mut deciders = tokio::task::JoinSet::new();
        for decider in 0..DECIDERS {
            let client = if decider % 2 == 0 { server.client() } else { other.client() };
            let (path, turn_path) = (path.clone(), turn_path.clone());
            deciders.spawn(async move {
                let decision = if decider % 3 == 0 { "deny" } else { "approve" };
                let decided = client.post(&path, json!({ "decision": decision })).await;
                (decided, client.get(&turn_path).await.status)
            });
        }
        let decided = deciders.join_all().await;
        let accepted = decided.iter().filter(|(answer, _)| answer.status == 200).count();
        assert_eq!(accepted, 1, "{decided:?}");
        for (answer, turn_status) in &decided {
            assert!(matches!(turn_status, 200 | 202), "reading the turn returned {turn_status}");
            if answer.status != 200 {
                let error = answer.error(409);
                assert_eq!(error["code"], "approval_closed", "{error}");
                let message = error["message"].as_str().unwrap();
                assert!(["claimed", "done", "denied"].iter().any(|state| message.contains(state)), "{message}");
            }
        }
    }
    let deleted = model.deleted.lock().unwrap().len() + other_model.deleted.lock().unwrap().len();
    assert!(deleted <= ROUNDS, "{deleted} calls were executed in {ROUNDS} rounds");
}

#[tokio::test]
async fn decisions_require_the_approve_role() {
    let (server, model) = start_with_test_assistant().await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let (_, path) = start_waiting_turn(&ana, "delete lamp", None).await;
    let approve = json!({ "decision": "approve" });
    assert_eq!(ana.post(&path, approve.clone()).await.code(403), "role_missing");
    let other_tenant = server.client_with_new_key("other", None, &[KeyRole::Approve]).await;
    assert_eq!(other_tenant.post(&path, approve.clone()).await.code(404), "not_found");
    assert!(model.deleted.lock().unwrap().is_empty());
    let approver = server.client_with_new_key("acme", None, &[KeyRole::Approve]).await;
    assert_eq!(approver.get("/v1/approvals").await.expect(200)["data"][0]["preview"], "rm lamp");
    approver.post(&path, approve).await.expect(200);
    assert!(ana.get(&path).await.expect(200)["by"].as_str().unwrap().starts_with("key "));
}

#[tokio::test]
async fn undecided_approval_requests_expire() {
    let clock = Arc::new(FakeClock::default());
    let backend = threadkeep::open("memory:").await.unwrap().backend().clone();
    let (definition, model) = test_assistant("keeper");
    let config = TestConfig { assistants: vec![definition], ..TestConfig::default() };
    let server = TestServer::start_on(Memory::with_clock(backend, clock.clone()), config).await;
    let client = server.client();
    let (_, path) = start_waiting_turn(&client, "delete lamp", None).await;
    clock.set(31 * 60 * 1000);
    assert_eq!(client.get(&path).await.expect(200)["state"], "expired");
    assert_eq!(client.get("/v1/approvals").await.expect(200)["data"], json!([]));
    assert_eq!(client.post(&path, json!({ "decision": "approve" })).await.code(409), "approval_closed");
    assert_eq!(client.get("/v1/approvals?all=true").await.expect(200)["data"][0]["state"], "expired");
    assert!(model.deleted.lock().unwrap().is_empty());
}

#[tokio::test]
async fn approvals_are_sent_as_live_events() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let mut received = Events::open(&client, &format!("/v1/threads/{thread}/events?after=0"), None).await;
    let (_, path) = start_waiting_turn(&client, "delete lamp", Some(&thread)).await;
    let mut wait_for_state = async |wanted: &str| loop {
        let event = received.next().await.unwrap();
        let approvals = event.data["events"].as_array().unwrap().iter().filter(|event| event["type"] == "approval");
        if approvals.clone().any(|event| event["approval"]["state"] == wanted) {
            break;
        }
        assert!(approvals.clone().all(|event| event["approval"]["preview"] == "rm lamp"));
    };
    wait_for_state("pending").await;
    client.post(&path, json!({ "decision": "approve" })).await.expect(200);
    wait_for_state("done").await;
}

#[tokio::test]
async fn internal_records_of_turns_are_not_accessible() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let (turn, path) = start_waiting_turn(&client, "delete lamp", None).await;
    let thread = turn["thread"].as_str().unwrap();
    for family in ["run", "journal", "approval", "turn", "server", "openai.turns", "openai.background"] {
        for name in [family.to_owned(), format!("system%2F{family}"), format!("system/{family}")] {
            for path in [format!("/v1/threads/{thread}/records/{name}"), format!("/v1/records/{name}")] {
                let answer = client.get(&path).await;
                let is_empty = answer.status == 200 && answer.expect(200)["data"] == json!([]);
                assert!(is_empty || matches!(answer.status, 400 | 404), "{path}: {answer:?}");
            }
        }
    }
    let exported = client.get("/v1/export").await.text;
    assert!(exported.contains("delete lamp") && !exported.contains("\"system/"), "{exported}");
    client.post(&path, json!({ "decision": "deny" })).await.expect(200);
    let mut received = Events::open(&client, &format!("/v1/threads/{thread}/events?after=0"), None).await;
    let seq = client.get(&format!("/v1/threads/{thread}")).await.expect(200)["seq"].as_u64().unwrap();
    let mut message_count = 0;
    while message_count < seq {
        for event in received.next().await.unwrap().data["events"].as_array().unwrap() {
            assert!(matches!(event["type"].as_str(), Some("appended" | "approval" | "patched")), "{event}");
            message_count += event["messages"].as_array().map_or(0, |messages| messages.len() as u64);
        }
    }
}
