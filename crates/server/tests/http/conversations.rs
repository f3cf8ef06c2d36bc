//! The compatibility endpoints for conversations.

use serde_json::{Value, json};
use threadkeep_server::KeyRole;

use crate::TestServer;
use crate::assistants::test_assistant;
use crate::server::{TestConfig, send};

/// Captures the log until the value is dropped.
struct Log {
    file: tempfile::NamedTempFile,
    _guard: tracing::subscriber::DefaultGuard,
}

impl Log {
    /// Captures what the current thread logs. A server that the test starts runs on the same thread.
    fn capture() -> Self {
        let file = tempfile::NamedTempFile::new().unwrap();
        let writer = std::sync::Mutex::new(file.reopen().unwrap());
        let log = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
        Self { file, _guard: tracing::subscriber::set_default(log) }
    }

    fn contains(&self, text: &str) -> bool {
        std::fs::read_to_string(self.file.path()).unwrap().contains(text)
    }
}

// S0.29
#[tokio::test]
async fn history_is_complete_and_oldest_first() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let messages = json!({ "messages": [
        { "role": "user", "text": "Any delays?", "created_at": "2026-05-04T18:12:00.25Z" },
        { "role": "tool", "parts": [{ "tool_result": { "call_id": "c", "output": "o" } }] },
        { "role": "assistant", "text": "None.", "agent": "CIRCLE", "data": { "status": "Good Service" } },
    ] });
    client.post(&format!("/v1/threads/{thread}/messages"), messages).await.expect(201);
    let history = client.get(&format!("/conversations/{thread}")).await.expect(200);
    assert_eq!((&history["success"], &history["threadId"]), (&json!(true), &json!(thread)));
    let messages = history["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2);
    assert!(messages[0]["id"].is_string());
    assert_eq!(messages[0]["timestamp"], "2026-05-04T18:12:00.25Z");
    let fields_of =
        |message: &Value| json!([message["content"], message["sender"], message["agent"], message["tflData"]]);
    assert_eq!(fields_of(&messages[0]), json!(["Any delays?", "user", null, null]));
    assert_eq!(fields_of(&messages[1]), json!(["None.", "assistant", "CIRCLE", { "status": "Good Service" }]));
    let many: Vec<Value> = (0..600).map(|count| json!({ "role": "user", "text": count.to_string() })).collect();
    for _ in 0..2 {
        client.post(&format!("/v1/threads/{thread}/messages"), json!({ "messages": many })).await.expect(201);
    }
    let history = client.get(&format!("/conversations/{thread}")).await.expect(200);
    assert_eq!(history["messages"].as_array().unwrap().len(), 1_202, "the complete history");
    for unknown in ["0190b4e2-0000-7000-8000-000000000000", "thread_1"] {
        let empty = client.get(&format!("/conversations/{unknown}")).await.expect(200);
        assert_eq!(empty, json!({ "success": true, "threadId": unknown, "messages": [] }));
    }
}

/// Starts a server with an assistant whose threads have metadata.
async fn start_with_metadata() -> TestServer {
    let (mut definition, _) = test_assistant("keeper");
    definition.thread_metadata.insert("type".to_owned(), "tfl_transport_query".into());
    TestServer::start_with(TestConfig { assistants: vec![definition], ..TestConfig::default() }).await
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

// S0.09, S0.10, S0.20, S0.24, S0.25, S0.49
#[tokio::test]
async fn queries_create_threads_with_metadata() {
    let server = start_with_metadata().await;
    let client = server.client();
    let log = Log::capture();
    let context = json!({ "userLocation": "London", "created": "never" });
    let query = json!({ "query": "look lamp", "userContext": context });
    let answer = client.post("/api/chat", query).await.expect(200);
    assert_eq!(
        keys(&answer),
        ["success", "response", "threadId", "agent", "confidence", "tflData", "timestamp"],
        "{answer}"
    );
    assert_eq!((&answer["success"], &answer["agent"]), (&json!(true), &json!("keeper")));
    assert!(answer["response"].as_str().unwrap().starts_with("Done:"), "{answer}");
    let id = answer["threadId"].as_str().unwrap();
    let metadata = &client.get(&format!("/v1/threads/{id}")).await.expect(200)["metadata"];
    assert_eq!((&metadata["userContext"], &metadata["initialQuery"]), (&context, &json!("look lamp")));
    assert_eq!(metadata["type"], "tfl_transport_query");
    for time in ["startTime", "created"] {
        assert!(metadata[time].as_str().unwrap().ends_with('Z'), "{metadata}");
    }
    let history = client.get(&format!("/conversations/{id}")).await.expect(200);
    let stored = history["messages"].as_array().unwrap();
    for line in [
        format!("🆕 Created TFL thread: {id}"),
        format!("💾 Saved human message (no agent): {}", stored[0]["id"].as_str().unwrap()),
        "💾 Saved response from keeper agent".to_owned(),
    ] {
        assert!(log.contains(&line), "{line}");
    }
    let saved = format!(": {}", stored[stored.len() - 1]["id"].as_str().unwrap());
    assert!(log.contains("💾 Saved assistant message (") && log.contains(&saved));
}

// S0.21, S0.22, S0.29
#[tokio::test]
async fn queries_continue_known_threads_only() {
    let server = start_with_metadata().await;
    let client = server.client();
    let ask = async |path: &str, query: Value| client.post(path, query).await.expect(200);
    let first = ask("/api/chat", json!({ "query": "one" })).await;
    let thread = &first["threadId"];
    let second = ask("/keeper/api/chat", json!({ "query": "two", "threadId": thread })).await;
    assert_eq!((&second["threadId"], &second["response"]), (thread, &json!("You said: two")));
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let other_users = ana.post("/api/chat", json!({ "query": "mine", "threadId": thread })).await.expect(200);
    assert_ne!(&other_users["threadId"], thread, "threads of other users are not known");
    let client = ana;
    for unknown in ["0190b4e2-0000-7000-8000-000000000000", "session-1"] {
        let started = client.post("/api/chat", json!({ "query": "three", "threadId": unknown })).await.expect(200);
        assert_ne!(started["threadId"], json!(unknown));
        let metadata = &client.get(&format!("/v1/threads/{}", started["threadId"].as_str().unwrap())).await.expect(200);
        assert_eq!(metadata["metadata"]["initialQuery"], "three");
    }
    let repeated = || {
        let request = client.request("POST", "/api/chat").header("idempotency-key", "k");
        send(request.json(&json!({ "query": "once" })))
    };
    assert_eq!(repeated().await.expect(200)["threadId"], repeated().await.expect(200)["threadId"]);
}

// S0.22, S0.26
#[tokio::test]
async fn failed_queries_are_answered_with_an_apology() {
    let server = start_with_metadata().await;
    let client = server.client();
    let failed = client.post("/api/chat", json!({ "query": "fail" })).await.expect(200);
    assert_eq!(keys(&failed), ["success", "response", "threadId", "error", "timestamp"], "{failed}");
    assert_eq!(failed["success"], false);
    assert!(!failed["response"].as_str().unwrap().is_empty() && !failed["error"].as_str().unwrap().is_empty());
    let history = client.get(&format!("/conversations/{}", failed["threadId"].as_str().unwrap())).await.expect(200);
    assert_eq!(history["messages"][0]["content"], "fail", "the question is stored");
    for (query, error) in [
        (json!({ "query": " " }), "Query is required"),
        (json!({ "query": "é".repeat(1001) }), "Query must have at most 1000 characters"),
        (json!({ "query": "hello", "threadId": "x".repeat(101) }), "Thread ID must have at most 100 characters"),
    ] {
        let answer = client.post("/api/chat", query).await.expect(400);
        assert_eq!(answer, json!({ "success": false, "error": error }));
    }
    client.post("/api/chat", json!({ "query": "é".repeat(1000) })).await.expect(200);
    let broken = rusqlite::Connection::open(server.store_file()).unwrap();
    broken.execute_batch("ALTER TABLE messages RENAME TO gone; ALTER TABLE threads RENAME TO gone_too").unwrap();
    let failed = client.post("/api/chat", json!({ "query": "hello" })).await;
    assert!(failed.status >= 500, "{failed:?}");
    let failed: Value = serde_json::from_str(&failed.text).unwrap();
    assert_eq!((&failed["success"], &failed["threadId"]), (&json!(false), &Value::Null));
    assert!(!failed["response"].as_str().unwrap().is_empty());
}

// S0.42
#[tokio::test]
async fn insights_count_what_a_conversation_mentions() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    let data = |lines: Value, kinds: Value| json!({ "lines": lines, "stations": ["bank"], "queryTypes": kinds });
    let messages = json!({ "messages": [
        { "role": "user", "text": "Any delays?", "created_at": "2026-05-04T18:12:00Z" },
        { "role": "assistant", "text": "None.", "agent": "CIRCLE", "data": data(json!(["CIRCLE"]), json!(["status"])) },
        { "role": "user", "text": "And a route?" },
        { "role": "assistant", "text": "Yes.", "agent": "CIRCLE", "data": data(json!(["CIRCLE", "BAKERLOO"]), json!([])),
          "created_at": "2026-05-04T18:13:00Z" },
        { "role": "assistant", "text": "Bye.", "data": ["odd"], "created_at": "2026-05-04T18:14:00Z" },
    ] });
    client.post(&format!("/v1/threads/{thread}/messages"), messages).await.expect(201);
    let insights = client.get(&format!("/conversations/{thread}/insights")).await.expect(200);
    assert_eq!((&insights["messages"], &insights["userMessages"]), (&json!(5), &json!(2)));
    assert_eq!(insights["agents"], json!({ "CIRCLE": 2 }));
    assert_eq!(insights["lines"], json!({ "BAKERLOO": 1, "CIRCLE": 2 }));
    assert_eq!((&insights["stations"], &insights["queryTypes"]), (&json!({ "bank": 2 }), &json!({ "status": 1 })));
    assert_eq!(insights["durationMs"], 120_000);
    let unknown = client.get("/conversations/0190b4e2-0000-7000-8000-000000000000/insights").await.expect(200);
    assert_eq!((&unknown["messages"], &unknown["firstMessageAt"]), (&json!(0), &Value::Null));
}

// S0.31 S0.32
#[tokio::test]
async fn a_thread_is_deleted_with_its_messages() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "hello").await;
    let path = format!("/conversations/{thread}");
    let log = Log::capture();
    let deleted = client.delete(&path).await.expect(200);
    assert!(log.contains(&format!("🗑️ Deleted TFL thread: {thread}")));
    // S0.49
    assert!(log.contains(&format!("🗑️ Deleted thread {thread} with 1 messages")));
    assert_eq!(deleted, json!({ "success": true, "message": "Thread deleted successfully", "threadId": thread }));
    assert_eq!(client.get(&path).await.expect(200)["messages"], json!([]));
    for unknown in [path.as_str(), "/conversations/thread_1"] {
        let answer = client.delete(unknown).await.expect(404);
        assert_eq!(answer, json!({ "success": false, "error": "Thread not found" }));
    }
}

// S0.30 S0.33
#[tokio::test]
async fn failures_are_reported_without_details() {
    let server = TestServer::start().await;
    let client = server.client();
    let thread = client.new_thread().await;
    client.say(&thread, "hello").await;
    let broken = rusqlite::Connection::open(server.store_file()).unwrap();
    broken.execute_batch("ALTER TABLE messages RENAME TO gone; ALTER TABLE threads RENAME TO gone_too").unwrap();
    let path = format!("/conversations/{thread}");
    let log = Log::capture();
    let answer = client.get(&path).await.expect(500);
    assert_eq!(answer, json!({ "success": false, "error": "Failed to get conversation history" }));
    let answer = client.delete(&path).await.expect(500);
    assert_eq!(answer, json!({ "success": false, "error": "Failed to delete thread" }));
    assert!(log.contains("❌ Error getting conversation history: "));
    assert!(log.contains("❌ Error deleting thread: "));
}

#[tokio::test]
async fn keys_of_the_server_are_accepted() {
    let server = TestServer::start().await;
    let reader = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Read]).await;
    let path = "/conversations/0190b4e2-0000-7000-8000-000000000000";
    reader.get(path).await.expect(200);
    assert_eq!(reader.delete(path).await.code(403), "role_missing");
    assert_eq!(server.anonymous_client().get(path).await.code(401), "invalid_key");
}

#[tokio::test]
async fn users_cannot_delete_shared_threads() {
    let server = TestServer::start().await;
    let tenant = server.client_with_new_key("acme", None, &[KeyRole::Write]).await;
    let ana = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = tenant.new_thread().await;
    let refused = ana.delete(&format!("/conversations/{thread}")).await.expect(403);
    assert_eq!(refused, json!({ "success": false, "error": "Thread is shared" }));
    tenant.get(&format!("/v1/threads/{thread}")).await.expect(200);
}
