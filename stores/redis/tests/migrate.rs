//! Migration of threads between Redis, a Redis Cluster and the other stores, in both directions.
#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

use threadkeep_core::{Backend, JsonText, Namespace, PutRecord, Scope};
use threadkeep_memory::migrate::{BackupLines, BackupReader, Migration, Progress};
use threadkeep_memory::{AppendOptions, Draft, Memory, MemoryError, Platform, Retention};
use threadkeep_redis_server::{Cluster, Server};
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_redis::RedisStore;
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

async fn fill(memory: &Memory) {
    let ana = Scope::user("acme", "ana").unwrap();
    for scope in [&ana, &Scope::tenant("acme").unwrap(), &Scope::tenant("globex").unwrap()] {
        let thread = memory.open_by_key(scope, "web:1").await.unwrap().thread.id;
        for number in 0..40 {
            let draft = Draft::user(format!("Line {number} ¿ñ? 東京")).with_external_id(format!("x{number}"));
            let options = AppendOptions { idempotency_key: Some(format!("k{number}")), ..AppendOptions::default() };
            memory.append_all(scope, thread, vec![draft], &options).await.unwrap();
        }
        let messages = memory.newest(scope, thread, 40).await.unwrap();
        memory.erase_messages(scope, thread, &[messages[7].id]).await.unwrap();
        memory.retain(scope, thread, &Retention { max_messages: Some(36), ttl_minutes: None }).await.unwrap();
        let name = threadkeep_core::RecordName { namespace: Namespace::system("run").unwrap(), key: "k".to_owned() };
        let value: JsonText = serde_json::from_str(r#"{"odd" :  [1.50]}"#).unwrap();
        memory.batch().put(PutRecord { name, value, expires_at: None }).commit(scope, thread).await.unwrap();
    }
    memory.set_preference(&ana, "line", "Victoria").await.unwrap();
}

/// Migrates a store and checks that the result is complete and that a second migration changes nothing.
async fn migrate(from: &Backend, to: &Backend) {
    let migration = Migration::begin(from, to.clone(), &Platform::default()).await.unwrap();
    let total = Progress { threads: 3, messages: 3 * 36, records: 1 };
    assert_eq!(migration.copy(|_| {}).await.unwrap().copied, total);
    let verified = migration.verify(|_| {}).await.unwrap();
    assert!(verified.differences.is_empty(), "{:?}", verified.differences);
    assert_eq!(verified.source, verified.target);
    assert_eq!(verified.source.messages, total.messages);
    assert_eq!(migration.copy(|_| {}).await.unwrap().already_there, total);
    assert_eq!(to.maintenance.verify().await.unwrap().findings, []);
    let ana = Scope::user("acme", "ana").unwrap();
    let (memory, options) =
        (Memory::new(to.clone()), AppendOptions { idempotency_key: Some("k39".to_owned()), ..Default::default() });
    let thread = memory.find_thread_by_key(&ana, "web:1").await.unwrap().unwrap().id;
    let draft = Draft::user("Line 39 ¿ñ? 東京").with_external_id("x39");
    assert!(memory.append_all(&ana, thread, vec![draft], &options).await.unwrap().replayed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_migrate_to_redis_and_back() {
    let (Some(server), Some(cluster)) = (Server::start(&[]), Cluster::shared()) else { return };
    let folder = tempfile::tempdir().unwrap();
    let sqlite = SqliteStore::open(folder.path().join("a.db"), SqliteOptions::default()).unwrap().backend();
    let back = SqliteStore::open(folder.path().join("b.db"), SqliteOptions::default()).unwrap().backend();
    let node = RedisStore::open(&format!("redis://{}", server.address())).await.unwrap().backend();
    let url = format!("redis-cluster://{}", cluster.addresses());
    let cluster = RedisStore::open(&url).await.unwrap().backend();
    fill(&Memory::new(sqlite.clone())).await;
    migrate(&sqlite, &node).await;
    migrate(&node, &cluster).await;
    migrate(&cluster, &MemoryStore::open()).await;
    migrate(&cluster, &back).await;
    let source = Migration::begin(&sqlite, back.clone(), &Platform::default()).await.unwrap();
    assert!(source.verify(|_| {}).await.unwrap().differences.is_empty());

    let mut reader = BackupReader::into(MemoryStore::open(), &Platform::default());
    let mut lines = Vec::new();
    let backup = BackupLines::begin(&cluster, &Platform::default()).await.unwrap();
    let written = backup.write(|line, _| {
        lines.push(line.to_owned());
        Ok::<(), MemoryError>(())
    });
    assert_eq!(written.await.unwrap().written.threads, 3);
    for line in &lines {
        reader.line(line).await.unwrap();
    }
    assert_eq!(reader.finish().unwrap().threads, 3);
}
