//! What needs an administrator is written down, before and after.

use serde_json::json;
use threadkeep::{Scope, TenantId};
use threadkeep_server::{AuditLog, AuditRecord, KeyRole};

use crate::TestServer;
use crate::server::send;

async fn records(server: &TestServer, tenant: &str) -> Vec<AuditRecord> {
    AuditLog::new(&server.memory).list(&TenantId::new(tenant).unwrap(), 100).await.unwrap()
}

#[tokio::test]
async fn acts_are_written_down_without_what_anyone_said() {
    let server = TestServer::start().await;
    let admin = server.keyed("acme", None, &[KeyRole::Admin]).await;
    let writer = server.keyed("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = writer.new_thread().await;
    writer.say(&thread, "The safe opens with 1234.").await;
    assert_eq!(records(&server, "acme").await, [], "what everyone does is no act");
    let imported = r#"{"messages":[{"role":"user","content":"The safe opens with 5678."}]}"#;
    let import = send(admin.request("POST", "/v1/import").body(imported)).await;
    import.expect(200);
    let erased = admin.post("/v1/erase", json!({ "user": "ana" })).await;
    erased.expect(200);
    assert_eq!(writer.post("/v1/import", json!({})).await.code(403), "role_missing");
    let written = records(&server, "acme").await;
    let told: Vec<(&str, &str)> = written.iter().map(|record| (record.act.as_str(), record.outcome.as_str())).collect();
    assert_eq!(
        told,
        [
            ("POST /v1/import", "begun"),
            ("POST /v1/import", "200"),
            ("POST /v1/erase", "begun"),
            ("POST /v1/erase", "200"),
        ]
    );
    let key = admin.key.clone().unwrap();
    let id = key.split('_').nth(1).unwrap();
    assert!(written.iter().all(|record| record.by == format!("key {id}")), "{written:?}");
    assert_eq!(written[1].request_id.as_deref(), Some(import.header("x-request-id")));
    let text = serde_json::to_string(&written).unwrap();
    assert!(!text.contains("safe") && !text.contains(&key), "{text}");
    assert_eq!(records(&server, "other").await, [], "another tenant's log is another's");
}

#[tokio::test]
async fn no_door_reaches_the_log() {
    let server = TestServer::start().await;
    let admin = server.keyed("acme", None, &[KeyRole::Admin]).await;
    admin.post("/v1/erase", json!({ "user": "nobody" })).await.expect(200);
    let registry = Scope::tenant("threadkeep").unwrap();
    let query = threadkeep::ThreadQuery::new(threadkeep::ThreadOrder::Created, 10);
    let log = server.memory.list_threads(&registry, &query).await.unwrap().threads[0].id;
    for (method, path) in [
        ("GET", format!("/v1/threads/{log}")),
        ("GET", format!("/v1/threads/{log}/messages")),
        ("DELETE", format!("/v1/threads/{log}")),
        ("DELETE", format!("/v1/threads/{log}/messages/1")),
    ] {
        assert_eq!(send(admin.request(method, &path)).await.code(404), "not_found", "{method} {path}");
    }
    assert_eq!(records(&server, "acme").await.len(), 2);
}
