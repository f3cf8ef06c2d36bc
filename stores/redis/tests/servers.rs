//! Tests that stop, restart and reconfigure their servers.
#![expect(clippy::unwrap_used, reason = "a panic in a test names the failing line")]

use std::time::{Duration, Instant};

use futures::StreamExt;
use threadkeep_core::{
    Backend, Content, MessageId, NewMessage, OpenThread, Reason, Role, Scope, StoreError, Thread, ThreadId,
    ThreadOrder, ThreadQuery, Timestamp,
};
use threadkeep_memory::{AppendOptions, Draft, Memory, SearchOptions};
use threadkeep_redis_server::{Cluster, Server};
use threadkeep_store_redis::RedisStore;

fn now() -> Timestamp {
    "2026-11-23T08:30:00Z".parse().unwrap()
}

fn ana() -> Scope {
    Scope::user("acme", "ana").unwrap()
}

fn url(server: &Server) -> String {
    format!("redis://{}", server.address())
}

async fn open(backend: &Backend, number: u128) -> Thread {
    let open = OpenThread::new(&ana(), ThreadId(uuid::Uuid::from_u128(number)));
    backend.store.open_thread(&ana(), open, now()).await.unwrap().thread
}

/// Appends text.
async fn append(backend: &Backend, thread: ThreadId, text: &str) -> Result<(), StoreError> {
    use threadkeep_core::{Batch, Fingerprint, IdempotencyKey};
    let content = Content::text(Role::User, text);
    let id = MessageId(uuid::Uuid::new_v4());
    let message = NewMessage { id, external_id: None, created_at: now(), content };
    let batch = Batch {
        append: vec![message],
        ..Batch::new(IdempotencyKey::Generated(uuid::Uuid::new_v4()), Fingerprint::of(text.as_bytes()))
    };
    backend.store.commit(&ana(), thread, batch, now()).await.map(|_| ())
}

async fn texts(memory: &Memory, thread: ThreadId) -> Vec<String> {
    let messages = memory.newest(&ana(), thread, 1_000).await.unwrap();
    messages.iter().map(|message| message.plain_text().into_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_has_every_commit() {
    let Some(server) = Server::start(&[("appendfsync", "always")]) else { return };
    let store = RedisStore::open(&url(&server)).await.unwrap();
    let memory = Memory::new(store.backend());
    let thread = memory.open(&ana()).await.unwrap().thread.id;
    for number in 0..20 {
        if number % 5 == 4 {
            server.restart();
        }
        memory.append(&ana(), thread, Draft::user(number.to_string())).await.unwrap();
    }
    assert_eq!(texts(&memory, thread).await, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(store.backend().maintenance.verify().await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_functions_are_installed_again() {
    let Some(server) = Server::start(&[]) else { return };
    let store = RedisStore::open(&url(&server)).await.unwrap();
    let thread = open(&store.backend(), 1).await.id;
    assert_eq!(server.run(&["function", "flush"]), "OK");
    append(&store.backend(), thread, "one").await.unwrap();
}

/// The users that docs/stores.md recommends.
#[tokio::test(flavor = "multi_thread")]
async fn users_need_only_the_documented_permissions() {
    let (Some(server), Some(cluster)) = (Server::start(&[]), Cluster::start(0)) else { return };
    let address = server.address();
    assert_users_suffice(&[&server], |user| format!("redis://{user}:{user}@{address}")).await;
    let addresses = cluster.addresses();
    let nodes: Vec<&Server> = cluster.nodes().iter().collect();
    assert_users_suffice(&nodes, |user| format!("redis-cluster://{user}:{user}@{addresses}")).await;
}

async fn assert_users_suffice(servers: &[&Server], url: impl Fn(&str) -> String) {
    let running = "on >running ~threadkeep:* &threadkeep:* -@all +@read +@write -@dangerous -@scripting +fcall +fcall_ro +time +ping \
                   +info +config|get +wait +publish +subscribe +spublish +ssubscribe +function|list +cluster|nodes +cluster|slots";
    let administrator = "on >administrator ~threadkeep:* &threadkeep:* -@all +@read +@write -@dangerous -@scripting +fcall +fcall_ro \
                         +time +ping +info +config|get +wait +publish +subscribe +spublish +ssubscribe +function|list +cluster|nodes \
                         +cluster|slots +function|load +bgrewriteaof";
    for server in servers {
        for (user, rules) in [("running", running), ("administrator", administrator)] {
            let arguments = [&["acl", "setuser", user][..], &rules.split_whitespace().collect::<Vec<_>>()].concat();
            assert_eq!(server.run(&arguments), "OK");
        }
        assert_eq!(server.run(&["acl", "setuser", "default", "off"]), "OK");
    }
    let error = RedisStore::open(&url("stranger")).await.unwrap_err().to_string();
    assert!(error.contains("rejected the user"), "{error}");
    // The functions are installed by the administrator.
    let error = RedisStore::open(&url("running")).await.unwrap_err().to_string();
    assert!(error.contains("lacks a permission") && error.contains("function"), "{error}");
    let administrator = RedisStore::open(&url("administrator")).await.unwrap();
    let backend = RedisStore::open(&url("running")).await.unwrap().backend();
    let mut wake_ups = backend.store.wake_ups().await.unwrap();
    let thread = open(&backend, 1).await.id;
    append(&backend, thread, "one").await.unwrap();
    assert!(tokio::time::timeout(Duration::from_secs(20), wake_ups.next()).await.unwrap().is_some());
    backend.search.catch_up(usize::MAX).await.unwrap();
    backend.store.delete_thread(&ana(), thread, now()).await.unwrap();
    let error = backend.maintenance.sweep(now()).await.unwrap_err().to_string();
    assert!(error.contains("lacks a permission") && error.contains("bgrewriteaof"), "{error}");
    administrator.backend().maintenance.sweep(now()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_may_evict_data_is_rejected() {
    let Some(server) = Server::start(&[("maxmemory-policy", "allkeys-lru")]) else { return };
    let error = RedisStore::open(&url(&server)).await.unwrap_err().to_string();
    assert!(error.contains("allkeys-lru") && error.contains("noeviction"), "{error}");
    RedisStore::open(&format!("{}?eviction=allow", url(&server))).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn durability_is_described() {
    let Some(volatile) = Server::start(&[("appendonly", "no")]) else { return };
    let store = RedisStore::open(&url(&volatile)).await.unwrap();
    assert!(store.durability().is_volatile());
    assert!(store.durability().describe().starts_with("NO PERSISTENCE"), "{}", store.durability().describe());
    let durable = Server::start(&[("appendfsync", "always")]).unwrap();
    let store = RedisStore::open(&url(&durable)).await.unwrap();
    assert!(!store.durability().is_volatile());
    assert!(store.durability().describe().contains("appendfsync always"), "{}", store.durability().describe());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_memory_is_reported_and_leaves_nothing_half_written() {
    let Some(server) = Server::start(&[]) else { return };
    let store = RedisStore::open(&url(&server)).await.unwrap();
    let backend = store.backend();
    let thread = open(&backend, 1).await.id;
    append(&backend, thread, "before").await.unwrap();
    assert_eq!(server.run(&["config", "set", "maxmemory", "1mb"]), "OK");
    let error = append(&backend, thread, &"x".repeat(100_000)).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { reason: Reason::Full, .. }), "{error:?}");
    assert_eq!(server.run(&["config", "set", "maxmemory", "0"]), "OK");
    append(&backend, thread, "after").await.unwrap();
    assert_eq!(texts(&Memory::new(backend.clone()), thread).await, ["before", "after"]);
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_marked_thread_is_listed() {
    let Some(server) = Server::start(&[]) else { return };
    let backend = RedisStore::open(&url(&server)).await.unwrap().backend();
    let thread = open(&backend, 1).await.id;
    // Simulates a writer that ended between writing the thread and bringing the lists up to date.
    let id = thread.to_string();
    for list in ["c", "c:u/ana", "r", "r:u/ana", "s", "s:u/ana"] {
        assert_eq!(server.run(&["zrem", &format!("threadkeep:{{tenant/acme}}:{list}"), &id]), "1", "{list}");
    }
    assert_eq!(server.run(&["hdel", "threadkeep:{tenant/acme}:i", &id]), "1");
    let mark = format!("{id}/m");
    assert_eq!(server.run(&["hset", "threadkeep:{tenant/acme}:q", &mark, "1:-u/ana"]), "1");
    for order in [ThreadOrder::Created, ThreadOrder::Recent] {
        let page = backend.store.list_threads(&ana(), &ThreadQuery::new(order, 10), now()).await.unwrap();
        assert_eq!(page.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [thread]);
    }
    assert_eq!(server.run(&["hlen", "threadkeep:{tenant/acme}:q"]), "0", "an old mark remains");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_correction_of_the_index_is_not_listed_as_a_change() {
    let Some(server) = Server::start(&[]) else { return };
    let store = RedisStore::open(&format!("{}?background=off", url(&server))).await.unwrap();
    let backend = store.backend();
    let memory = Memory::new(backend.clone());
    let thread = memory.open(&ana()).await.unwrap().thread.id;
    memory.append(&ana(), thread, Draft::user("the platform is closed")).await.unwrap();
    backend.search.catch_up(usize::MAX).await.unwrap();
    let id = memory.newest(&ana(), thread, 1).await.unwrap()[0].id;
    memory.erase_messages(&ana(), thread, &[id]).await.unwrap();
    let cursor = backend.store.list_changed_threads(&ana(), None, 10, now()).await.unwrap().cursor;
    // The mark of another process, whose write to the thread is in progress.
    let time = server.run(&["time"]);
    let seconds = time.lines().next().unwrap();
    let mark = format!("{thread}/m");
    assert_eq!(server.run(&["hset", "threadkeep:{tenant/acme}:q", &mark, &format!("{seconds}:-u/ana")]), "1");
    backend.search.catch_up(usize::MAX).await.unwrap();
    let changed = backend.store.list_changed_threads(&ana(), Some(&cursor), 10, now()).await.unwrap();
    assert!(changed.threads.is_empty() && !changed.reset, "{changed:?}");
    assert!(find(&backend, "platform").await.is_empty());
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn instances_wake_each_other() {
    let Some(cluster) = Cluster::shared() else { return };
    let url = format!("redis-cluster://{}?prefix=wake", cluster.addresses());
    let (one, two) = (RedisStore::open(&url).await.unwrap(), RedisStore::open(&url).await.unwrap());
    let mut wake_ups = two.backend().store.wake_ups().await.unwrap();
    let thread = open(&one.backend(), 1).await.id;
    append(&one.backend(), thread, "one").await.unwrap();
    let woken = tokio::time::timeout(Duration::from_secs(20), wake_ups.next()).await.unwrap();
    assert!(woken.is_some());
    assert_eq!(texts(&Memory::new(two.backend()), thread).await, ["one"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_messages_are_read_although_another_instance_writes() {
    let Some(server) = Server::start(&[]) else { return };
    let (one, two) = (RedisStore::open(&url(&server)).await.unwrap(), RedisStore::open(&url(&server)).await.unwrap());
    let (one, two) = (Memory::new(one.backend()), Memory::new(two.backend()));
    let thread = one.open(&ana()).await.unwrap().thread.id;
    let mut expected = Vec::new();
    for number in 0..24 {
        let writer = if number % 3 == 0 { &one } else { &two };
        writer.append(&ana(), thread, Draft::user(number.to_string())).await.unwrap();
        expected.push(number.to_string());
        if number % 5 == 4 {
            let last = writer.newest(&ana(), thread, 1).await.unwrap()[0].id;
            writer.erase_messages(&ana(), thread, &[last]).await.unwrap();
            expected.pop();
        }
        for reader in [&one, &two, &one] {
            let newest = reader.newest(&ana(), thread, 4).await.unwrap();
            let newest: Vec<String> = newest.iter().map(|message| message.plain_text().into_owned()).collect();
            assert_eq!(newest, expected[expected.len().saturating_sub(4)..]);
        }
    }
}

/// Searches for a word; returns the positions.
async fn find(backend: &Backend, word: &str) -> Vec<u64> {
    let found = Memory::new(backend.clone()).search(&ana(), word, &SearchOptions::default()).await.unwrap();
    found.hits.iter().map(|hit| hit.message.seq).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_form_is_built_again() {
    let Some(server) = Server::start(&[]) else { return };
    let url = format!("{}?background=off", url(&server));
    let backend = RedisStore::open(&url).await.unwrap().backend();
    let thread = open(&backend, 1).await.id;
    append(&backend, thread, "the platform is closed").await.unwrap();
    backend.search.catch_up(usize::MAX).await.unwrap();
    // The first form had its lists in other keys, and no version.
    let part = server.run(&["keys", "threadkeep:{index/*}:l"]);
    let part = part.strip_suffix(":l").unwrap();
    for key in [":w", ":l"] {
        assert_eq!(server.run(&["hset", &format!("{part}{key}"), "list", "12345678"]), "1");
    }
    assert_eq!(server.run(&["hdel", "threadkeep:{about}", "index"]), "1");
    let backend = RedisStore::open(&url).await.unwrap().backend();
    assert_eq!(server.run(&["keys", "threadkeep:{index/*"]), "");
    assert_eq!(find(&backend, "platform").await, [1]);
    backend.search.catch_up(usize::MAX).await.unwrap();
    assert_eq!(find(&backend, "platform").await, [1]);
    assert_eq!(server.run(&["exists", &format!("{part}:w")]), "0");
    // An index of this form is kept.
    let keys = server.run(&["hgetall", &format!("{part}:l")]);
    RedisStore::open(&url).await.unwrap();
    assert_eq!(server.run(&["hgetall", &format!("{part}:l")]), keys);
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

/// The files of all nodes.
fn files_contain(cluster: &Cluster, bytes: &[u8]) -> bool {
    cluster.nodes().iter().any(|node| {
        node.wait_until_old_files_are_removed();
        node.files().iter().any(|file| {
            let content = std::fs::read(file).unwrap_or_default();
            content.windows(bytes.len()).any(|window| window.eq_ignore_ascii_case(bytes))
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_text_is_in_no_file_of_a_cluster() {
    let Some(cluster) = Cluster::start(1) else { return };
    let url = format!("redis-cluster://{}", cluster.addresses());
    let backend = RedisStore::open(&url).await.unwrap().backend();
    let memory = Memory::new(backend.clone());
    let thread = memory.open(&ana()).await.unwrap().thread.id;
    let draft = Draft::user("The Quixotryzzlings are here");
    let appended = memory.append_all(&ana(), thread, vec![draft], &AppendOptions::default()).await.unwrap();
    assert_eq!(appended.count, 1);
    backend.search.catch_up(usize::MAX).await.unwrap();
    // While a node flushes its file, it postpones further writes for up to two seconds.
    let began = Instant::now();
    while !files_contain(&cluster, b"quixotryz") {
        assert!(began.elapsed() < Duration::from_secs(20), "the text is not stored as plain text");
    }
    let id = memory.newest(&ana(), thread, 1).await.unwrap()[0].id;
    memory.erase_messages(&ana(), thread, &[id]).await.unwrap();
    backend.maintenance.sweep(now()).await.unwrap();
    assert!(!files_contain(&cluster, b"quixotryz"), "a file still contains the text");
}
