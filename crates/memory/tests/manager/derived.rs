//! What contexts derive is stored beside the changes of a thread.

use threadkeep_context::ContextPolicy;
use threadkeep_core::{MessageId, Namespace, Record, RecordOwner, RecordQuery, ThreadId};
use threadkeep_memory::migrate::{BackupLines, BackupReader, Migration};
use threadkeep_memory::{Draft, Memory, MemoryError, MemoryOptions};

use super::probe::{Fate, Probe};
use super::world::{World, acme, ana, everywhere};

/// A sentence that no other message holds.
const SECRET: &str = "Platform 30.";

fn policy() -> ContextPolicy {
    ContextPolicy { window: Some(4), ..ContextPolicy::default() }
}

async fn say(memory: &Memory, thread: ThreadId, number: u32) -> MessageId {
    let draft = Draft::user(format!("My train number {number} leaves from Platform {number}."));
    memory.append(&ana(), thread, draft).await.unwrap().messages[0].id
}

/// Forty messages, the thirtieth of which is long out of the window. Gives its id.
async fn talk(memory: &Memory, thread: ThreadId) -> MessageId {
    let mut ids = Vec::new();
    for number in 0..40 {
        ids.push(say(memory, thread, number).await);
    }
    ids[30]
}

/// What a context shows.
async fn shown(memory: &Memory, thread: ThreadId) -> String {
    let told = memory.context(&ana(), thread, None, &policy()).await.unwrap().context;
    told.messages.iter().map(|message| message.plain_text()).collect::<Vec<_>>().join("\n")
}

/// Everything that is stored as records of a thread.
async fn records(world: &World, thread: ThreadId) -> String {
    let query = RecordQuery::of(RecordOwner::Thread(thread));
    let records = world.backend.store.list_records(&acme(), &query, world.memory.now()).await.unwrap();
    records.iter().map(|record| record.value.as_str()).collect::<Vec<_>>().join("\n")
}

fn keeper(world: &World) -> Memory {
    world.memory.with_options(MemoryOptions { thread_cache_bytes: 1 << 20, ..MemoryOptions::default() }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_context_leaves_its_thread_as_it_stands() {
    everywhere(async |world: World| {
        let thread = world.thread().await;
        talk(&world.memory, thread).await;
        let before = world.memory.get_thread(&ana(), thread).await.unwrap();
        world.clock.advance_minutes(1);
        for memory in [&world.memory, &keeper(&world), &world.another_process()] {
            assert!(shown(memory, thread).await.contains(SECRET));
        }
        assert!(records(&world, thread).await.contains(SECRET), "the summary is stored");
        assert_eq!(world.memory.get_thread(&ana(), thread).await.unwrap(), before);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_derived_write_that_comes_after_an_erasure_is_refused() {
    for keeps_tails in [false, true] {
        let (probe, world) = Probe::world();
        let thread = world.thread().await;
        let reader = if keeps_tails { keeper(&world) } else { world.memory.clone() };
        let other = Memory::with_clock(world.backend.clone(), world.clock.clone());
        let secret = talk(&reader, thread).await;
        let (is_reached, release) = probe.hold_derived();
        let reading = tokio::spawn({
            let reader = reader.clone();
            async move { shown(&reader, thread).await }
        });
        is_reached.await.unwrap();
        other.erase_messages(&ana(), thread, &[secret]).await.unwrap();
        release.send(()).unwrap();
        assert!(reading.await.unwrap().contains(SECRET), "it was read before the erasure");
        assert!(!records(&world, thread).await.contains(SECRET));
        assert!(!shown(&reader, thread).await.contains(SECRET));
    }
}

#[tokio::test(start_paused = true)]
async fn a_context_read_and_an_erasure_race_on_two_instances() {
    everywhere(async |world: World| {
        for round in 0..4 {
            let thread = world.thread().await;
            let (one, two) = (keeper(&world), world.another_process());
            let secret = talk(&one, thread).await;
            let reading = async |memory: &Memory| {
                for number in 100..106 {
                    say(memory, thread, number).await;
                    shown(memory, thread).await;
                    tokio::task::yield_now().await;
                }
            };
            let erasing = async {
                for _ in 0..round {
                    shown(&two, thread).await;
                }
                two.erase_messages(&ana(), thread, &[secret]).await.unwrap();
                assert!(!records(&world, thread).await.contains(SECRET), "round {round}, after the erasure");
            };
            tokio::join!(Box::pin(reading(&one)), Box::pin(reading(&two)), Box::pin(erasing));
            assert!(!records(&world, thread).await.contains(SECRET), "round {round}, in the end");
            for memory in [&one, &two] {
                let told = shown(memory, thread).await;
                assert!(!told.contains(SECRET) && told.contains("Platform 29."), "{told}");
            }
        }
    })
    .await;
}

// What is held of a thread may have been written by another instance at the same change: it is read again once it is refused.
#[tokio::test(start_paused = true)]
async fn two_instances_that_derive_at_one_change_find_together() {
    let (probe, world) = Probe::world();
    let thread = world.thread().await;
    let (one, two) = (keeper(&world), world.another_process());
    talk(&one, thread).await;
    shown(&one, thread).await;
    let narrow = ContextPolicy { window: Some(2), ..policy() };
    two.context(&ana(), thread, None, &narrow).await.unwrap();
    let written = records(&world, thread).await;
    probe.take_calls();
    // Derived from what `one` held: refused, and not stored over what `two` wrote.
    one.context(&ana(), thread, None, &ContextPolicy { window: Some(3), ..policy() }).await.unwrap();
    assert!(probe.take_calls().contains(&("write_derived", 1)));
    assert_eq!(records(&world, thread).await, written);
    // A reply that was lost costs a reading, and nothing else.
    for number in 41..44 {
        say(&one, thread, number).await;
    }
    probe.will_end([Fate::LostReply]);
    probe.take_calls();
    shown(&one, thread).await;
    assert!(probe.take_calls().contains(&("write_derived", 2)), "it is repeated, and refused");
    assert_eq!(shown(&one, thread).await, shown(&two, thread).await);
    assert_ne!(records(&world, thread).await, written);
}

/// What was derived from a thread, without the weaknesses of a store.
async fn derived(world: &World, thread: ThreadId) -> Record {
    let query = RecordQuery { namespace: Some(Namespace::derived()), ..RecordQuery::of(RecordOwner::Thread(thread)) };
    world.backend.store.list_records(&acme(), &query, world.memory.now()).await.unwrap().remove(0)
}

async fn copy(from: &World, to: &World) {
    let migration = Migration::begin(&from.backend, to.backend.clone(), from.memory.platform()).await.unwrap();
    assert_eq!(migration.copy(|_| {}).await.unwrap().left_out.count, 0);
    let verified = migration.verify(|_| {}).await.unwrap();
    assert!(verified.differences.is_empty(), "{:?}", verified.differences);
    let again = migration.copy(|_| {}).await.unwrap();
    assert_eq!((again.copied.threads, again.already_there.threads), (0, 1));
}

async fn back_up(from: &World, to: &World) {
    let mut reader = BackupReader::into(to.backend.clone(), to.memory.platform());
    let mut lines = Vec::new();
    let backup = BackupLines::begin(&from.backend, from.memory.platform()).await.unwrap();
    let keep = |line: &str, _| {
        lines.push(line.to_owned());
        Ok::<(), MemoryError>(())
    };
    backup.write(keep).await.unwrap();
    for line in &lines {
        reader.line(line).await.unwrap();
    }
    assert_eq!(reader.finish().unwrap().threads, 1);
}

/// Both halves of the version come along, no check calls it damaged, and it is scrubbed and derived again as before.
#[tokio::test(start_paused = true)]
async fn derived_records_move_and_are_restored_as_they_are() {
    everywhere(async |world: World| {
        let (source, end) = (World::sqlite(), World::plain());
        let thread = source.thread().await;
        let secret = talk(&source.memory, thread).await;
        shown(&source.memory, thread).await;
        let before = derived(&source, thread).await;
        let change = source.memory.get_thread(&ana(), thread).await.unwrap().positions.change;
        assert_eq!((before.version >> 32, before.version & u64::from(u32::MAX)), (1, change));

        copy(&source, &world).await;
        back_up(&world, &end).await;
        for moved in [&world, &end] {
            assert_eq!(moved.backend.maintenance.verify().await.unwrap().findings, []);
            assert_eq!(derived(moved, thread).await, before);
            moved.clock.advance_minutes(1);
            say(&moved.memory, thread, 40).await;
            assert!(shown(&moved.memory, thread).await.contains(SECRET));
            let next = derived(moved, thread).await;
            assert_eq!((next.version >> 32, next.version & u64::from(u32::MAX)), (2, change + 1), "it was written");
            moved.memory.erase_messages(&ana(), thread, &[secret]).await.unwrap();
            assert!(!records(moved, thread).await.contains(SECRET));
            assert!(!shown(&moved.memory, thread).await.contains(SECRET));
            assert_eq!(moved.backend.maintenance.verify().await.unwrap().findings, []);
        }
    })
    .await;
}
