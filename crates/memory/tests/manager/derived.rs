//! Assembling a context stores derived data (the summary and token counts) without changing the thread.

use threadkeep_context::ContextPolicy;
use threadkeep_core::{MessageId, Namespace, Record, RecordOwner, RecordQuery, ThreadId};
use threadkeep_memory::migrate::{BackupLines, BackupReader, Migration};
use threadkeep_memory::{Draft, Memory, MemoryError, MemoryOptions};

use super::probe::{Outcome, Probe};
use super::test_env::{TestEnv, acme, ana, on_all_stores};

/// A sentence that only one message contains.
const SECRET: &str = "Platform 30.";

fn policy() -> ContextPolicy {
    ContextPolicy { window: Some(4), ..ContextPolicy::default() }
}

async fn append_fact(memory: &Memory, thread: ThreadId, number: u32) -> MessageId {
    let draft = Draft::user(format!("My train number {number} leaves from Platform {number}."));
    memory.append(&ana(), thread, draft).await.unwrap().messages[0].id
}

/// Appends forty messages. Returns the id of the message that contains [`SECRET`], which is outside the window.
async fn append_facts(memory: &Memory, thread: ThreadId) -> MessageId {
    let mut ids = Vec::new();
    for number in 0..40 {
        ids.push(append_fact(memory, thread, number).await);
    }
    ids[30]
}

/// Assembles a context, and returns its text.
async fn context_text(memory: &Memory, thread: ThreadId) -> String {
    let context = memory.context(&ana(), thread, None, &policy()).await.unwrap().context;
    context.messages.iter().map(|message| message.plain_text()).collect::<Vec<_>>().join("\n")
}

/// Returns the values of all records of a thread.
async fn record_values(env: &TestEnv, thread: ThreadId) -> String {
    let query = RecordQuery::of(RecordOwner::Thread(thread));
    let records = env.backend.store.list_records(&acme(), &query, env.memory.now()).await.unwrap();
    records.iter().map(|record| record.value.as_str()).collect::<Vec<_>>().join("\n")
}

/// Returns an instance with a thread cache.
fn with_cache(env: &TestEnv) -> Memory {
    env.memory.with_options(MemoryOptions { thread_cache_bytes: 1 << 20, ..MemoryOptions::default() }).unwrap()
}

#[tokio::test(start_paused = true)]
async fn assembling_a_context_does_not_change_the_thread() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        append_facts(&env.memory, thread).await;
        let before = env.memory.get_thread(&ana(), thread).await.unwrap();
        env.clock.advance_minutes(1);
        for memory in [&env.memory, &with_cache(&env), &env.another_process()] {
            assert!(context_text(memory, thread).await.contains(SECRET));
        }
        assert!(record_values(&env, thread).await.contains(SECRET), "the summary is stored");
        assert_eq!(env.memory.get_thread(&ana(), thread).await.unwrap(), before);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_derived_write_after_an_erasure_is_rejected() {
    for has_cache in [false, true] {
        let (probe, env) = Probe::new_env();
        let thread = env.open_thread().await;
        let reader = if has_cache { with_cache(&env) } else { env.memory.clone() };
        let other = Memory::with_clock(env.backend.clone(), env.clock.clone());
        let secret = append_facts(&reader, thread).await;
        let (reached, release) = probe.block_derived_write();
        let assembling = tokio::spawn({
            let reader = reader.clone();
            async move { context_text(&reader, thread).await }
        });
        reached.await.unwrap();
        other.erase_messages(&ana(), thread, &[secret]).await.unwrap();
        release.send(()).unwrap();
        assert!(assembling.await.unwrap().contains(SECRET), "the message was read before the erasure");
        assert!(!record_values(&env, thread).await.contains(SECRET));
        assert!(!context_text(&reader, thread).await.contains(SECRET));
    }
}

#[tokio::test(start_paused = true)]
async fn concurrent_contexts_do_not_restore_erased_text() {
    on_all_stores(async |env: TestEnv| {
        for round in 0..4 {
            let thread = env.open_thread().await;
            let (first, second) = (with_cache(&env), env.another_process());
            let secret = append_facts(&first, thread).await;
            let reading = async |memory: &Memory| {
                for number in 100..106 {
                    append_fact(memory, thread, number).await;
                    context_text(memory, thread).await;
                    tokio::task::yield_now().await;
                }
            };
            let erasing = async {
                for _ in 0..round {
                    context_text(&second, thread).await;
                }
                second.erase_messages(&ana(), thread, &[secret]).await.unwrap();
                assert!(!record_values(&env, thread).await.contains(SECRET), "round {round}, after the erasure");
            };
            tokio::join!(Box::pin(reading(&first)), Box::pin(reading(&second)), Box::pin(erasing));
            assert!(!record_values(&env, thread).await.contains(SECRET), "round {round}, at the end");
            for memory in [&first, &second] {
                let text = context_text(memory, thread).await;
                assert!(!text.contains(SECRET) && text.contains("Platform 29."), "{text}");
            }
        }
    })
    .await;
}

// Another instance may replace the derived record without a new change in the thread. A write based on the cached version is then
// rejected, and the record is read again.
#[tokio::test(start_paused = true)]
async fn instances_converge_after_concurrent_derived_writes() {
    let (probe, env) = Probe::new_env();
    let thread = env.open_thread().await;
    let (first, second) = (with_cache(&env), env.another_process());
    append_facts(&first, thread).await;
    context_text(&first, thread).await;
    let narrow_policy = ContextPolicy { window: Some(2), ..policy() };
    second.context(&ana(), thread, None, &narrow_policy).await.unwrap();
    let written = record_values(&env, thread).await;
    probe.take_calls();
    // `first` derives from its cached version of the record. The write is rejected and does not replace the record that `second` wrote.
    first.context(&ana(), thread, None, &ContextPolicy { window: Some(3), ..policy() }).await.unwrap();
    assert!(probe.take_calls().contains(&("write_derived", 1)));
    assert_eq!(record_values(&env, thread).await, written);
    // After a lost response, the only cost is another read.
    for number in 41..44 {
        append_fact(&first, thread, number).await;
    }
    probe.script([Outcome::LostResponse]);
    probe.take_calls();
    context_text(&first, thread).await;
    assert!(probe.take_calls().contains(&("write_derived", 2)), "the write is retried and rejected");
    assert_eq!(context_text(&first, thread).await, context_text(&second, thread).await);
    assert_ne!(record_values(&env, thread).await, written);
}

/// Reads the derived record of a thread directly from the store, without injected faults.
async fn read_derived_record(env: &TestEnv, thread: ThreadId) -> Record {
    let query = RecordQuery { namespace: Some(Namespace::derived()), ..RecordQuery::of(RecordOwner::Thread(thread)) };
    env.backend.store.list_records(&acme(), &query, env.memory.now()).await.unwrap().remove(0)
}

/// Copies a store by migration, and verifies the copy.
async fn migrate(from: &TestEnv, to: &TestEnv) {
    let migration = Migration::begin(&from.backend, to.backend.clone(), from.memory.platform()).await.unwrap();
    assert_eq!(migration.copy(|_| {}).await.unwrap().conflicts.count, 0);
    let verified = migration.verify(|_| {}).await.unwrap();
    assert!(verified.differences.is_empty(), "{:?}", verified.differences);
    let repeated = migration.copy(|_| {}).await.unwrap();
    assert_eq!((repeated.copied.threads, repeated.already_there.threads), (0, 1));
}

/// Copies a store by backing it up and restoring the backup.
async fn back_up_and_restore(from: &TestEnv, to: &TestEnv) {
    let mut reader = BackupReader::into(to.backend.clone(), to.memory.platform());
    let mut lines = Vec::new();
    let backup = BackupLines::begin(&from.backend, from.memory.platform()).await.unwrap();
    let collect = |line: &str, _| {
        lines.push(line.to_owned());
        Ok::<(), MemoryError>(())
    };
    backup.write(collect).await.unwrap();
    for line in &lines {
        reader.line(line).await.unwrap();
    }
    assert_eq!(reader.finish().unwrap().threads, 1);
}

/// The version of the record is copied, and the record can be updated, also to remove erased text. Verification reports no damage.
#[tokio::test(start_paused = true)]
async fn derived_records_survive_migration_and_backup() {
    on_all_stores(async |env: TestEnv| {
        let (source, restored) = (TestEnv::sqlite(), TestEnv::plain());
        let thread = source.open_thread().await;
        let secret = append_facts(&source.memory, thread).await;
        context_text(&source.memory, thread).await;
        let before = read_derived_record(&source, thread).await;
        let change = source.memory.get_thread(&ana(), thread).await.unwrap().positions.change;
        assert_eq!((before.version >> 32, before.version & u64::from(u32::MAX)), (1, change));

        migrate(&source, &env).await;
        back_up_and_restore(&env, &restored).await;
        for target in [&env, &restored] {
            assert_eq!(target.backend.maintenance.verify().await.unwrap().findings, []);
            assert_eq!(read_derived_record(target, thread).await, before);
            target.clock.advance_minutes(1);
            append_fact(&target.memory, thread, 40).await;
            assert!(context_text(&target.memory, thread).await.contains(SECRET));
            let next = read_derived_record(target, thread).await;
            assert_eq!(
                (next.version >> 32, next.version & u64::from(u32::MAX)),
                (2, change + 1),
                "the record was written again"
            );
            target.memory.erase_messages(&ana(), thread, &[secret]).await.unwrap();
            assert!(!record_values(target, thread).await.contains(SECRET));
            assert!(!context_text(&target.memory, thread).await.contains(SECRET));
            assert_eq!(target.backend.maintenance.verify().await.unwrap().findings, []);
        }
    })
    .await;
}
