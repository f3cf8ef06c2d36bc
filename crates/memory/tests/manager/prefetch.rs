//! Prefetching: reading everything that a turn needs in one call.

use threadkeep_context::{ContextPolicy, SummaryPolicy};
use threadkeep_core::{DumpEntry, JsonText, Namespace, PutRecord, RecordName, RecordOwner, ThreadId, ThreadPatch};
use threadkeep_memory::{ContextOptions, Draft, Memory, MemoryOptions, Retention, ThreadConfig};

use super::probe::Probe;
use super::test_env::{TestEnv, ana, ben, on_all_stores};

fn note_name(key: &str) -> RecordName {
    RecordName { namespace: Namespace::app("notes").unwrap(), key: key.to_owned() }
}

fn summarising_policy(window: usize) -> ContextPolicy {
    ContextPolicy { window: Some(window), summary: Some(SummaryPolicy::default()), ..ContextPolicy::default() }
}

async fn append_facts(memory: &Memory, thread: ThreadId, first: u32, count: u32) {
    for number in first..first + count {
        let draft = Draft::user(format!("My train number {number} leaves from Platform {number}."));
        memory.append(&ana(), thread, draft).await.unwrap();
    }
}

/// Creates a thread with a configuration, a record and messages.
async fn create_thread(env: &TestEnv) -> ThreadId {
    let (memory, thread) = (&env.memory, env.open_thread().await);
    append_facts(memory, thread, 1, 12).await;
    let config = ThreadConfig { history_limit: Some(3), ..ThreadConfig::default() };
    memory.set_thread_config(&ana(), thread, &config, None).await.unwrap();
    let put = PutRecord { name: note_name("k"), value: JsonText::new("1").unwrap(), expires_at: None };
    memory.batch().put(put).commit(&ana(), thread).await.unwrap();
    thread
}

#[tokio::test(start_paused = true)]
async fn a_prefetched_context_equals_one_that_was_not_prefetched() {
    on_all_stores(async |env: TestEnv| {
        let thread = create_thread(&env).await;
        env.memory.set_preference(&ana(), "usual_line", "Northern").await.unwrap();
        let caching = MemoryOptions { thread_cache_bytes: 1 << 20, ..env.memory.options().clone() };
        let caching = env.memory.with_options(caching).unwrap();
        for memory in [&env.memory, &caching] {
            for turn in 0..3 {
                let wide_policy = summarising_policy(6);
                let prefetched = memory
                    .prefetch(&ana(), thread, &wide_policy, &[note_name("k"), note_name("none")], &[])
                    .await
                    .unwrap();
                assert_eq!(prefetched.thread, memory.get_thread(&ana(), thread).await.unwrap());
                assert_eq!(prefetched.config, memory.thread_config(&ana(), thread).await.unwrap());
                let values = prefetched
                    .records
                    .iter()
                    .map(|prefetched| prefetched.as_ref().map(|prefetched| prefetched.value.as_str()));
                assert_eq!(values.collect::<Vec<_>>(), [Some("1"), None]);
                let narrow_policy = prefetched.config.limit_context(&wide_policy);
                assert_eq!(narrow_policy.window, Some(3));
                for policy in [
                    ContextPolicy::window(4),
                    ContextPolicy::window(2),
                    narrow_policy,
                    summarising_policy(20),
                    wide_policy.clone(),
                ] {
                    for is_bounded in [false, true] {
                        let prefetched = memory.prefetch(&ana(), thread, &wide_policy, &[], &[]).await.unwrap();
                        let through_seq = is_bounded.then_some(prefetched.thread.positions.seq);
                        let options = ContextOptions { through_seq, ..ContextOptions::default() };
                        let from_prefetch =
                            memory.context_of(&prefetched, Some("and now?"), &policy, &options).await.unwrap();
                        let other = env.another_process();
                        let without_prefetch =
                            other.context_with(&ana(), thread, Some("and now?"), &policy, &options).await;
                        assert_eq!(from_prefetch.assembled().context, without_prefetch.unwrap().context, "{policy:?}");
                    }
                }
                append_facts(memory, thread, 20 + turn, 1).await;
            }
        }
        let by_ben = env.memory.prefetch(&ben(), thread, &ContextPolicy::window(4), &[], &[]).await;
        assert!(by_ben.unwrap_err().is_not_found());
    })
    .await;
}

#[tokio::test]
async fn corrupt_messages_count_towards_the_window() {
    let (source, target) = (TestEnv::plain(), TestEnv::plain());
    let thread = create_thread(&source).await;
    let tenant = ana().tenant_id().clone();
    let mut dump = source.backend.maintenance.dump_thread(&tenant, thread, None, 100).await.unwrap();
    for index in [3, 9, 10] {
        let DumpEntry::Message { body, .. } = &mut dump.entries[index] else { panic!("not a message") };
        *body = "1u{\"parts\":[{\"text\":\"sec".to_owned();
    }
    target.backend.maintenance.restore_thread(&tenant, thread, dump).await.unwrap();
    let prefetched = target.memory.prefetch(&ana(), thread, &ContextPolicy::window(10), &[], &[]).await.unwrap();
    for window in 1..=10 {
        let (policy, options) = (ContextPolicy::window(window), ContextOptions::default());
        let without_prefetch = target.another_process().context(&ana(), thread, None, &policy).await.unwrap();
        let from_prefetch = target.memory.context_of(&prefetched, None, &policy, &options).await.unwrap();
        assert_eq!(
            (&from_prefetch.assembled().context, &from_prefetch.assembled().unreadable),
            (&without_prefetch.context, &without_prefetch.unreadable),
            "{window}"
        );
    }
}

/// The two calls do not include the authentication of the caller, which takes a third call.
#[tokio::test]
async fn preparing_a_turn_takes_two_calls() {
    let (probe, env) = Probe::new_env();
    let thread = create_thread(&env).await;
    let title = ThreadPatch { title: Some(Some("Trains".to_owned())), ..ThreadPatch::default() };
    env.memory.patch_thread(&ana(), thread, title, None).await.unwrap();
    for thread_cache_bytes in [0, 1 << 20] {
        let options = MemoryOptions { thread_cache_bytes, ..env.memory.options().clone() };
        // Simulate a separate process, whose cache is empty.
        let memory = env.another_process().with_options(options).unwrap();
        for cache_state in ["cold", "warm", "warm"] {
            probe.take_calls();
            let policy = ContextPolicy::window(4);
            let prefetched =
                memory.prefetch(&ana(), thread, &policy, &[note_name("k"), RecordName::driver()], &[]).await.unwrap();
            let policy = prefetched.config.limit_context(&policy);
            memory.context_of(&prefetched, Some("and now?"), &policy, &ContextOptions::default()).await.unwrap();
            memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
            let expected = [("commit", 1), ("read_thread_with_records", 1)];
            assert_eq!(probe.take_calls(), expected, "{cache_state}, with {thread_cache_bytes} bytes of cache");
        }
    }
    // With separate reads instead of a prefetch, the same turn takes six calls.
    let memory = env.another_process();
    probe.take_calls();
    memory.get_thread(&ana(), thread).await.unwrap();
    let config = memory.thread_config(&ana(), thread).await.unwrap();
    memory.find_thread_record(&ana(), thread, &note_name("k")).await.unwrap();
    memory.find_thread_record(&ana(), thread, &RecordName::driver()).await.unwrap();
    let policy = config.limit_context(&ContextPolicy::window(4));
    memory.context(&ana(), thread, Some("and now?"), &policy).await.unwrap();
    memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
    assert_eq!(probe.take_calls().iter().map(|(_, count)| count).sum::<usize>(), 6);
}

async fn read_derived_version(env: &TestEnv, thread: ThreadId) -> u64 {
    let (store, owner) = (&env.backend.store, RecordOwner::Thread(thread));
    let record = store.find_record(&ana(), &owner, &Namespace::derived(), "thread", env.memory.now()).await;
    record.unwrap().expect("a derived record exists").version
}

#[tokio::test(start_paused = true)]
async fn prefetched_data_remains_valid_after_the_instances_own_commit() {
    on_all_stores(async |env: TestEnv| {
        let thread = create_thread(&env).await;
        let (memory, other) = (&env.memory, env.another_process());
        let (policy, options) = (summarising_policy(4), ContextOptions::default());
        for round in 0..3 {
            let text = "and now?";
            let question = Some(text);
            let expected = other.context_with(&ana(), thread, question, &policy, &options).await.unwrap().context;
            assert!(expected.messages.iter().any(|message| message.plain_text().contains("Platform 1.")), "summarised");
            let prefetched = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
            let appended = memory.append(&ana(), thread, Draft::user(text)).await.unwrap();
            let prefetched = prefetched.after(appended.change.into()).expect("no other commit was made");
            let from_prefetch = memory.context_of(&prefetched, question, &policy, &options).await.unwrap();
            assert_eq!(from_prefetch.assembled().context, expected, "round {round}");

            // Derived data is stored with the change number of the instance's own commit.
            append_facts(&other, thread, 20 + 10 * round, 6).await;
            let prefetched = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
            let appended = memory.append(&ana(), thread, Draft::user(text)).await.unwrap();
            let prefetched = prefetched.after(appended.change.into()).expect("no other commit was made");
            memory.context_of(&prefetched, question, &policy, &options).await.unwrap();
            let version = read_derived_version(&env, thread).await;
            assert_eq!(version & u64::from(u32::MAX), appended.change, "round {round}");
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn prefetched_data_is_invalid_after_commits_by_other_instances() {
    on_all_stores(async |env: TestEnv| {
        let thread = create_thread(&env).await;
        let (memory, other) = (&env.memory, env.another_process());
        let policy = summarising_policy(4);
        memory.context(&ana(), thread, None, &policy).await.unwrap();
        for is_erased in [false, true] {
            let prefetched = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
            if is_erased {
                let newest = other.newest(&ana(), thread, 3).await.unwrap();
                other.erase_messages(&ana(), thread, &[newest[0].id]).await.unwrap();
            } else {
                append_facts(&other, thread, 50, 1).await;
            }
            let appended = memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
            assert!(prefetched.after(appended.change.into()).is_none(), "erased: {is_erased}");
        }
        // A write of derived data is not a commit, so the prefetched data remains valid. What is derived from it does not replace the
        // newer record.
        append_facts(&other, thread, 60, 6).await;
        let prefetched = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
        other.context(&ana(), thread, None, &policy).await.unwrap();
        let version = read_derived_version(&env, thread).await;
        let appended = memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
        let prefetched = prefetched.after(appended.change.into()).expect("no other commit was made");
        let from_prefetch =
            memory.context_of(&prefetched, Some("and now?"), &policy, &ContextOptions::default()).await.unwrap();
        assert!(!from_prefetch.assembled().context.messages.is_empty());
        assert_eq!(read_derived_version(&env, thread).await, version);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn prefetched_data_is_invalid_after_a_trim() {
    on_all_stores(async |env: TestEnv| {
        let thread = create_thread(&env).await;
        let retention = Some(Retention { max_messages: Some(5), ttl_minutes: None });
        let options = MemoryOptions { retention, ..env.memory.options().clone() };
        let memory = env.memory.with_options(options).unwrap();
        let policy = ContextPolicy::window(8);
        let prefetched = memory.prefetch(&ana(), thread, &policy, &[], &[]).await.unwrap();
        let appended = memory.append(&ana(), thread, Draft::user("and now?")).await.unwrap();
        assert!(
            memory.get_thread(&ana(), thread).await.unwrap().positions.first_seq > 1,
            "the append trims the thread"
        );
        assert!(prefetched.after(appended.change.into()).is_none());
    })
    .await;
}
