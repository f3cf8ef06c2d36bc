//! The audit log: requests that require the administrator role are logged before and after their execution.

use serde_json::json;
use threadkeep::core::Replacement;
use threadkeep::{Content, Draft, Memory, Role, Scope, TenantId, ThreadId};
use threadkeep_server::{AuditFinding, AuditLog, AuditRecord, KeyRole};

use crate::TestServer;
use crate::server::send;

async fn list_records(server: &TestServer, tenant: &str) -> Vec<AuditRecord> {
    AuditLog::new(&server.memory).list(&TenantId::new(tenant).unwrap(), 100).await.unwrap()
}

/// Returns the scope of the internal tenant, which clients cannot name.
fn internal_scope() -> Scope {
    Scope::Tenant(TenantId::internal())
}

/// Returns the thread in which the log is stored.
async fn find_log_thread(memory: &Memory) -> ThreadId {
    memory.find_thread_by_key(&internal_scope(), "audit:chain").await.unwrap().unwrap().id
}

/// Creates a store with this many audit records. Also returns the head of the log (the hash of the last record) after each record.
async fn create_store_with_records(count: usize) -> (tempfile::TempDir, Memory, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let memory = threadkeep::open(&format!("sqlite:{}", folder.path().join("store.db").display())).await.unwrap();
    let (log, tenant) = (AuditLog::new(&memory), TenantId::new("acme").unwrap());
    let mut heads = Vec::new();
    for act in 0..count {
        log.record_command(&tenant, "keys create", &format!("key-{act}")).await.unwrap();
        heads.push(log.head().await.unwrap().unwrap());
    }
    (folder, memory, heads)
}

/// Verifies the log, and returns the number of the record that each finding names, if any.
async fn verify(memory: &Memory, head: Option<&str>) -> Vec<Option<u64>> {
    let verification = AuditLog::new(memory).verify(head).await.unwrap();
    verification.findings.into_iter().map(|AuditFinding { record, .. }| record).collect()
}

#[tokio::test]
async fn records_are_chained_and_earlier_heads_remain_valid() {
    let (_folder, memory, heads) = create_store_with_records(5).await;
    let log = AuditLog::new(&memory);
    let verification = log.verify(None).await.unwrap();
    assert_eq!((verification.records, verification.unchained, verification.findings.len()), (5, 0, 0));
    assert_eq!(verification.head.as_ref(), heads.last());
    for head in &heads {
        assert_eq!(verify(&memory, Some(head)).await, []);
    }
    assert_eq!(verify(&memory, Some(&"0".repeat(64))).await, [None]);
    let records = log.list(&TenantId::new("acme").unwrap(), 10).await.unwrap();
    let previous: Vec<&str> = records.iter().map(|record| record.previous.as_deref().unwrap()).collect();
    assert_eq!(previous[1..], heads[..4]);
}

#[tokio::test]
async fn an_empty_log_is_valid_and_has_no_head() {
    let (_folder, memory, _) = create_store_with_records(0).await;
    let verification = AuditLog::new(&memory).verify(None).await.unwrap();
    assert_eq!((verification.records, verification.head, verification.findings.len()), (0, None, 0));
    assert_eq!(verify(&memory, Some(&"0".repeat(64))).await, [None]);
}

#[tokio::test]
async fn changed_removed_and_inserted_records_are_found() {
    for is_last in [false, true] {
        // After a change, the chain breaks at the next record. A change to the last record is found only with a known head.
        let (_folder, memory, heads) = create_store_with_records(4).await;
        let thread = find_log_thread(&memory).await;
        let messages = memory.newest(&internal_scope(), thread, 10).await.unwrap();
        let target = &messages[if is_last { 3 } else { 1 }];
        let forged = target.plain_text().replace("key-", "yek-");
        let replacement = Replacement { id: target.id, content: Content::text(Role::System, forged) };
        memory.batch().replace(replacement).commit(&internal_scope(), thread).await.unwrap();
        assert_eq!(verify(&memory, None).await, if is_last { vec![] } else { vec![Some(3)] });
        assert!(verify(&memory, heads.last().map(String::as_str)).await.contains(&None) == is_last);

        // The position of a removed record stays empty.
        let (_folder, memory, heads) = create_store_with_records(4).await;
        let thread = find_log_thread(&memory).await;
        let messages = memory.newest(&internal_scope(), thread, 10).await.unwrap();
        let index = if is_last { 3 } else { 1 };
        memory.erase_messages(&internal_scope(), thread, &[messages[index].id]).await.unwrap();
        assert!(verify(&memory, None).await.contains(&Some(index as u64 + 1)));
        assert!(verify(&memory, Some(&heads[index])).await.contains(&None));
    }
    // Replacing the whole log with another valid log is found only with a known head.
    let (_folder, memory, heads) = create_store_with_records(3).await;
    memory.delete_thread(&internal_scope(), find_log_thread(&memory).await).await.unwrap();
    let tenant = TenantId::new("acme").unwrap();
    AuditLog::new(&memory).record_command(&tenant, "keys create", "other").await.unwrap();
    assert_eq!(verify(&memory, None).await, []);
    assert_eq!(verify(&memory, Some(&heads[2])).await, [None]);
    // A record that was appended without extending the chain is found.
    let (_folder, memory, _) = create_store_with_records(2).await;
    let draft = Draft::new(Content::text(Role::System, r#"{"at":"2026-01-01T00:00:00Z"}"#));
    memory.append(&internal_scope(), find_log_thread(&memory).await, draft).await.unwrap();
    assert_eq!(verify(&memory, None).await, [Some(3)]);
}

#[tokio::test]
async fn unchained_records_are_counted_if_older_than_the_chain_and_findings_otherwise() {
    let (_folder, memory, _) = create_store_with_records(0).await;
    let old =
        r#"{"at":"2026-01-01T00:00:00Z","by":"command line","tenant":"acme","act":"keys create","outcome":"done"}"#;
    let month = memory.open_by_key(&internal_scope(), "audit:2026-01").await.unwrap().thread.id;
    let append_unchained =
        async || memory.append(&internal_scope(), month, Draft::new(Content::text(Role::System, old))).await.unwrap();
    append_unchained().await;
    let tenant = TenantId::new("acme").unwrap();
    let log = AuditLog::new(&memory);
    log.record_command(&tenant, "keys revoke", "key").await.unwrap();
    let verification = log.verify(None).await.unwrap();
    assert_eq!((verification.records, verification.unchained, verification.findings.len()), (1, 1, 0));
    let acts: Vec<String> = log.list(&tenant, 10).await.unwrap().into_iter().map(|record| record.act).collect();
    assert_eq!(acts, ["keys create", "keys revoke"]);
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    append_unchained().await;
    assert_eq!(verify(&memory, None).await, [None]);
}

/// The writers simulate several processes that append to one log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_extend_one_chain() {
    const RECORDS_PER_WRITER: usize = 15;
    let (folder, memory, _) = create_store_with_records(0).await;
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let mut writers = tokio::task::JoinSet::new();
    for process in 0..3 {
        let log = AuditLog::new(&threadkeep::open(&url).await.unwrap());
        for writer in 0..2 {
            let log = log.clone();
            writers.spawn(async move {
                let tenant = TenantId::new("acme").unwrap();
                for act in 0..RECORDS_PER_WRITER {
                    log.record_command(&tenant, "keys create", &format!("{process}/{writer}/{act}")).await.unwrap();
                }
            });
        }
    }
    writers.join_all().await;
    let verification = AuditLog::new(&memory).verify(None).await.unwrap();
    assert_eq!((verification.records, verification.findings), ((3 * 2 * RECORDS_PER_WRITER) as u64, Vec::new()));
}

#[tokio::test]
async fn retention_policies_do_not_apply_to_the_log() {
    let (_folder, memory, _) = create_store_with_records(0).await;
    let retention = Some(threadkeep::Retention { max_messages: Some(1), ttl_minutes: Some(1) });
    let options = threadkeep::MemoryOptions { retention, ..memory.options().clone() };
    let log = AuditLog::new(&memory.with_options(options).unwrap());
    for key in ["one", "two", "three"] {
        log.record_command(&TenantId::new("acme").unwrap(), "keys create", key).await.unwrap();
    }
    assert_eq!(log.verify(None).await.unwrap().records, 3);
}

#[tokio::test]
async fn records_do_not_contain_message_content() {
    let server = TestServer::start().await;
    let admin = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    let writer = server.client_with_new_key("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = writer.new_thread().await;
    writer.say(&thread, "The safe opens with 1234.").await;
    assert_eq!(list_records(&server, "acme").await, [], "ordinary requests are not audited");
    let imported = r#"{"messages":[{"role":"user","content":"The safe opens with 5678."}]}"#;
    let import = send(admin.request("POST", "/v1/import").body(imported)).await;
    import.expect(200);
    let erased = admin.post("/v1/erase", json!({ "user": "ana" })).await;
    erased.expect(200);
    let written = list_records(&server, "acme").await;
    let outcomes: Vec<(&str, &str)> =
        written.iter().map(|record| (record.act.as_str(), record.outcome.as_str())).collect();
    assert_eq!(
        outcomes,
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
    assert_eq!(list_records(&server, "other").await, [], "tenants have separate logs");
}

#[tokio::test]
async fn the_log_is_not_accessible_over_http() {
    let server = TestServer::start().await;
    let admin = server.client_with_new_key("acme", None, &[KeyRole::Admin]).await;
    admin.post("/v1/erase", json!({ "user": "unknown" })).await.expect(200);
    let log = find_log_thread(&server.memory).await;
    for (method, path) in [
        ("GET", format!("/v1/threads/{log}")),
        ("GET", format!("/v1/threads/{log}/messages")),
        ("DELETE", format!("/v1/threads/{log}")),
        ("DELETE", format!("/v1/threads/{log}/messages/1")),
    ] {
        assert_eq!(send(admin.request(method, &path)).await.code(404), "not_found", "{method} {path}");
    }
    assert_eq!(list_records(&server, "acme").await.len(), 2);
}
