//! The compatibility endpoints for conversations.

use serde_json::{Value, json};
use threadkeep_server::KeyRole;

use crate::TestServer;

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
