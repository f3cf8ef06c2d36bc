//! Caching of context state (the summary of a thread) and of whole contexts in the thread cache.

use std::sync::Arc;

use threadkeep_context::ContextPolicy;
use threadkeep_core::{Content, MessageId, Role, ThreadId};
use threadkeep_memory::{
    AssembledContext, CachedContext, ContextOptions, Draft, Memory, MemoryOptions, ThreadCacheStats,
};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::probe::Probe;
use super::test_env::{FakeClock, TestEnv, acme, ana, on_all_stores};

/// Returns an instance with a thread cache.
fn with_cache(env: &TestEnv) -> Memory {
    env.memory.with_options(MemoryOptions { thread_cache_bytes: 1 << 20, ..MemoryOptions::default() }).unwrap()
}

async fn append_fact(memory: &Memory, thread: ThreadId, number: u32) -> MessageId {
    let draft = Draft::user(format!("My train number {number} leaves from Platform {number}."));
    memory.append(&ana(), thread, draft).await.unwrap().messages[0].id
}

async fn assemble(memory: &Memory, thread: ThreadId) -> AssembledContext {
    let policy = ContextPolicy { window: Some(4), ..ContextPolicy::default() };
    memory.context(&ana(), thread, None, &policy).await.unwrap()
}

fn summary_text(context: &AssembledContext) -> String {
    context.context.messages[0].plain_text()
}

/// Returns how many calls have read records since calls were last taken.
fn count_record_reads(probe: &Probe) -> u64 {
    let calls = probe.take_calls();
    let reads = calls.iter().filter(|(call, _)| ["find_record", "read_thread_with_records"].contains(call));
    reads.map(|(_, count)| u64::try_from(*count).unwrap()).sum()
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_read_once_if_no_other_instance_writes() {
    let (probe, env) = Probe::new_env();
    let thread = env.open_thread().await;
    let caching = with_cache(&env);
    for number in 0..40 {
        append_fact(&caching, thread, number).await;
    }
    assemble(&caching, thread).await;
    probe.take_calls();
    for number in 40..50 {
        let assembled = assemble(&caching, thread).await;
        assert!(summary_text(&assembled).contains("Platform 30."), "{}", summary_text(&assembled));
        assert_eq!(assemble(&caching, thread).await, assemble(&caching, thread).await);
        append_fact(&caching, thread, number).await;
    }
    assert_eq!(count_record_reads(&probe), 0);
    assemble(&caching, thread).await;
    assert_eq!(assemble(&caching, thread).await, assemble(&env.another_process(), thread).await);
}

#[tokio::test(start_paused = true)]
async fn a_summary_changed_by_another_instance_is_read_again() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let (caching, other) = (with_cache(&env), env.another_process());
        let mut ids = Vec::new();
        for number in 0..40 {
            ids.push(append_fact(&other, thread, number).await);
        }
        let before = assemble(&caching, thread).await;
        assert!(summary_text(&before).contains("Platform 30."), "{}", summary_text(&before));
        other.erase_messages(&ana(), thread, &[ids[30]]).await.unwrap();
        let after = assemble(&caching, thread).await;
        assert!(!summary_text(&after).contains("Platform 30."), "{}", summary_text(&after));
        assert_eq!(assemble(&caching, thread).await, assemble(&other, thread).await);
        // The instances take turns appending. Each reads the state that the other stored.
        for number in 40..44 {
            let (appending, other_instance) = if number % 2 == 0 { (&caching, &other) } else { (&other, &caching) };
            append_fact(appending, thread, number).await;
            // The first context after a message has left the window stores the new state.
            assemble(appending, thread).await;
            assert_eq!(assemble(appending, thread).await, assemble(other_instance, thread).await);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn erasing_a_message_evicts_the_cached_summary() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let caching = with_cache(&env);
        let mut ids = Vec::new();
        for number in 0..40 {
            ids.push(append_fact(&caching, thread, number).await);
        }
        caching.newest(&ana(), thread, 20).await.unwrap();
        let message_bytes = caching.thread_cache_stats().bytes;
        assemble(&caching, thread).await;
        assemble(&caching, thread).await;
        assert!(caching.thread_cache_stats().bytes > message_bytes + 500, "{:?}", caching.thread_cache_stats());
        caching.erase_messages(&ana(), thread, &[ids[30]]).await.unwrap();
        let ThreadCacheStats { threads, bytes, .. } = caching.thread_cache_stats();
        assert_eq!((threads, bytes), (0, 0));
        let after = assemble(&caching, thread).await;
        assert!(!summary_text(&after).contains("Platform 30."), "{}", summary_text(&after));
    })
    .await;
}

/// Assembles a context until it is cached: the first use of a policy stores derived data, which later uses read.
async fn cached_context(memory: &Memory, thread: ThreadId, policy: &ContextPolicy) -> Arc<CachedContext> {
    let options = ContextOptions::default();
    let mut context = memory.shared_context(&ana(), thread, None, policy, &options).await.unwrap();
    for _ in 0..2 {
        context = memory.shared_context(&ana(), thread, None, policy, &options).await.unwrap();
    }
    context
}

#[tokio::test(start_paused = true)]
async fn a_context_is_cached_until_its_inputs_change() {
    let env = TestEnv::plain();
    let thread = env.open_thread().await;
    let (caching, other) = (with_cache(&env), env.another_process());
    for number in 0..40 {
        append_fact(&caching, thread, number).await;
    }
    let policy = ContextPolicy { window: Some(4), ..ContextPolicy::default() };
    let before = cached_context(&caching, thread, &policy).await;
    assert!(Arc::ptr_eq(&before, &cached_context(&caching, thread, &policy).await));
    let derived = before.derived(|assembled| assembled.context.messages.len());
    assert!(Arc::ptr_eq(&derived, &cached_context(&caching, thread, &policy).await.derived(|_| 0)));
    assert_eq!(
        *before.derived(|assembled| assembled.positions),
        before.assembled().positions,
        "a value of another type is derived separately"
    );
    // The cached context is not used for another policy or with a question, and the report for a turn is stored despite the cache.
    let narrow_policy = ContextPolicy { window: Some(2), ..policy.clone() };
    let assembled = caching.context(&ana(), thread, None, &narrow_policy).await.unwrap();
    assert_eq!(assembled.context, other.context(&ana(), thread, None, &narrow_policy).await.unwrap().context);
    let with_question = caching.context(&ana(), thread, Some("Which train?"), &policy).await.unwrap();
    assert_eq!(with_question.context.newest_text(), "Which train?");
    let options = ContextOptions { turn: Some("one".to_owned()), ..ContextOptions::default() };
    assert!(caching.context_with(&ana(), thread, None, &policy, &options).await.unwrap().is_report_stored);
    assert!(caching.context_report(&ana(), thread, "one").await.unwrap().is_some());
    // Preferences take effect immediately, whichever instance sets them. Contexts that contain preferences are not cached.
    let before = cached_context(&caching, thread, &policy).await;
    other.set_preference(&ana(), "tone", "dry").await.unwrap();
    let with_preference = cached_context(&caching, thread, &policy).await;
    assert!(
        summary_text(with_preference.assembled()).contains("tone"),
        "{}",
        summary_text(with_preference.assembled())
    );
    assert!(!Arc::ptr_eq(&with_preference, &cached_context(&caching, thread, &policy).await));
    other.delete_preference(&ana(), "tone").await.unwrap();
    let after = cached_context(&caching, thread, &policy).await;
    assert_eq!(after.assembled(), before.assembled());
    // New and erased messages take effect immediately, too.
    let id = append_fact(&other, thread, 40).await;
    let with_message = cached_context(&caching, thread, &policy).await;
    assert!(with_message.assembled().context.newest_text().contains("number 40"));
    caching.erase_messages(&ana(), thread, &[id]).await.unwrap();
    assert_eq!(caching.thread_cache_stats().bytes, 0);
    let after_erasure = cached_context(&caching, thread, &policy).await;
    assert!(after_erasure.assembled().context.newest_text().contains("number 39"));
}

/// After random operations, an instance with a cache assembles the same context as one without.
#[tokio::test(start_paused = true)]
async fn a_cached_context_equals_an_uncached_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut hits = 0;
    for seed in 1..=6_u64 {
        // Two handles of one file behave like two processes that share the file. The store has a stamp, a number that changes
        // with every write.
        let open_store = || SqliteStore::open(folder.path().join(seed.to_string()), SqliteOptions::default()).unwrap();
        let clock = Arc::new(FakeClock::default());
        let (caching, other) = (open_store().backend(), open_store().backend());
        let caching = Memory::with_clock(caching, clock.clone());
        let caching =
            caching.with_options(MemoryOptions { thread_cache_bytes: 1 << 16, ..MemoryOptions::default() }).unwrap();
        let other = Memory::with_clock(other, clock);
        let mut random = seed;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let threads = [other.open(&ana()).await.unwrap().thread.id, other.open(&ana()).await.unwrap().thread.id];
        let mut last_shared: Option<Arc<CachedContext>> = None;
        for step in 0..200 {
            let thread = threads[draw(2) as usize];
            let actor = if draw(2) == 0 { &other } else { &caching };
            let newest = other.newest(&ana(), thread, 8).await.unwrap();
            let any_id = (!newest.is_empty()).then(|| newest[draw(newest.len() as u64) as usize].id);
            match (draw(14), any_id) {
                (0, Some(id)) => drop(actor.erase_messages(&ana(), thread, &[id]).await.unwrap()),
                (1, Some(id)) => {
                    let content = Content::text(Role::User, format!("My gate is now {step}."));
                    actor.replace_message(&ana(), thread, id, content, None).await.unwrap();
                }
                (2, _) => actor.set_preference(&ana(), "tone", &step).await.unwrap(),
                (3 | 4, _) => actor.delete_preference(&ana(), "tone").await.unwrap(),
                (5..8, _) => drop(append_fact(actor, thread, step).await),
                _ => {}
            }
            let window = Some(2 + draw(2) as usize * 2);
            let policy = ContextPolicy { window, preferences: draw(3) > 0, ..ContextPolicy::default() };
            let scope = if draw(4) == 0 { acme() } else { ana() };
            let options = ContextOptions::default();
            let shared = caching.shared_context(&scope, thread, None, &policy, &options).await.unwrap();
            let uncached = other.context(&scope, thread, None, &policy).await.unwrap();
            assert_eq!(shared.assembled().context, uncached.context, "seed {seed}, step {step}");
            hits += u64::from(last_shared.is_some_and(|last| Arc::ptr_eq(&last, &shared)));
            last_shared = Some(shared);
        }
    }
    assert!(hits > 50, "only {hits} contexts came from the cache");
}
