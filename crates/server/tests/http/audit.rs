//! The audit log: requests that need an administrator are logged before and after their execution.

use serde_json::json;
use threadkeep::core::Replacement;
use threadkeep::{Content, Draft, Memory, Role, Scope, TenantId, ThreadId};
use threadkeep_server::{AuditFinding, AuditLog, AuditRecord, KeyRole};

use crate::TestServer;
use crate::server::send;

async fn records(server: &TestServer, tenant: &str) -> Vec<AuditRecord> {
    AuditLog::new(&server.memory).list(&TenantId::new(tenant).unwrap(), 100).await.unwrap()
}

/// The internal tenant, which clients cannot name.
fn internal() -> Scope {
    Scope::Tenant(TenantId::internal())
}

/// Returns the thread in which the log is stored.
async fn chain(memory: &Memory) -> ThreadId {
    memory.find_thread_by_key(&internal(), "audit:chain").await.unwrap().unwrap().id
}

/// Creates a store with a number of audit records, and returns the head after each.
async fn store_with_records(acts: usize) -> (tempfile::TempDir, Memory, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let memory = threadkeep::open(&format!("sqlite:{}", folder.path().join("store.db").display())).await.unwrap();
    let (log, tenant) = (AuditLog::new(&memory), TenantId::new("acme").unwrap());
    let mut heads = Vec::new();
    for act in 0..acts {
        log.record_command(&tenant, "keys create", &format!("key-{act}")).await.unwrap();
        heads.push(log.head().await.unwrap().unwrap());
    }
    (folder, memory, heads)
}

/// Verifies the log, and returns the record of each finding.
async fn findings(memory: &Memory, head: Option<&str>) -> Vec<Option<u64>> {
    let verification = AuditLog::new(memory).verify(head).await.unwrap();
    verification.findings.into_iter().map(|AuditFinding { record, .. }| record).collect()
}

#[tokio::test]
async fn records_are_chained_and_earlier_heads_remain_valid() {
    let (_folder, memory, heads) = store_with_records(5).await;
    let log = AuditLog::new(&memory);
    let verification = log.verify(None).await.unwrap();
    assert_eq!((verification.records, verification.unchained, verification.findings.len()), (5, 0, 0));
    assert_eq!(verification.head.as_ref(), heads.last());
    for head in &heads {
        assert_eq!(findings(&memory, Some(head)).await, []);
    }
    assert_eq!(findings(&memory, Some(&"0".repeat(64))).await, [None]);
    let records = log.list(&TenantId::new("acme").unwrap(), 10).await.unwrap();
    let previous: Vec<&str> = records.iter().map(|record| record.previous.as_deref().unwrap()).collect();
    assert_eq!(previous[1..], heads[..4]);
}

#[tokio::test]
async fn an_empty_log_is_valid_and_has_no_head() {
    let (_folder, memory, _) = store_with_records(0).await;
    let verification = AuditLog::new(&memory).verify(None).await.unwrap();
    assert_eq!((verification.records, verification.head, verification.findings.len()), (0, None, 0));
    assert_eq!(findings(&memory, Some(&"0".repeat(64))).await, [None]);
}

#[tokio::test]
async fn changed_removed_and_inserted_records_are_found() {
    for last in [false, true] {
        // Changed: the chain breaks at the next record. A change of the last record is found only with a head.
        let (_folder, memory, heads) = store_with_records(4).await;
        let thread = chain(&memory).await;
        let messages = memory.newest(&internal(), thread, 10).await.unwrap();
        let target = &messages[if last { 3 } else { 1 }];
        let forged = target.plain_text().replace("key-", "yek-");
        let replacement = Replacement { id: target.id, content: Content::text(Role::System, forged) };
        memory.batch().replace(replacement).commit(&internal(), thread).await.unwrap();
        assert_eq!(findings(&memory, None).await, if last { vec![] } else { vec![Some(3)] });
        assert!(findings(&memory, heads.last().map(String::as_str)).await.contains(&None) == last);

        // Removed: its position stays empty.
        let (_folder, memory, heads) = store_with_records(4).await;
        let thread = chain(&memory).await;
        let messages = memory.newest(&internal(), thread, 10).await.unwrap();
        let index = if last { 3 } else { 1 };
        memory.erase_messages(&internal(), thread, &[messages[index].id]).await.unwrap();
        assert!(findings(&memory, None).await.contains(&Some(index as u64 + 1)));
        assert!(findings(&memory, Some(&heads[index])).await.contains(&None));
    }
    // The whole log replaced by another valid one.
    let (_folder, memory, heads) = store_with_records(3).await;
    memory.delete_thread(&internal(), chain(&memory).await).await.unwrap();
    let tenant = TenantId::new("acme").unwrap();
    AuditLog::new(&memory).record_command(&tenant, "keys create", "other").await.unwrap();
    assert_eq!(findings(&memory, None).await, []);
    assert_eq!(findings(&memory, Some(&heads[2])).await, [None]);
    // A record appended without a chain.
    let (_folder, memory, _) = store_with_records(2).await;
    let draft = Draft::new(Content::text(Role::System, r#"{"at":"2026-01-01T00:00:00Z"}"#));
    memory.append(&internal(), chain(&memory).await, draft).await.unwrap();
    assert_eq!(findings(&memory, None).await, [Some(3)]);
}

#[tokio::test]
async fn unchained_records_are_counted_unless_newer_than_the_chain() {
    let (_folder, memory, _) = store_with_records(0).await;
    let old =
        r#"{"at":"2026-01-01T00:00:00Z","by":"command line","tenant":"acme","act":"keys create","outcome":"done"}"#;
    let month = memory.open_by_key(&internal(), "audit:2026-01").await.unwrap().thread.id;
    let write = async || memory.append(&internal(), month, Draft::new(Content::text(Role::System, old))).await.unwrap();
    write().await;
    let tenant = TenantId::new("acme").unwrap();
    let log = AuditLog::new(&memory);
    log.record_command(&tenant, "keys revoke", "key").await.unwrap();
    let verification = log.verify(None).await.unwrap();
    assert_eq!((verification.records, verification.unchained, verification.findings.len()), (1, 1, 0));
    let acts: Vec<String> = log.list(&tenant, 10).await.unwrap().into_iter().map(|record| record.act).collect();
    assert_eq!(acts, ["keys create", "keys revoke"]);
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    write().await;
    assert_eq!(findings(&memory, None).await, [None]);
}

/// Several processes append to one log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_extend_one_chain() {
    const EACH: usize = 15;
    let (folder, memory, _) = store_with_records(0).await;
    let url = format!("sqlite:{}", folder.path().join("store.db").display());
    let mut writers = tokio::task::JoinSet::new();
    for process in 0..3 {
        let log = AuditLog::new(&threadkeep::open(&url).await.unwrap());
        for writer in 0..2 {
            let log = log.clone();
            writers.spawn(async move {
                let tenant = TenantId::new("acme").unwrap();
                for act in 0..EACH {
                    log.record_command(&tenant, "keys create", &format!("{process}/{writer}/{act}")).await.unwrap();
                }
            });
        }
    }
    writers.join_all().await;
    let verification = AuditLog::new(&memory).verify(None).await.unwrap();
    assert_eq!((verification.records, verification.findings), ((3 * 2 * EACH) as u64, Vec::new()));
}

/// The retention of conversations does not apply to the audit log.
#[tokio::test]
async fn retention_does_not_apply_to_the_log() {
    let (_folder, memory, _) = store_with_records(0).await;
    let retention = Some(threadkeep::Retention { max_messages: Some(1), ttl_minutes: Some(1) });
    let options = threadkeep::MemoryOptions { retention, ..memory.options().clone() };
    let log = AuditLog::new(&memory.with_options(options).unwrap());
    for key in ["one", "two", "three"] {
        log.record_command(&TenantId::new("acme").unwrap(), "keys create", key).await.unwrap();
    }
    assert_eq!(log.verify(None).await.unwrap().records, 3);
}

#[tokio::test]
async fn records_contain_no_content_of_messages() {
    let server = TestServer::start().await;
    let admin = server.keyed("acme", None, &[KeyRole::Admin]).await;
    let writer = server.keyed("acme", Some("ana"), &[KeyRole::Write]).await;
    let thread = writer.new_thread().await;
    writer.say(&thread, "The safe opens with 1234.").await;
    assert_eq!(records(&server, "acme").await, [], "ordinary requests are not audited");
    let imported = r#"{"messages":[{"role":"user","content":"The safe opens with 5678."}]}"#;
    let import = send(admin.request("POST", "/v1/import").body(imported)).await;
    import.expect(200);
    let erased = admin.post("/v1/erase", json!({ "user": "ana" })).await;
    erased.expect(200);
    assert_eq!(writer.post("/v1/import", json!({})).await.code(403), "role_missing");
    let written = records(&server, "acme").await;
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
    assert_eq!(records(&server, "other").await, [], "tenants have separate logs");
}

#[tokio::test]
async fn the_log_is_not_accessible_over_http() {
    let server = TestServer::start().await;
    let admin = server.keyed("acme", None, &[KeyRole::Admin]).await;
    admin.post("/v1/erase", json!({ "user": "unknown" })).await.expect(200);
    let log = chain(&server.memory).await;
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
