//! What a turn reads before it begins.

use threadkeep_context::{ContextPolicy, SummaryPolicy};
use threadkeep_core::{DocumentName, DumpEntry, JsonText, Namespace, PutDocument, ThreadId, ThreadPatch};
use threadkeep_memory::{ContextOptions, Draft, Memory, MemoryOptions, ThreadConfig};

use super::probe::Probe;
use super::world::{World, ana, ben, everywhere};

fn named(key: &str) -> DocumentName {
    DocumentName { namespace: Namespace::app("notes").unwrap(), key: key.to_owned() }
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

/// A thread with settings, a document and messages.
async fn prepared(world: &World) -> ThreadId {
    let (memory, thread) = (&world.memory, world.thread().await);
    say(memory, thread, 1, 12).await;
    let config = ThreadConfig { history_limit: Some(3), ..ThreadConfig::default() };
    memory.set_thread_config(&ana(), thread, &config, None).await.unwrap();
    let put = PutDocument { name: named("k"), value: JsonText::new("1").unwrap(), expires_at: None };
    memory.batch().put(put).commit(&ana(), thread).await.unwrap();
    thread
}

#[tokio::test(start_paused = true)]
async fn what_was_read_before_makes_the_same_context() {
    everywhere(async |world: World| {
        let thread = prepared(&world).await;
        world.memory.set_preference(&ana(), "usual_line", "Northern").await.unwrap();
        let holding = MemoryOptions { tail_bytes: 1 << 20, ..world.memory.options().clone() };
        let holding = world.memory.with_options(holding).unwrap();
        for memory in [&world.memory, &holding] {
            for turn in 0..3 {
                let wide = summarising(6);
                let found = memory.prefetch(&ana(), thread, &wide, &[named("k"), named("none")], &[]).await.unwrap();
                assert_eq!(found.thread, memory.get_thread(&ana(), thread).await.unwrap());
                assert_eq!(found.config, memory.thread_config(&ana(), thread).await.unwrap());
                let values = found.documents.iter().map(|found| found.as_ref().map(|found| found.value.as_str()));
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
    for tail_bytes in [0, 1 << 20] {
        let options = MemoryOptions { tail_bytes, ..world.memory.options().clone() };
        // A process of its own: it has read nothing yet.
        let memory = world.another_process().with_options(options).unwrap();
        for temperature in ["cold", "warm", "warm"] {
            probe.take_calls();
            let policy = ContextPolicy::window(4);
            let found =
                memory.prefetch(&ana(), thread, &policy, &[named("k"), DocumentName::driver()], &[]).await.unwrap();
            let policy = found.config.bound_context(&policy);
            memory.context_of(&found, Some("and now?"), &policy, &ContextOptions::default()).await.unwrap();
            memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
            let expected = [("commit", 1), ("read_thread_with_documents", 1)];
            assert_eq!(probe.take_calls(), expected, "{temperature}, with {tail_bytes} bytes of tails");
        }
    }
    // The same, each read by itself.
    let memory = world.another_process();
    probe.take_calls();
    memory.get_thread(&ana(), thread).await.unwrap();
    let config = memory.thread_config(&ana(), thread).await.unwrap();
    memory.find_thread_document(&ana(), thread, &named("k")).await.unwrap();
    memory.find_thread_document(&ana(), thread, &DocumentName::driver()).await.unwrap();
    let policy = config.bound_context(&ContextPolicy::window(4));
    memory.context(&ana(), thread, Some("and now?"), &policy).await.unwrap();
    memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
    assert_eq!(probe.take_calls().iter().map(|(_, count)| count).sum::<usize>(), 6);
}
