use std::sync::Arc;

use threadkeep_core::{
    Content, Message, MessageId, MessageQuery, OpenThread, Role, Scope, StoreError, ThreadId, ThreadPatch,
};
use threadkeep_memory::{CachedMessages, Draft, Memory, MemoryError, MemoryOptions, Retention, ThreadCacheStats};
use threadkeep_store_conformance::FaultyStore;
use threadkeep_store_memory::MemoryStore;
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::probe::Probe;
use super::world::{FakeClock, World, acme, ana, ben, everywhere};

fn keeping(bytes: usize) -> MemoryOptions {
    MemoryOptions { thread_cache_bytes: bytes, ..MemoryOptions::default() }
}

/// An instance that keeps tails, and another one over the same store that does not.
fn two(world: &World) -> (Memory, Memory) {
    (world.memory.with_options(keeping(1 << 20)).unwrap(), world.another_process())
}

async fn say(memory: &Memory, thread: ThreadId, text: &str) -> MessageId {
    memory.append(&ana(), thread, Draft::user(text)).await.unwrap().messages[0].id
}

async fn texts(memory: &Memory, thread: ThreadId, limit: usize) -> Vec<String> {
    memory.newest(&ana(), thread, limit).await.unwrap().iter().map(Message::plain_text).map(Into::into).collect()
}

fn counted(memory: &Memory) -> (u64, u64) {
    let ThreadCacheStats { hits, misses, .. } = memory.thread_cache_stats();
    (hits, misses)
}

#[tokio::test(start_paused = true)]
async fn what_another_instance_did_is_seen_at_once() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let (keeper, other) = two(&world);
        let ids =
            [say(&other, thread, "one").await, say(&other, thread, "two").await, say(&other, thread, "three").await];
        assert_eq!(texts(&keeper, thread, 2).await, ["two", "three"]);
        assert_eq!(texts(&keeper, thread, 2).await, ["two", "three"]);
        assert_eq!(counted(&keeper), (1, 1));
        say(&other, thread, "four").await;
        assert_eq!(texts(&keeper, thread, 2).await, ["three", "four"]);
        other.replace_message(&ana(), thread, ids[2], Content::text(Role::User, "THREE"), None).await.unwrap();
        assert_eq!(texts(&keeper, thread, 3).await, ["two", "THREE", "four"]);
        other.erase_messages(&ana(), thread, &[ids[1]]).await.unwrap();
        assert_eq!(texts(&keeper, thread, 3).await, ["one", "THREE", "four"]);
        other.retain(&ana(), thread, &Retention { max_messages: Some(1), ttl_minutes: None }).await.unwrap();
        assert_eq!(texts(&keeper, thread, 3).await, ["four"]);
        other.delete_thread(&ana(), thread).await.unwrap();
        let error = keeper.newest(&ana(), thread, 3).await.unwrap_err();
        assert!(error.is_not_found(), "{error}");
        assert_eq!(keeper.thread_cache_stats().threads, 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_this_instance_appends_is_no_miss() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let (keeper, other) = two(&world);
        say(&keeper, thread, "Title.").await;
        texts(&keeper, thread, 4).await;
        for turn in 0..10 {
            let drafts = vec![Draft::user(format!("q{turn}")), Draft::assistant(format!("a{turn}"))];
            keeper.append_all(&ana(), thread, drafts, &Default::default()).await.unwrap();
            let patch = ThreadPatch { metadata: Some(Default::default()), ..ThreadPatch::default() };
            keeper.patch_thread(&ana(), thread, patch, None).await.unwrap();
            assert_eq!(texts(&keeper, thread, 4).await, texts(&other, thread, 4).await);
        }
        assert_eq!(counted(&keeper), (10, 1));
        // Two instances that take turns each see the other's.
        for turn in 0..4 {
            say(&keeper, thread, &format!("k{turn}")).await;
            say(&other, thread, &format!("o{turn}")).await;
            assert_eq!(texts(&keeper, thread, 4).await, texts(&other, thread, 4).await);
        }
        assert_eq!(counted(&keeper), (10, 5));
    })
    .await;
}

/// A read that was answered from a tail asks the store once, as any other does.
#[tokio::test(start_paused = true)]
async fn a_read_is_one_call_of_the_store() {
    let (probe, world) = Probe::world();
    let thread = world.thread().await;
    let (keeper, _) = two(&world);
    say(&keeper, thread, "one").await;
    texts(&keeper, thread, 4).await;
    probe.take_calls();
    texts(&keeper, thread, 4).await;
    keeper.context(&ana(), thread, None, &Default::default()).await.unwrap();
    // The context's look brings along what it carries on, and the user's preferences.
    assert_eq!(probe.take_calls(), [("list_messages", 1), ("read_thread_with_documents", 1)]);
}

#[tokio::test(start_paused = true)]
async fn erased_texts_leave_at_once() {
    everywhere(async |world: World| {
        let (one, other) = (world.thread().await, world.thread().await);
        let (keeper, _) = two(&world);
        for thread in [one, other] {
            say(&keeper, thread, "Erase me.").await;
        }
        let id = say(&keeper, one, "And me.").await;
        texts(&keeper, one, 9).await;
        texts(&keeper, other, 9).await;
        assert_eq!(keeper.thread_cache_stats().threads, 2);
        keeper.erase_messages(&ana(), one, &[id]).await.unwrap();
        assert_eq!(keeper.thread_cache_stats().threads, 1);
        keeper.delete_thread(&ana(), other).await.unwrap();
        let ThreadCacheStats { threads, bytes, .. } = keeper.thread_cache_stats();
        assert_eq!((threads, bytes), (0, 0));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_tail_is_shown_to_nobody_else() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        let (keeper, _) = two(&world);
        say(&keeper, thread, "Ana's.").await;
        assert_eq!(texts(&keeper, thread, 9).await, ["Ana's."]);
        let globex = Scope::tenant("globex").unwrap();
        for stranger in [ben(), globex] {
            let error = keeper.newest(&stranger, thread, 9).await.unwrap_err();
            assert!(matches!(error, MemoryError::Store(StoreError::NotFound(_))), "{error}");
        }
        assert_eq!(keeper.newest(&acme(), thread, 9).await.unwrap().len(), 1);
    })
    .await;
}

/// A thread that expired and was opened anew under its old id has nothing of its past.
#[tokio::test(start_paused = true)]
async fn a_thread_that_begins_anew_has_no_old_tail() {
    everywhere(async |world: World| {
        let (keeper, other) = two(&world);
        let id = keeper.mint_thread_id();
        let open = || OpenThread { expires_at: Some(other.now().plus_ms(1_000)), ..OpenThread::new(&ana(), id) };
        for text in ["the past", "the present"] {
            other.open_thread(&ana(), open()).await.unwrap();
            let draft = || Draft::user(text).with_id(MessageId::from_name(b"always"));
            other.append(&ana(), id, draft()).await.unwrap();
            assert_eq!(texts(&keeper, id, 9).await, [text]);
            assert_eq!(texts(&keeper, id, 9).await, [text]);
            world.clock.advance_ms(1_000);
            assert!(keeper.newest(&ana(), id, 9).await.unwrap_err().is_not_found());
        }
    })
    .await;
}

/// What is held is no way round the time that messages are kept for.
// S4.36
#[tokio::test(start_paused = true)]
async fn what_is_too_old_is_not_shown_from_memory_either() {
    let world = World::sqlite();
    let thread = world.thread().await;
    let retention = Some(Retention { max_messages: None, ttl_minutes: Some(60) });
    let keeper = world.memory.with_options(MemoryOptions { retention, ..keeping(1 << 20) });
    let keeper = keeper.unwrap();
    say(&keeper, thread, "an hour ago").await;
    world.clock.advance_minutes(40);
    say(&keeper, thread, "since").await;
    assert_eq!(texts(&keeper, thread, 9).await, ["an hour ago", "since"]);
    assert_eq!(keeper.cached_messages(&ana(), thread, 9).map(|held| held.messages().len()), Some(2));
    world.clock.advance_minutes(9);
    texts(&keeper, thread, 9).await;
    world.clock.advance_minutes(9);
    texts(&keeper, thread, 9).await;
    world.clock.advance_minutes(3);
    assert_eq!(texts(&keeper, thread, 9).await, ["since"]);
    assert!(keeper.cached_messages(&ana(), thread, 9).is_none());
}

#[tokio::test(start_paused = true)]
async fn tails_are_bounded_and_forgotten_and_can_be_off() {
    let world = World::plain();
    let mut threads = Vec::new();
    for _ in 0..40 {
        let thread = world.thread().await;
        for _ in 0..4 {
            say(&world.memory, thread, &"x".repeat(1_000)).await;
        }
        threads.push(thread);
    }
    let keeper = world.memory.with_options(keeping(64 * 1024)).unwrap();
    for thread in &threads {
        texts(&keeper, *thread, 4).await;
        assert!(keeper.thread_cache_stats().bytes <= 64 * 1024);
    }
    let held = keeper.thread_cache_stats().threads;
    assert!((5..16).contains(&held), "{held}");
    // Those that were read last are held.
    for thread in &threads[40 - held..] {
        texts(&keeper, *thread, 4).await;
    }
    assert_eq!(counted(&keeper), (held as u64, 40));
    // One that would take the most of it is not kept.
    let large = world.thread().await;
    say(&world.memory, large, &"x".repeat(60_000)).await;
    texts(&keeper, large, 4).await;
    assert_eq!(keeper.thread_cache_stats().threads, held);
    world.clock.advance_minutes(10);
    texts(&keeper, threads[0], 4).await;
    assert_eq!(keeper.thread_cache_stats().threads, 1);
    texts(&world.memory, threads[0], 4).await;
    assert_eq!(world.memory.thread_cache_stats(), ThreadCacheStats::default());
}

/// While nobody writes, the second load asks nobody, and a save is seen by the next one.
// S3.45
#[tokio::test(start_paused = true)]
async fn a_second_load_is_one_without_the_store() {
    let file = World::sqlite();
    let (probe, world) = Probe::world_over(file.backend.clone());
    let thread = world.thread().await;
    let (keeper, _) = two(&world);
    let id = say(&keeper, thread, "one").await;
    assert_eq!(texts(&keeper, thread, 16).await, ["one"]);
    probe.take_calls();
    assert_eq!(texts(&keeper, thread, 16).await, ["one"]);
    assert_eq!(texts(&keeper, thread, 1).await, ["one"]);
    assert_eq!(probe.take_calls(), []);
    say(&keeper, thread, "two").await;
    assert_eq!(texts(&keeper, thread, 16).await, ["one", "two"]);
    keeper.erase_messages(&ana(), thread, &[id]).await.unwrap();
    assert_eq!(texts(&keeper, thread, 16).await, ["two"]);
    probe.take_calls();
    assert_eq!(texts(&keeper, thread, 16).await, ["two"]);
    assert_eq!(probe.take_calls(), []);
    // Each reader is let in by the store once.
    assert!(keeper.newest(&ben(), thread, 16).await.unwrap_err().is_not_found());
    assert!(!probe.take_calls().is_empty());
    assert_eq!(texts(&keeper, thread, 16).await, ["two"]);
    // It is over when it is over, whatever the expiry was when it was read.
    let patch = ThreadPatch { expires_at: Some(Some(keeper.now().plus_ms(50))), ..ThreadPatch::default() };
    keeper.patch_thread(&ana(), thread, patch, None).await.unwrap();
    assert_eq!(texts(&keeper, thread, 16).await, ["two"]);
    probe.take_calls();
    world.clock.advance_ms(49);
    assert_eq!(texts(&keeper, thread, 16).await, ["two"]);
    assert_eq!(probe.take_calls(), []);
    world.clock.advance_ms(1);
    assert!(keeper.newest(&ana(), thread, 16).await.unwrap_err().is_not_found());
}

/// Two instances do whatever they like; the one that keeps tails reads what the store holds, always.
#[tokio::test(start_paused = true)]
async fn a_tail_is_what_the_store_holds() {
    let (mut hits, mut misses, mut has_held) = (0, 0, 0);
    let folder = tempfile::tempdir().unwrap();
    for seed in 1..=18_u64 {
        // One file in two hands is how two processes share it, and has a stamp.
        let in_file = || SqliteStore::open(folder.path().join(seed.to_string()), SqliteOptions::default()).unwrap();
        let (backend, others) = if seed > 12 {
            (in_file().backend(), in_file().backend())
        } else {
            let backend = MemoryStore::open();
            (backend.clone(), backend)
        };
        let clock = Arc::new(FakeClock::default());
        let keeper = Memory::with_clock(FaultyStore::wrap(backend, seed), clock.clone());
        let keeper = keeper.with_options(keeping(1 << 14)).unwrap();
        let other = Memory::with_clock(others, clock);
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
            let actor = if draw(3) == 0 { &other } else { &keeper };
            let held = other.newest(&ana(), thread, 50).await.unwrap();
            let some = (!held.is_empty()).then(|| held[draw(held.len() as u64) as usize].id);
            match (draw(12), some) {
                (0, Some(id)) => drop(actor.erase_messages(&ana(), thread, &[id]).await.unwrap()),
                (1, Some(id)) => {
                    let anew = Content::text(Role::User, format!("anew {step}"));
                    actor.replace_message(&ana(), thread, id, anew, None).await.unwrap();
                }
                (2, _) => {
                    let retention = Retention { max_messages: Some(8), ttl_minutes: None };
                    actor.retain(&ana(), thread, &retention).await.unwrap();
                }
                (3..7, _) => drop(say(actor, thread, &format!("step {step}")).await),
                _ => {}
            }
            let query = MessageQuery::newest(1 + draw(9) as usize);
            let stored = other.messages(&ana(), thread, &query).await.unwrap();
            if let Some(held) = keeper.cached_messages(&ana(), thread, query.limit) {
                assert_eq!(held.to_page(), stored, "seed {seed}, step {step}");
                let last = |held: &CachedMessages| (held.messages().len(), held.messages().last().cloned());
                assert_eq!(*held.derived(last), last(&held));
                has_held += 1;
            }
            let shown = keeper.messages(&ana(), thread, &query).await.unwrap();
            assert_eq!(shown, stored, "seed {seed}, step {step}");
            assert!(keeper.cached_messages(&ben(), thread, query.limit).is_none(), "it was never shown to him");
        }
        let figures = counted(&keeper);
        (hits, misses) = (hits + figures.0, misses + figures.1);
    }
    assert!(hits > 500 && misses > 500 && has_held > 100, "{hits} {misses} {has_held}");
}
