//! What contexts carry on, kept beside the ends of threads.

use std::sync::Arc;

use threadkeep_context::ContextPolicy;
use threadkeep_core::{Content, MessageId, Role, ThreadId};
use threadkeep_memory::{
    AssembledContext, CachedContext, ContextOptions, Draft, Memory, MemoryOptions, ThreadCacheStats,
};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::probe::Probe;
use super::world::{FakeClock, World, acme, ana, everywhere};

fn keeper(world: &World) -> Memory {
    world.memory.with_options(MemoryOptions { thread_cache_bytes: 1 << 20, ..MemoryOptions::default() }).unwrap()
}

async fn say(memory: &Memory, thread: ThreadId, number: u32) -> MessageId {
    let draft = Draft::user(format!("My train number {number} leaves from Platform {number}."));
    memory.append(&ana(), thread, draft).await.unwrap().messages[0].id
}

async fn context(memory: &Memory, thread: ThreadId) -> AssembledContext {
    let policy = ContextPolicy { window: Some(4), ..ContextPolicy::default() };
    memory.context(&ana(), thread, None, &policy).await.unwrap()
}

fn summary(context: &AssembledContext) -> String {
    context.context.messages[0].plain_text()
}

fn record_reads(probe: &Probe) -> u64 {
    let calls = probe.take_calls();
    let reads = calls.iter().filter(|(call, _)| ["find_document", "read_thread_with_documents"].contains(call));
    reads.map(|(_, count)| u64::try_from(*count).unwrap()).sum()
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_read_once_while_this_instance_alone_writes() {
    let (probe, world) = Probe::world();
    let thread = world.thread().await;
    let keeper = keeper(&world);
    for number in 0..40 {
        say(&keeper, thread, number).await;
    }
    context(&keeper, thread).await;
    probe.take_calls();
    for number in 40..50 {
        let told = context(&keeper, thread).await;
        assert!(summary(&told).contains("Platform 30."), "{}", summary(&told));
        assert_eq!(context(&keeper, thread).await, context(&keeper, thread).await);
        say(&keeper, thread, number).await;
    }
    assert_eq!(record_reads(&probe), 0);
    context(&keeper, thread).await;
    assert_eq!(context(&keeper, thread).await, context(&world.another_process(), thread).await);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_another_instance_changed_is_read_anew() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let (keeper, other) = (keeper(&world), world.another_process());
        let mut ids = Vec::new();
        for number in 0..40 {
            ids.push(say(&other, thread, number).await);
        }
        let before = context(&keeper, thread).await;
        assert!(summary(&before).contains("Platform 30."), "{}", summary(&before));
        other.erase_messages(&ana(), thread, &[ids[30]]).await.unwrap();
        let after = context(&keeper, thread).await;
        assert!(!summary(&after).contains("Platform 30."), "{}", summary(&after));
        assert_eq!(context(&keeper, thread).await, context(&other, thread).await);
        // They take turns: each sees what the other carried on.
        for number in 40..44 {
            let (one, two) = if number % 2 == 0 { (&keeper, &other) } else { (&other, &keeper) };
            say(one, thread, number).await;
            // What fell out is carried on by whoever comes first.
            context(one, thread).await;
            assert_eq!(context(one, thread).await, context(two, thread).await);
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_summary_leaves_with_the_words_that_it_was_made_from() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let keeper = keeper(&world);
        let mut ids = Vec::new();
        for number in 0..40 {
            ids.push(say(&keeper, thread, number).await);
        }
        keeper.newest(&ana(), thread, 20).await.unwrap();
        let of_messages = keeper.thread_cache_stats().bytes;
        context(&keeper, thread).await;
        context(&keeper, thread).await;
        assert!(keeper.thread_cache_stats().bytes > of_messages + 500, "{:?}", keeper.thread_cache_stats());
        keeper.erase_messages(&ana(), thread, &[ids[30]]).await.unwrap();
        let ThreadCacheStats { threads, bytes, .. } = keeper.thread_cache_stats();
        assert_eq!((threads, bytes), (0, 0));
        let after = context(&keeper, thread).await;
        assert!(!summary(&after).contains("Platform 30."), "{}", summary(&after));
    })
    .await;
}

/// The first use of a policy stores what it derives, so that from the second on a context is made of the same.
async fn held(memory: &Memory, thread: ThreadId, policy: &ContextPolicy) -> Arc<CachedContext> {
    let options = ContextOptions::default();
    let mut held = memory.shared_context(&ana(), thread, None, policy, &options).await.unwrap();
    for _ in 0..2 {
        held = memory.shared_context(&ana(), thread, None, policy, &options).await.unwrap();
    }
    held
}

#[tokio::test(start_paused = true)]
async fn a_context_is_held_while_all_that_it_is_made_of_stays() {
    let world = World::plain();
    let thread = world.thread().await;
    let (keeper, other) = (keeper(&world), world.another_process());
    for number in 0..40 {
        say(&keeper, thread, number).await;
    }
    let policy = ContextPolicy { window: Some(4), ..ContextPolicy::default() };
    let before = held(&keeper, thread, &policy).await;
    assert!(Arc::ptr_eq(&before, &held(&keeper, thread, &policy).await));
    let form = before.derived(|assembled| assembled.context.messages.len());
    assert!(Arc::ptr_eq(&form, &held(&keeper, thread, &policy).await.derived(|_| 0)));
    assert_eq!(*before.derived(|assembled| assembled.positions), before.assembled().positions, "another form");
    // Neither another policy nor a question is answered with it, and what was kept as a report is kept each time.
    let narrow = ContextPolicy { window: Some(2), ..policy.clone() };
    let told = keeper.context(&ana(), thread, None, &narrow).await.unwrap();
    assert_eq!(told.context, other.context(&ana(), thread, None, &narrow).await.unwrap().context);
    let asked = keeper.context(&ana(), thread, Some("Which train?"), &policy).await.unwrap();
    assert_eq!(asked.context.newest_text(), "Which train?");
    let options = ContextOptions { turn: Some("one".to_owned()), ..ContextOptions::default() };
    assert!(keeper.context_with(&ana(), thread, None, &policy, &options).await.unwrap().is_report_kept);
    assert!(keeper.context_report(&ana(), thread, "one").await.unwrap().is_some());
    // A preference shows at once, whoever sets it, and is not held.
    let before = held(&keeper, thread, &policy).await;
    other.set_preference(&ana(), "tone", "dry").await.unwrap();
    let with = held(&keeper, thread, &policy).await;
    assert!(summary(with.assembled()).contains("tone"), "{}", summary(with.assembled()));
    assert!(!Arc::ptr_eq(&with, &held(&keeper, thread, &policy).await));
    other.delete_preference(&ana(), "tone").await.unwrap();
    let after = held(&keeper, thread, &policy).await;
    assert_eq!(after.assembled(), before.assembled());
    // New words, and words that go.
    let id = say(&other, thread, 40).await;
    let with = held(&keeper, thread, &policy).await;
    assert!(with.assembled().context.newest_text().contains("number 40"));
    keeper.erase_messages(&ana(), thread, &[id]).await.unwrap();
    assert_eq!(keeper.thread_cache_stats().bytes, 0);
    let without = held(&keeper, thread, &policy).await;
    assert!(without.assembled().context.newest_text().contains("number 39"));
}

/// Whatever happens, a context is what a manager that keeps nothing assembles.
#[tokio::test(start_paused = true)]
async fn a_held_context_is_what_anybody_would_assemble() {
    let folder = tempfile::tempdir().unwrap();
    let mut hits = 0;
    for seed in 1..=6_u64 {
        // One file in two hands is how two processes share it, and has a stamp.
        let in_file = || SqliteStore::open(folder.path().join(seed.to_string()), SqliteOptions::default()).unwrap();
        let clock = Arc::new(FakeClock::default());
        let (keeper, other) = (in_file().backend(), in_file().backend());
        let keeper = Memory::with_clock(keeper, clock.clone());
        let keeper = keeper.with_options(MemoryOptions { thread_cache_bytes: 1 << 16, ..MemoryOptions::default() }).unwrap();
        let other = Memory::with_clock(other, clock);
        let mut random = seed;
        let mut draw = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let threads = [other.open(&ana()).await.unwrap().thread.id, other.open(&ana()).await.unwrap().thread.id];
        let mut last: Option<Arc<CachedContext>> = None;
        for step in 0..200 {
            let thread = threads[draw(2) as usize];
            let actor = if draw(2) == 0 { &other } else { &keeper };
            let newest = other.newest(&ana(), thread, 8).await.unwrap();
            let some = (!newest.is_empty()).then(|| newest[draw(newest.len() as u64) as usize].id);
            match (draw(14), some) {
                (0, Some(id)) => drop(actor.erase_messages(&ana(), thread, &[id]).await.unwrap()),
                (1, Some(id)) => {
                    let anew = Content::text(Role::User, format!("My gate is now {step}."));
                    actor.replace_message(&ana(), thread, id, anew, None).await.unwrap();
                }
                (2, _) => actor.set_preference(&ana(), "tone", &step).await.unwrap(),
                (3 | 4, _) => actor.delete_preference(&ana(), "tone").await.unwrap(),
                (5..8, _) => drop(say(actor, thread, step).await),
                _ => {}
            }
            let window = Some(2 + draw(2) as usize * 2);
            let policy = ContextPolicy { window, preferences: draw(3) > 0, ..ContextPolicy::default() };
            let scope = if draw(4) == 0 { acme() } else { ana() };
            let options = ContextOptions::default();
            let shown = keeper.shared_context(&scope, thread, None, &policy, &options).await.unwrap();
            let anew = other.context(&scope, thread, None, &policy).await.unwrap();
            assert_eq!(shown.assembled().context, anew.context, "seed {seed}, step {step}");
            hits += u64::from(last.is_some_and(|last| Arc::ptr_eq(&last, &shown)));
            last = Some(shown);
        }
    }
    assert!(hits > 50, "{hits}");
}
