use threadkeep_core::{Message, MessageQuery, OpenThread, Owner, ThreadId};
use threadkeep_memory::{AppendOptions, Draft, MemoryOptions, Retention};

use super::probe::Probe;
use super::test_env::{TestEnv, acme, ana, on_all_stores};

fn keep_newest(max_messages: u64) -> AppendOptions {
    let retention = Some(Retention { max_messages: Some(max_messages), ttl_minutes: None });
    AppendOptions { retention, ..AppendOptions::default() }
}

fn texts_of(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.plain_text().into_owned()).collect()
}

async fn append_text(env: &TestEnv, thread: ThreadId, text: impl ToString, options: &AppendOptions) {
    env.memory.append_all(&ana(), thread, vec![Draft::user(text.to_string())], options).await.unwrap();
}

// S4.08, S4.35
#[tokio::test(start_paused = true)]
async fn a_message_beyond_the_limit_evicts_the_oldest() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        for number in 1..=20 {
            append_text(&env, thread, number, &keep_newest(20)).await;
        }
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().positions.first_seq, 1);
        append_text(&env, thread, 21, &keep_newest(20)).await;
        let found = memory.get_thread(&scope, thread).await.unwrap();
        assert_eq!((found.positions.first_seq, found.message_count), (2, 20));
        let expected: Vec<_> = (2..=21).map(|number| number.to_string()).collect();
        assert_eq!(texts_of(&memory.newest(&scope, thread, 100).await.unwrap()), expected);
        // The append and the trimming were one commit.
        assert_eq!(found.positions.change, 21);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn erased_messages_do_not_count_towards_the_limit() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        for number in 1..=4 {
            append_text(&env, thread, number, &keep_newest(4)).await;
        }
        let third = memory.newest(&scope, thread, 2).await.unwrap()[0].id;
        memory.erase_messages(&scope, thread, &[third]).await.unwrap();
        append_text(&env, thread, 5, &keep_newest(4)).await;
        assert_eq!(texts_of(&memory.newest(&scope, thread, 100).await.unwrap()), ["1", "2", "4", "5"]);
        append_text(&env, thread, 6, &keep_newest(4)).await;
        assert_eq!(texts_of(&memory.newest(&scope, thread, 100).await.unwrap()), ["2", "4", "5", "6"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn appending_more_than_the_limit_keeps_the_newest() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        append_text(&env, thread, 0, &keep_newest(3)).await;
        let drafts = (1..=5).map(|number| Draft::user(number.to_string()));
        memory.append_all(&scope, thread, drafts.collect(), &keep_newest(3)).await.unwrap();
        assert_eq!(texts_of(&memory.newest(&scope, thread, 100).await.unwrap()), ["3", "4", "5"]);
    })
    .await;
}

// S4.08, S4.21
#[tokio::test(start_paused = true)]
async fn concurrent_appends_respect_the_limit() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let writers = (0..24).map(|writer| {
            let env = env.clone();
            tokio::spawn(async move { append_text(&env, thread, writer, &keep_newest(5)).await })
        });
        futures::future::try_join_all(writers).await.unwrap();
        assert_eq!(env.memory.newest(&ana(), thread, 100).await.unwrap().len(), 5);
        assert_eq!(env.memory.get_thread(&ana(), thread).await.unwrap().positions.seq, 24);
    })
    .await;
}

// S4.32, S4.36
#[tokio::test(start_paused = true)]
async fn expired_messages_are_neither_read_nor_stored() {
    on_all_stores(async |env: TestEnv| {
        let retention = Retention { max_messages: None, ttl_minutes: Some(60) };
        let options = MemoryOptions { retention: Some(retention), ..MemoryOptions::default() };
        let env = env.with_options(options);
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let options = AppendOptions::default();
        append_text(&env, thread, "old", &options).await;
        env.clock.advance_minutes(40);
        append_text(&env, thread, "young", &options).await;
        env.clock.advance_minutes(20);
        assert_eq!(texts_of(&memory.newest(&scope, thread, 10).await.unwrap()), ["old", "young"]);
        env.clock.advance_ms(1);
        assert_eq!(texts_of(&memory.newest(&scope, thread, 10).await.unwrap()), ["young"]);
        append_text(&env, thread, "new", &options).await;
        let stored = env.backend.store.list_messages(&scope, thread, &MessageQuery::newest(10), memory.now()).await;
        assert_eq!(texts_of(&stored.unwrap().messages), ["young", "new"]);

        env.clock.advance_minutes(60);
        assert_eq!(texts_of(&memory.newest(&scope, thread, 10).await.unwrap()), ["new"]);
        env.clock.advance_ms(1);
        assert!(memory.find_thread(&scope, thread).await.unwrap().is_none());
        assert!(memory.newest(&scope, thread, 10).await.unwrap_err().is_not_found());
        let opened = memory.open_by_id(&scope, thread).await.unwrap();
        assert!(opened.created && opened.thread.message_count == 0);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_thread_can_be_trimmed_without_a_new_message() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        for number in 1..=4 {
            append_text(&env, thread, number, &AppendOptions::default()).await;
        }
        let retention = Retention { max_messages: Some(1), ttl_minutes: None };
        assert_eq!(memory.retain(&scope, thread, &retention).await.unwrap(), 4);
        let change = memory.get_thread(&scope, thread).await.unwrap().positions.change;
        assert_eq!(memory.retain(&scope, thread, &retention).await.unwrap(), 4);
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().positions.change, change);
        let zero_messages = Retention { max_messages: Some(0), ttl_minutes: None };
        assert!(memory.retain(&scope, thread, &zero_messages).await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn users_cannot_trim_a_shared_thread() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.generate_thread_id()) };
        let thread = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        for number in 1..=3 {
            append_text(&env, thread, number, &keep_newest(2)).await;
        }
        assert_eq!(memory.newest(&acme(), thread, 10).await.unwrap().len(), 3);
        memory.append_all(&acme(), thread, vec![Draft::assistant("4")], &keep_newest(2)).await.unwrap();
        assert_eq!(texts_of(&memory.newest(&acme(), thread, 10).await.unwrap()), ["3", "4"]);
    })
    .await;
}

#[tokio::test]
async fn an_append_with_a_retention_policy_takes_two_reads() {
    let (probe, env) = Probe::new_env();
    let thread = env.open_thread().await;
    for number in 1..=3 {
        append_text(&env, thread, number, &keep_newest(2)).await;
    }
    probe.take_calls();
    append_text(&env, thread, 4, &keep_newest(2)).await;
    assert_eq!(probe.take_calls(), [("commit", 1), ("find_record", 1), ("read_thread", 1)]);
}
