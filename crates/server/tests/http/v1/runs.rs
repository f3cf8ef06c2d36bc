//! `POST /v1/agents/{name}/run`.

use serde_json::{Value, json};
use threadkeep::Definition;
use threadkeep::agent::StoreUserMessage;
use threadkeep_server::KeyRole;

use super::agents::parse_events;
use crate::Client;
use crate::assistants::{start_with_test_assistant, test_assistant};
use crate::server::{TestConfig, TestServer, send};

const PATH: &str = "/v1/agents/keeper/run";
const FIELDS: [&str; 12] = [
    "query",
    "conversation_id",
    "results",
    "final_response",
    "sources_used",
    "metadata",
    "iterations",
    "exit_reason",
    "llm_reasoning",
    "total_cost",
    "embedding_calls",
    "llm_calls",
];

async fn run(client: &Client, body: Value) -> Value {
    client.post(PATH, body).await.expect(200)
}

// S3.05, S3.06, S3.08
#[tokio::test]
async fn a_run_creates_and_continues_a_conversation() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let question = "¿Qué es el amparo? ".repeat(8);
    let first = run(&client, json!({ "user_query": question, "user_id": "me" })).await;
    let fields: Vec<&str> = first.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(fields, FIELDS);
    assert_eq!(first["final_response"], format!("You said: {question}"));
    assert_eq!((&first["llm_calls"], &first["metadata"]["total_messages"]), (&json!(1), &json!(2)));
    let id = first["conversation_id"].as_str().unwrap();
    let body = json!({ "user_query": "look lamp", "conversation_id": id, "user_id": "me" });
    let second = run(&client, body).await;
    assert_eq!((&second["conversation_id"], &second["llm_calls"]), (&json!(id), &json!(2)));
    let thread = client.get(&format!("/v1/threads/{id}")).await.expect(200);
    assert_eq!(thread["title"], question.chars().take(100).collect::<String>());
    assert_eq!(thread["metadata"]["model"], "keeper");
}

// S3.07, S3.10
#[tokio::test]
async fn a_run_without_a_user_stores_nothing() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let result = run(&client, json!({ "user_query": "hello" })).await;
    assert_eq!((&result["conversation_id"], &result["final_response"]), (&Value::Null, &json!("You said: hello")));
    assert_eq!(result["warning"], "No conversation_id or user_id, skipping save");
    let conversation = "01890000-0000-7000-8000-000000000001";
    let result = run(&client, json!({ "user_query": "hello", "conversation_id": conversation })).await;
    assert_eq!(result["warning"], "user_id required for persistence");
    assert_eq!(client.get("/v1/threads").await.expect(200)["data"], json!([]));
    let analytics = client.get("/v1/analytics").await.expect(200);
    assert_eq!((&analytics["threads"], &analytics["messages"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn errors_of_invalid_runs_name_the_field() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let id = "01890000-0000-7000-8000-000000000001";
    for (body, status, param) in [
        (json!({ "user_query": " " }), 400, json!("user_query")),
        (json!({ "user_query": "a".repeat(1_001) }), 400, json!("user_query")),
        (json!({ "user_query": "hi", "max_iterations": 11 }), 400, json!("max_iterations")),
        (json!({ "user_query": "hi", "max_iterations": 0 }), 400, json!("max_iterations")),
        (json!({ "user_query": "hi", "user_id": "" }), 400, json!("user_id")),
        (json!({ "user_query": "hi", "user_id": "me", "conversation_id": "x" }), 400, json!("conversation_id")),
        (json!({ "user_query": "hi", "user_id": "me", "conversation_id": id }), 404, Value::Null),
    ] {
        assert_eq!(client.post(PATH, body.clone()).await.error(status)["param"], param, "{body}");
    }
    assert_eq!(model.request_count(), 0);
    assert_eq!(client.post("/v1/agents/unknown/run", json!({ "user_query": "hi" })).await.status, 404);
    assert_eq!(client.get("/v1/threads").await.expect(200)["data"], json!([]));
}

// S3.40
#[tokio::test]
async fn a_users_key_cannot_select_another_user() {
    let (server, _) = start_with_test_assistant().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let ben = server.client_with_new_key("acme", Some("ben"), &[KeyRole::Write]).await;
    let id = run(&tenant, json!({ "user_query": "hello", "user_id": "ana" })).await["conversation_id"].clone();
    let body = |user: &str| json!({ "user_query": "hello", "conversation_id": id, "user_id": user });
    assert_eq!(run(&ana, body("ana")).await["metadata"]["total_messages"], 4);
    assert_eq!(ben.post(PATH, body("ben")).await.status, 404);
    assert_eq!(ben.post(PATH, body("ana")).await.code(403), "other_user");
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    assert_eq!(reader.post(PATH, body("ana")).await.status, 403);
}

#[tokio::test]
async fn a_repeated_run_returns_the_first_result() {
    let (server, model) = start_with_test_assistant().await;
    let client = server.client();
    let body = json!({ "user_query": "hello", "user_id": "me" });
    let send_with_key = |body: Value| send(client.request("POST", PATH).header("idempotency-key", "k-1").json(&body));
    let first = send_with_key(body.clone()).await.expect(200);
    let again = send_with_key(body).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.expect(200), first);
    assert_eq!(model.request_count(), 1);
    let other = send_with_key(json!({ "user_query": "other", "user_id": "me" })).await;
    assert_eq!(other.code(409), "idempotency_key_reused");
}

#[tokio::test]
async fn a_run_is_streamed_as_start_token_sources_metadata_and_done() {
    let (server, _) = start_with_test_assistant().await;
    let client = server.client();
    let request = |body: Value| send(client.request("POST", PATH).json(&body));
    let streamed = request(json!({ "user_query": "hello", "user_id": "me", "stream": true })).await;
    let events = parse_events(&streamed.text);
    let names: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["start", "token", "token", "sources", "metadata", "done"]);
    let tokens: String = events.iter().filter_map(|(_, data)| data["text"].as_str()).collect();
    assert_eq!(tokens, "You said: hello");
    let done = &events[5].1;
    assert_eq!(done.as_object().unwrap().keys().map(String::as_str).collect::<Vec<_>>(), FIELDS);
    assert_eq!(events[0].1, json!({ "conversation_id": done["conversation_id"], "query": "hello" }));
    assert_eq!(events[3].1, json!({ "sources": [] }));
    assert_eq!((&events[4].1["llm_calls"], &events[4].1["total_messages"]), (&json!(1), &json!(2)));
    let accepted = client.request("POST", PATH).header("accept", "text/event-stream");
    let accepted = send(accepted.json(&json!({ "user_query": "hello" }))).await;
    assert_eq!(parse_events(&accepted.text)[0].1, json!({ "conversation_id": null, "query": "hello" }));
    let failed = request(json!({ "user_query": "fail", "user_id": "me", "stream": true })).await;
    let events = parse_events(&failed.text);
    let (name, done) = events.last().unwrap();
    assert_eq!((name.as_str(), &done["exit_reason"]), ("done", &json!("model_unavailable")));
    let unknown = json!({ "user_query": "hi", "user_id": "me", "stream": true, "conversation_id": done["thread"] });
    assert_eq!(request(unknown).await.status, 200, "null means a new conversation");
}

// S3.46
#[tokio::test]
async fn a_failed_run_stores_nothing_if_the_assistant_is_configured_that_way() {
    let definition = Definition { store_user_message: StoreUserMessage::WithAnswer, ..test_assistant("keeper").0 };
    let server = TestServer::start_with(TestConfig { assistants: vec![definition], ..TestConfig::default() }).await;
    let client = server.client();
    let failed = run(&client, json!({ "user_query": "fail", "user_id": "me" })).await;
    assert_eq!((&failed["conversation_id"], &failed["exit_reason"]), (&Value::Null, &json!("model_unavailable")));
    assert!(failed["warning"].as_str().unwrap().contains("neither"), "{failed}");
    assert_eq!(client.get("/v1/threads").await.expect(200)["data"], json!([]));
    let id = run(&client, json!({ "user_query": "hello", "user_id": "me" })).await["conversation_id"].clone();
    let body = json!({ "user_query": "fail", "user_id": "me", "conversation_id": id });
    let failed = run(&client, body).await;
    assert_eq!((&failed["conversation_id"], &failed["metadata"]["total_messages"]), (&id, &json!(2)));
}
