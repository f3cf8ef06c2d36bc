//! What a turn reads before it begins.

use threadkeep_context::{ContextPolicy, SummaryPolicy};
use threadkeep_core::{DumpEntry, JsonText, Namespace, PutRecord, RecordName, RecordOwner, ThreadId, ThreadPatch};
use threadkeep_memory::{ContextOptions, Draft, Memory, MemoryOptions, Retention, ThreadConfig};

use super::probe::Probe;
use super::world::{World, ana, ben, everywhere};

fn named(key: &str) -> RecordName {
    RecordName { namespace: Namespace::app("notes").unwrap(), key: key.to_owned() }
}

fn summarising(window: usize) -> ContextPolicy {
    ContextPolicy { window: Some(window), summary: Some(SummaryPolicy::default()), ..ContextPolicy::default() }
}

async fn say(memory: &Memory, thread: ThreadId, from: u32, count: u32) {
    for number in from..from + count {
        let draft = Draft::user(format!("My train number {number} leaves from Platform {number}."));
        memory.append(&ana(), thread, draft).await.unwrap();
    }
}

/// A thread with settings, a record and messages.
async fn prepared(world: &World) -> ThreadId {
    let (memory, thread) = (&world.memory, world.thread().await);
    say(memory, thread, 1, 12).await;
    let config = ThreadConfig { history_limit: Some(3), ..ThreadConfig::default() };
    memory.set_thread_config(&ana(), thread, &config, None).await.unwrap();
    let put = PutRecord { name: named("k"), value: JsonText::new("1").unwrap(), expires_at: None };
    memory.batch().put(put).commit(&ana(), thread).await.unwrap();
    thread
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_makes_the_same_context() {
    everywhere(async |world: World| {
        let thread = prepared(&world).await;
        world.memory.set_preference(&ana(), "usual_line", "Northern").await.unwrap();
        let holding = MemoryOptions { thread_cache_bytes: 1 << 20, ..world.memory.options().clone() };
        let holding = world.memory.with_options(holding).unwrap();
        for memory in [&world.memory, &holding] {
            for turn in 0..3 {
                let wide = summarising(6);
                let found = memory.prefetch(&ana(), thread, &wide, &[named("k"), named("none")], &[]).await.unwrap();
                assert_eq!(found.thread, memory.get_thread(&ana(), thread).await.unwrap());
                assert_eq!(found.config, memory.thread_config(&ana(), thread).await.unwrap());
                let values = found.records.iter().map(|found| found.as_ref().map(|found| found.value.as_str()));
                assert_eq!(values.collect::<Vec<_>>(), [Some("1"), None]);
                let narrow = found.config.bound_context(&wide);
                assert_eq!(narrow.window, Some(3));
                for policy in
                    [ContextPolicy::window(4), ContextPolicy::window(2), narrow, summarising(20), wide.clone()]
                {
                    for is_bounded in [false, true] {
                        let found = memory.prefetch(&ana(), thread, &wide, &[], &[]).await.unwrap();
                        let through_seq = is_bounded.then_some(found.thread.positions.seq);
                        let options = ContextOptions { through_seq, ..ContextOptions::default() };
                        let of = memory.context_of(&found, Some("and now?"), &policy, &options).await.unwrap();
                        let other = world.another_process();
                        let alone = other.context_with(&ana(), thread, Some("and now?"), &policy, &options).await;
                        assert_eq!(of.assembled().context, alone.unwrap().context, "{policy:?}");
                    }
                }
                say(memory, thread, 20 + turn, 1).await;
            }
        }
        let foreign = world.memory.prefetch(&ben(), thread, &ContextPolicy::window(4), &[], &[]).await;
        assert!(foreign.unwrap_err().is_not_found());
    })
    .await;
}

#[tokio::test]
async fn broken_messages_count_as_others_do() {
    let (from, to) = (World::plain(), World::plain());
    let thread = prepared(&from).await;
    let tenant = ana().tenant_id().clone();
    let mut dump = from.backend.maintenance.dump_thread(&tenant, thread, None, 100).await.unwrap();
    for place in [3, 9, 10] {
        let DumpEntry::Message { body, .. } = &mut dump.entries[place] else { panic!("a message") };
        *body = "1u{\"parts\":[{\"text\":\"sec".to_owned();
    }
    to.backend.maintenance.restore_thread(&tenant, thread, dump).await.unwrap();
    let found = to.memory.prefetch(&ana(), thread, &ContextPolicy::window(10), &[], &[]).await.unwrap();
    for window in 1..=10 {
        let (policy, options) = (ContextPolicy::window(window), ContextOptions::default());
        let alone = to.another_process().context(&ana(), thread, None, &policy).await.unwrap();
        let of = to.memory.context_of(&found, None, &policy, &options).await.unwrap();
        assert_eq!(
            (&of.assembled().context, &of.assembled().unreadable),
            (&alone.context, &alone.unreadable),
            "{window}"
        );
    }
}

/// With the look at the caller's key they are three.
#[tokio::test]
async fn what_comes_before_the_model_is_two_calls() {
    let (probe, world) = Probe::world();
    let thread = prepared(&world).await;
    let title = ThreadPatch { title: Some(Some("Trains".to_owned())), ..ThreadPatch::default() };
    world.memory.patch_thread(&ana(), thread, title, None).await.unwrap();
    for thread_cache_bytes in [0, 1 << 20] {
        let options = MemoryOptions { thread_cache_bytes, ..world.memory.options().clone() };
        // A process of its own: it has read nothing yet.
        let memory = world.another_process().with_options(options).unwrap();
        for temperature in ["cold", "warm", "warm"] {
            probe.take_calls();
            let policy = ContextPolicy::window(4);
            let found =
                memory.prefetch(&ana(), thread, &policy, &[named("k"), RecordName::driver()], &[]).await.unwrap();
            let policy = found.config.bound_context(&policy);
            memory.context_of(&found, Some("and now?"), &policy, &ContextOptions::default()).await.unwrap();
            memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
            let expected = [("commit", 1), ("read_thread_with_documents", 1)];
            assert_eq!(probe.take_calls(), expected, "{temperature}, with {thread_cache_bytes} bytes of tails");
        }
    }
    // The same, each read by itself.
    let memory = world.another_process();
    probe.take_calls();
    memory.get_thread(&ana(), thread).await.unwrap();
    let config = memory.thread_config(&ana(), thread).await.unwrap();
    memory.find_thread_record(&ana(), thread, &named("k")).await.unwrap();
    memory.find_thread_record(&ana(), thread, &RecordName::driver()).await.unwrap();
    let policy = config.bound_context(&ContextPolicy::window(4));
    memory.context(&ana(), thread, Some("and now?"), &policy).await.unwrap();
    memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
    assert_eq!(probe.take_calls().iter().map(|(_, count)| count).sum::<usize>(), 6);
}

async fn derived_version(world: &World, thread: ThreadId) -> u64 {
    let (store, owner) = (&world.backend.store, RecordOwner::Thread(thread));
    let found = store.find_record(&ana(), &owner, &Namespace::derived(), "thread", world.memory.now()).await;
    found.unwrap().expect("something was derived").version
}

#[tokio::test(start_paused = true)]
async fn what_was_read_holds_after_the_readers_own_commit() {
    everywhere(async |world: World| {
        let thread = prepared(&world).await;
        let (memory, other) = (&world.memory, world.another_process());
        let (policy, options) = (summarising(4), ContextOptions::default());
        for round in 0..3 {
            let text = "and now?";
            let question = Some(text);
            let expected = other.context_with(&ana(), thread, question, &policy, &options).await.unwrap().context;
            assert!(expected.messages.iter().any(|message| message.plain_text().contains("Platform 1.")), "summarised");
            let found = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
            let appended = memory.append(&ana(), thread, Draft::user(text)).await.unwrap();
            let found = found.after(appended.change.into()).expect("nobody else wrote");
            let of = memory.context_of(&found, question, &policy, &options).await.unwrap();
            assert_eq!(of.assembled().context, expected, "round {round}");

            // What it derives is stored at the change that the reader's own commit made.
            say(&other, thread, 20 + 10 * round, 6).await;
            let found = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
            let appended = memory.append(&ana(), thread, Draft::user(text)).await.unwrap();
            let found = found.after(appended.change.into()).expect("nobody else wrote");
            memory.context_of(&found, question, &policy, &options).await.unwrap();
            let version = derived_version(&world, thread).await;
            assert_eq!(version & u64::from(u32::MAX), appended.change, "round {round}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_read_holds_no_longer_once_others_commit() {
    everywhere(async |world: World| {
        let thread = prepared(&world).await;
        let (memory, other) = (&world.memory, world.another_process());
        let policy = summarising(4);
        memory.context(&ana(), thread, None, &policy).await.unwrap();
        for is_erased in [false, true] {
            let found = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
            if is_erased {
                let said = other.newest(&ana(), thread, 3).await.unwrap();
                other.erase_messages(&ana(), thread, &[said[0].id]).await.unwrap();
            } else {
                say(&other, thread, 50, 1).await;
            }
            let appended = memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
            assert!(found.after(appended.change.into()).is_none(), "erased: {is_erased}");
        }
        // A derived write of another is no commit: what was read holds, and what is derived of it is not stored over it.
        say(&other, thread, 60, 6).await;
        let found = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
        other.context(&ana(), thread, None, &policy).await.unwrap();
        let version = derived_version(&world, thread).await;
        let appended = memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
        let found = found.after(appended.change.into()).expect("nobody else committed");
        let of = memory.context_of(&found, Some("and now?"), &policy, &ContextOptions::default()).await.unwrap();
        assert!(!of.assembled().context.messages.is_empty());
        assert_eq!(derived_version(&world, thread).await, version);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_read_is_read_again_where_appending_trims() {
    everywhere(async |world: World| {
        let thread = prepared(&world).await;
        let retention = Some(Retention { max_messages: Some(5), ttl_minutes: None });
        let options = MemoryOptions { retention, ..world.memory.options().clone() };
        let memory = world.memory.with_options(options).unwrap();
        let policy = ContextPolicy::window(8);
        let found = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
        let appended = memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
        assert!(memory.get_thread(&ana(), thread).await.unwrap().positions.first_seq > 1, "it trims");
        assert!(found.after(appended.change.into()).is_none());
    })
    .await;
}
