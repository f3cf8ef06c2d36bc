//! What contexts carry on, kept beside the ends of threads.

use threadkeep_context::ContextPolicy;
use threadkeep_core::{MessageId, ThreadId};
use threadkeep_memory::{AssembledContext, Draft, Memory, MemoryOptions, TailFigures};

use super::probe::Probe;
use super::world::{World, ana, everywhere};

fn keeper(world: &World) -> Memory {
    world.memory.with_options(MemoryOptions { tail_bytes: 1 << 20, ..MemoryOptions::default() }).unwrap()
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

fn document_reads(probe: &Probe) -> u64 {
    let calls = probe.take_calls();
    calls.iter().find(|(call, _)| *call == "find_document").map_or(0, |(_, count)| u64::try_from(*count).unwrap())
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
    assert_eq!(document_reads(&probe), 0);
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
        let of_messages = keeper.tail_figures().bytes;
        context(&keeper, thread).await;
        context(&keeper, thread).await;
        assert!(keeper.tail_figures().bytes > of_messages + 500, "{:?}", keeper.tail_figures());
        keeper.erase_messages(&ana(), thread, &[ids[30]]).await.unwrap();
        let TailFigures { threads, bytes, .. } = keeper.tail_figures();
        assert_eq!((threads, bytes), (0, 0));
        let after = context(&keeper, thread).await;
        assert!(!summary(&after).contains("Platform 30."), "{}", summary(&after));
    })
    .await;
}
