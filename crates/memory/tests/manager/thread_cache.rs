use std::sync::Arc;

use threadkeep_core::{
    Content, Message, MessageId, MessageQuery, OpenThread, Role, Scope, StoreError, ThreadId, ThreadPatch,
};
use threadkeep_memory::{CachedMessages, Draft, Memory, MemoryError, MemoryOptions, Retention, ThreadCacheStats};
use threadkeep_store_conformance::FaultyStore;
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::probe::Probe;
use super::test_env::{FakeClock, TestEnv, acme, ana, ben, on_all_stores};

fn cache_options(bytes: usize) -> MemoryOptions {
    MemoryOptions { thread_cache_bytes: bytes, ..MemoryOptions::default() }
}

/// Returns two instances on the same store: one with a thread cache, and one without.
fn instances_with_and_without_cache(env: &TestEnv) -> (Memory, Memory) {
    (env.memory.with_options(cache_options(1 << 20)).unwrap(), env.another_process())
}

async fn append_text(memory: &Memory, thread: ThreadId, text: &str) -> MessageId {
    memory.append(&ana(), thread, Draft::user(text)).await.unwrap().messages[0].id
}

async fn read_texts(memory: &Memory, thread: ThreadId, limit: usize) -> Vec<String> {
    memory.newest(&ana(), thread, limit).await.unwrap().iter().map(Message::plain_text).map(Into::into).collect()
}

/// Returns the numbers of cache hits and misses.
fn hits_and_misses(memory: &Memory) -> (u64, u64) {
    let ThreadCacheStats { hits, misses, .. } = memory.thread_cache_stats();
    (hits, misses)
}

#[tokio::test(start_paused = true)]
async fn changes_by_another_instance_are_visible_immediately() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let (caching, other) = instances_with_and_without_cache(&env);
        let ids = [
            append_text(&other, thread, "one").await,
            append_text(&other, thread, "two").await,
            append_text(&other, thread, "three").await,
        ];
        assert_eq!(read_texts(&caching, thread, 2).await, ["two", "three"]);
        assert_eq!(read_texts(&caching, thread, 2).await, ["two", "three"]);
        assert_eq!(hits_and_misses(&caching), (1, 1));
        append_text(&other, thread, "four").await;
        assert_eq!(read_texts(&caching, thread, 2).await, ["three", "four"]);
        other.replace_message(&ana(), thread, ids[2], Content::text(Role::User, "THREE"), None).await.unwrap();
        assert_eq!(read_texts(&caching, thread, 3).await, ["two", "THREE", "four"]);
        other.erase_messages(&ana(), thread, &[ids[1]]).await.unwrap();
        assert_eq!(read_texts(&caching, thread, 3).await, ["one", "THREE", "four"]);
        other.retain(&ana(), thread, &Retention { max_messages: Some(1), ttl_minutes: None }).await.unwrap();
        assert_eq!(read_texts(&caching, thread, 3).await, ["four"]);
        other.delete_thread(&ana(), thread).await.unwrap();
        let error = caching.newest(&ana(), thread, 3).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
        assert_eq!(caching.thread_cache_stats().threads, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn own_appends_do_not_cause_misses() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let (caching, other) = instances_with_and_without_cache(&env);
        append_text(&caching, thread, "Title.").await;
        read_texts(&caching, thread, 4).await;
        for turn in 0..10 {
            let drafts = vec![Draft::user(format!("q{turn}")), Draft::assistant(format!("a{turn}"))];
            caching.append_all(&ana(), thread, drafts, &Default::default()).await.unwrap();
            let patch = ThreadPatch { metadata: Some(Default::default()), ..ThreadPatch::default() };
            caching.patch_thread(&ana(), thread, patch, None).await.unwrap();
            assert_eq!(read_texts(&caching, thread, 4).await, read_texts(&other, thread, 4).await);
        }
        assert_eq!(hits_and_misses(&caching), (10, 1));
        // Two instances that append alternately see each other's messages.
        for turn in 0..4 {
            append_text(&caching, thread, &format!("k{turn}")).await;
            append_text(&other, thread, &format!("o{turn}")).await;
            assert_eq!(read_texts(&caching, thread, 4).await, read_texts(&other, thread, 4).await);
        }
        assert_eq!(hits_and_misses(&caching), (10, 5));
    })
    .await;
}

/// A read that is answered from the cache takes one store call, like any other read.
#[tokio::test(start_paused = true)]
async fn a_cached_read_takes_one_store_call() {
    let (probe, env) = Probe::new_env();
    let thread = env.open_thread().await;
    let (caching, _) = instances_with_and_without_cache(&env);
    append_text(&caching, thread, "one").await;
    read_texts(&caching, thread, 4).await;
    probe.take_calls();
    read_texts(&caching, thread, 4).await;
    caching.context(&ana(), thread, None, &Default::default()).await.unwrap();
    // The call for the context also reads the context state and the user's preferences.
    assert_eq!(probe.take_calls(), [("list_messages", 1), ("read_thread_with_records", 1)]);
}

#[tokio::test(start_paused = true)]
async fn erasures_evict_cached_threads_immediately() {
    on_all_stores(async |env: TestEnv| {
        let (edited, deleted) = (env.open_thread().await, env.open_thread().await);
        let (caching, _) = instances_with_and_without_cache(&env);
        for thread in [edited, deleted] {
            append_text(&caching, thread, "Erase me.").await;
        }
        let id = append_text(&caching, edited, "And me.").await;
        read_texts(&caching, edited, 9).await;
        read_texts(&caching, deleted, 9).await;
        assert_eq!(caching.thread_cache_stats().threads, 2);
        caching.erase_messages(&ana(), edited, &[id]).await.unwrap();
        assert_eq!(caching.thread_cache_stats().threads, 1);
        caching.delete_thread(&ana(), deleted).await.unwrap();
        let ThreadCacheStats { threads, bytes, .. } = caching.thread_cache_stats();
        assert_eq!((threads, bytes), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn cached_messages_are_not_visible_to_other_scopes() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let (caching, _) = instances_with_and_without_cache(&env);
        append_text(&caching, thread, "Ana's.").await;
        assert_eq!(read_texts(&caching, thread, 9).await, ["Ana's."]);
        let globex = Scope::tenant("globex").unwrap();
        for other_scope in [ben(), globex] {
            let error = caching.newest(&other_scope, thread, 9).await.unwrap_err();
            assert!(matches!(error, MemoryError::Store(StoreError::NotFound(_))), "{error}");
        }
        assert_eq!(caching.newest(&acme(), thread, 9).await.unwrap().len(), 1);
    })
    .await;
}

/// A thread that was opened again with the same id after it expired contains none of the old messages.
#[tokio::test(start_paused = true)]
async fn a_reopened_thread_has_no_cached_messages() {
    on_all_stores(async |env: TestEnv| {
        let (caching, other) = instances_with_and_without_cache(&env);
        let id = caching.generate_thread_id();
        let open = || OpenThread { expires_at: Some(other.now().plus_ms(1_000)), ..OpenThread::new(&ana(), id) };
        for text in ["the past", "the present"] {
            other.open_thread(&ana(), open()).await.unwrap();
            let draft = || Draft::user(text).with_id(MessageId::from_name(b"always"));
            other.append(&ana(), id, draft()).await.unwrap();
            assert_eq!(read_texts(&caching, id, 9).await, [text]);
            assert_eq!(read_texts(&caching, id, 9).await, [text]);
            env.clock.advance_ms(1_000);
            assert!(caching.newest(&ana(), id, 9).await.unwrap_err().is_not_found());
        }
    })
    .await;
}

/// The cache does not return messages that are older than the retention policy allows.
// S4.36
#[tokio::test(start_paused = true)]
async fn expired_messages_are_not_read_from_the_cache() {
    let env = TestEnv::sqlite();
    let thread = env.open_thread().await;
    let retention = Some(Retention { max_messages: None, ttl_minutes: Some(60) });
    let caching = env.memory.with_options(MemoryOptions { retention, ..cache_options(1 << 20) });
    let caching = caching.unwrap();
    append_text(&caching, thread, "an hour ago").await;
    env.clock.advance_minutes(40);
    append_text(&caching, thread, "since").await;
    assert_eq!(read_texts(&caching, thread, 9).await, ["an hour ago", "since"]);
    assert_eq!(caching.cached_messages(&ana(), thread, 9).map(|cached| cached.messages().len()), Some(2));
    env.clock.advance_minutes(9);
    read_texts(&caching, thread, 9).await;
    env.clock.advance_minutes(9);
    read_texts(&caching, thread, 9).await;
    env.clock.advance_minutes(3);
    assert_eq!(read_texts(&caching, thread, 9).await, ["since"]);
    assert!(caching.cached_messages(&ana(), thread, 9).is_none());
}

#[tokio::test(start_paused = true)]
async fn the_cache_is_limited_in_size_and_age_and_can_be_disabled() {
    let env = TestEnv::plain();
    let mut threads = Vec::new();
    for _ in 0..40 {
        let thread = env.open_thread().await;
        for _ in 0..4 {
            append_text(&env.memory, thread, &"x".repeat(1_000)).await;
        }
        threads.push(thread);
    }
    let caching = env.memory.with_options(cache_options(64 * 1024)).unwrap();
    for thread in &threads {
        read_texts(&caching, *thread, 4).await;
        assert!(caching.thread_cache_stats().bytes <= 64 * 1024);
    }
    let cached = caching.thread_cache_stats().threads;
    assert!((5..16).contains(&cached), "{cached}");
    // The most recently read threads are cached.
    for thread in &threads[40 - cached..] {
        read_texts(&caching, *thread, 4).await;
    }
    assert_eq!(hits_and_misses(&caching), (cached as u64, 40));
    // A thread that would take most of the cache is not cached.
    let large = env.open_thread().await;
    append_text(&env.memory, large, &"x".repeat(60_000)).await;
    read_texts(&caching, large, 4).await;
    assert_eq!(caching.thread_cache_stats().threads, cached);
    env.clock.advance_minutes(10);
    read_texts(&caching, threads[0], 4).await;
    assert_eq!(caching.thread_cache_stats().threads, 1);
    read_texts(&env.memory, threads[0], 4).await;
    assert_eq!(env.memory.thread_cache_stats(), ThreadCacheStats::default());
}

/// Without writes, a second read does not call the store. A write is visible to the next read.
// S3.45
#[tokio::test(start_paused = true)]
async fn a_second_read_needs_no_store_call() {
    let sqlite = TestEnv::sqlite();
    let (probe, env) = Probe::new_env_on(sqlite.backend.clone());
    let thread = env.open_thread().await;
    let (caching, _) = instances_with_and_without_cache(&env);
    let id = append_text(&caching, thread, "one").await;
    assert_eq!(read_texts(&caching, thread, 16).await, ["one"]);
    probe.take_calls();
    assert_eq!(read_texts(&caching, thread, 16).await, ["one"]);
    assert_eq!(read_texts(&caching, thread, 1).await, ["one"]);
    assert_eq!(probe.take_calls(), []);
    append_text(&caching, thread, "two").await;
    assert_eq!(read_texts(&caching, thread, 16).await, ["one", "two"]);
    caching.erase_messages(&ana(), thread, &[id]).await.unwrap();
    assert_eq!(read_texts(&caching, thread, 16).await, ["two"]);
    probe.take_calls();
    assert_eq!(read_texts(&caching, thread, 16).await, ["two"]);
    assert_eq!(probe.take_calls(), []);
    // The store checks the access of each scope once.
    assert!(caching.newest(&ben(), thread, 16).await.unwrap_err().is_not_found());
    assert!(!probe.take_calls().is_empty());
    assert_eq!(read_texts(&caching, thread, 16).await, ["two"]);
    // The thread's current expiry time applies, even if it was changed after the thread was cached.
    let patch = ThreadPatch { expires_at: Some(Some(caching.now().plus_ms(50))), ..ThreadPatch::default() };
    caching.patch_thread(&ana(), thread, patch, None).await.unwrap();
    assert_eq!(read_texts(&caching, thread, 16).await, ["two"]);
    probe.take_calls();
    env.clock.advance_ms(49);
    assert_eq!(read_texts(&caching, thread, 16).await, ["two"]);
    assert_eq!(probe.take_calls(), []);
    env.clock.advance_ms(1);
    assert!(caching.newest(&ana(), thread, 16).await.unwrap_err().is_not_found());
}

/// After random operations by two instances, the instance with a cache always reads the stored messages.
#[tokio::test(start_paused = true)]
async fn cached_messages_equal_stored_messages() {
    let (mut hits, mut misses, mut cached_pages) = (0, 0, 0);
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..=18_u64 {
        // Two handles of one file behave like two processes that share the file. The store has a stamp, a number that changes
        // with every write.
        let open_store = || SqliteStore::open(folder.path().join(seed.to_string()), SqliteOptions::default()).unwrap();
        let (backend, other_backend) = if seed > 12 {
            (open_store().backend(), open_store().backend())
        } else {
            let backend = MemoryStore::open();
            (backend.clone(), backend)
        };
        let clock = Arc::new(FakeClock::default());
        let caching = Memory::with_clock(FaultyStore::wrap(backend, seed), clock.clone());
        let caching = caching.with_options(cache_options(1 << 14)).unwrap();
        let other = Memory::with_clock(other_backend, clock);
        let mut random = seed;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mut threads = Vec::new();
        for _ in 0..3 {
            threads.push(other.open(&ana()).await.unwrap().thread.id);
        }
        for step in 0..250 {
            let thread = threads[draw(3) as usize];
            let actor = if draw(3) == 0 { &other } else { &caching };
            let newest = other.newest(&ana(), thread, 50).await.unwrap();
            let any_id = (!newest.is_empty()).then(|| newest[draw(newest.len() as u64) as usize].id);
            match (draw(12), any_id) {
                (0, Some(id)) => drop(actor.erase_messages(&ana(), thread, &[id]).await.unwrap()),
                (1, Some(id)) => {
                    let edited = Content::text(Role::User, format!("edited {step}"));
                    actor.replace_message(&ana(), thread, id, edited, None).await.unwrap();
                }
                (2, _) => {
                    let retention = Retention { max_messages: Some(8), ttl_minutes: None };
                    actor.retain(&ana(), thread, &retention).await.unwrap();
                }
                (3..7, _) => drop(append_text(actor, thread, &format!("step {step}")).await),
                _ => {}
            }
            let query = MessageQuery::newest(1 + draw(9) as usize);
            let stored = other.messages(&ana(), thread, &query).await.unwrap();
            if let Some(cached) = caching.cached_messages(&ana(), thread, query.limit) {
                assert_eq!(cached.to_page(), stored, "seed {seed}, step {step}");
                let last = |cached: &CachedMessages| (cached.messages().len(), cached.messages().last().cloned());
                assert_eq!(*cached.derived(last), last(&cached));
                cached_pages += 1;
            }
            let page = caching.messages(&ana(), thread, &query).await.unwrap();
            assert_eq!(page, stored, "seed {seed}, step {step}");
            assert!(caching.cached_messages(&ben(), thread, query.limit).is_none(), "Ben has no access to the thread");
        }
        let stats = hits_and_misses(&caching);
        (hits, misses) = (hits + stats.0, misses + stats.1);
    }
    assert!(hits > 500 && misses > 500 && cached_pages > 100, "{hits} {misses} {cached_pages}");
}
