use std::collections::HashSet;

use threadkeep_core::{Conflict, Content, Expected, MessageId, OpenThread, Owner, Role, StoreError, ThreadId};
use threadkeep_memory::{AppendOptions, Draft, MemoryError, UpsertOutcome};

use super::probe::{Outcome, Probe};
use super::test_env::{TestEnv, acme, ana, ben, on_all_stores};

fn with_key(key: &str) -> AppendOptions {
    AppendOptions { idempotency_key: Some(key.to_owned()), ..AppendOptions::default() }
}

fn texts(messages: &[threadkeep_core::Message]) -> Vec<String> {
    messages.iter().map(|message| message.plain_text().into_owned()).collect()
}

// S0.10, S1.01, S1.04, S3.32, S3.34, S4.20
#[tokio::test(start_paused = true)]
async fn appended_messages_are_returned_only_from_their_thread() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope) = (&env.memory, ana());
        let (thread, other_thread) = (env.open_thread().await, env.open_thread().await);
        let mut reply = Content::text(Role::Assistant, "Good service");
        reply.agent = Some("CIRCLE".to_owned());
        let appended = memory
            .append_pair(&scope, thread, Draft::user("Circle line?"), reply.clone(), &AppendOptions::default())
            .await
            .unwrap();
        assert_eq!((appended.first_seq, appended.count, appended.replayed), (1, 2, false));

        let messages = memory.newest(&scope, thread, 10).await.unwrap();
        assert_eq!(
            messages.iter().map(|message| message.id).collect::<Vec<_>>(),
            [appended.messages[0].id, appended.messages[1].id]
        );
        assert_eq!(messages[1].content, reply);
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().message_count, 2);
        assert!(memory.newest(&scope, other_thread, 10).await.unwrap().is_empty());
    })
    .await;
}

// S1.08
#[tokio::test(start_paused = true)]
async fn appending_an_empty_list_changes_nothing() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let appended = memory.append_all(&scope, thread, Vec::new(), &AppendOptions::default()).await.unwrap();
        assert_eq!((appended.count, appended.change, appended.first_seq), (0, 0, 1));
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().positions.change, 0);
    })
    .await;
}

// S0.21, S1.08
#[tokio::test(start_paused = true)]
async fn appending_to_an_unknown_thread_fails() {
    on_all_stores(async |env: TestEnv| {
        let unknown = ThreadId::from_name(b"unknown");
        for drafts in [vec![Draft::user("hello")], Vec::new()] {
            let error = env.memory.append_all(&ana(), unknown, drafts, &AppendOptions::default()).await.unwrap_err();
            assert_eq!(error.to_string(), "thread not found");
            assert!(error.is_not_found());
        }
        let error = env.memory.open_by_key(&ana(), "").await.unwrap_err();
        assert_eq!(error.to_string(), "invalid thread key: empty");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn errors_name_the_exceeded_limit() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let too_many = vec![Draft::user("x"); 1_001];
        let error = memory.append_all(&scope, thread, too_many, &AppendOptions::default()).await.unwrap_err();
        assert_eq!(error.to_string(), "messages per commit: 1001 exceeds the maximum of 1000");
        let error = memory.append(&scope, thread, Draft::user("nul \0")).await.unwrap_err();
        assert_eq!(error.to_string(), "invalid text: contains a NUL character");
        assert!(memory.newest(&scope, thread, 10).await.unwrap().is_empty());
    })
    .await;
}

// S3.46
#[tokio::test(start_paused = true)]
async fn append_pair_is_atomic() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let options = AppendOptions::default();
        let rejected = memory.append_pair(&scope, thread, Draft::user("q"), Draft::assistant("\0"), &options).await;
        assert!(rejected.is_err());
        assert!(memory.newest(&scope, thread, 10).await.unwrap().is_empty());
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().title, None);
    })
    .await;
    let (probe, env) = Probe::new_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    probe.script([Outcome::DiskFull]);
    let options = AppendOptions::default();
    assert!(memory.append_pair(&scope, thread, Draft::user("q"), Draft::assistant("a"), &options).await.is_err());
    assert!(memory.newest(&scope, thread, 10).await.unwrap().is_empty());
    memory.append_pair(&scope, thread, Draft::user("q"), Draft::assistant("a"), &options).await.unwrap();
    assert_eq!(texts(&memory.newest(&scope, thread, 10).await.unwrap()), ["q", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_is_replayed() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let drafts = || vec![Draft::user("one"), Draft::assistant("two")];
        let first = memory.append_all(&scope, thread, drafts(), &with_key("request")).await.unwrap();
        memory.append(&scope, thread, Draft::user("three")).await.unwrap();
        env.clock.advance_ms(5_000);

        let process = env.another_process();
        let repeated = process.append_all(&scope, thread, drafts(), &with_key("request")).await.unwrap();
        assert!(repeated.replayed);
        assert_eq!((repeated.change, repeated.first_seq, repeated.count), (first.change, first.first_seq, first.count));
        assert_eq!(repeated.messages, first.messages);
        assert_eq!(texts(&memory.newest(&scope, thread, 10).await.unwrap()), ["one", "two", "three"]);

        let other = memory.append_all(&scope, thread, vec![Draft::user("else")], &with_key("request")).await;
        assert_eq!(other.unwrap_err().conflict(), Some(&Conflict::IdempotencyKey));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn appending_at_an_unexpected_position_is_a_conflict() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let expecting = |seq| AppendOptions { expected: Some(Expected::Seq(seq)), ..AppendOptions::default() };
        memory.append_all(&scope, thread, vec![Draft::user("one")], &expecting(0)).await.unwrap();
        let outdated = memory.append_all(&scope, thread, vec![Draft::user("late")], &expecting(0)).await;
        assert_eq!(outdated.unwrap_err().conflict(), Some(&Conflict::Seq { expected: 0, actual: 1 }));
        // Another process does not know that the thread has a title.
        let outdated = env.another_process().append_all(&scope, thread, vec![Draft::user("late")], &expecting(0)).await;
        assert_eq!(outdated.unwrap_err().conflict(), Some(&Conflict::Seq { expected: 0, actual: 1 }));
        assert_eq!(texts(&memory.newest(&scope, thread, 10).await.unwrap()), ["one"]);
    })
    .await;
}

// S1.07, S4.21
#[tokio::test(start_paused = true)]
async fn concurrent_appends_are_complete_and_ordered() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let writers = (0..32).map(|writer| {
            let memory = env.memory.clone();
            tokio::spawn(async move {
                for message in 0..5 {
                    memory.append(&ana(), thread, Draft::user(format!("{writer}:{message}"))).await.unwrap();
                }
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        let texts = texts(&env.memory.newest(&ana(), thread, 1_000).await.unwrap());
        assert_eq!(texts.iter().collect::<HashSet<_>>().len(), 160);
        assert_eq!(texts.len(), 160);
        for writer in 0..32 {
            let texts_of_writer: Vec<_> = texts.iter().filter(|text| text.starts_with(&format!("{writer}:"))).collect();
            let expected: Vec<_> = (0..5).map(|message| format!("{writer}:{message}")).collect();
            assert_eq!(texts_of_writer, expected.iter().collect::<Vec<_>>());
        }
        // The title is set although several writers tried to set it.
        assert_eq!(env.memory.get_thread(&ana(), thread).await.unwrap().title.as_ref(), texts.first());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_lost_response_neither_loses_nor_duplicates_a_message() {
    for outcomes in [
        vec![Outcome::Rejected],
        vec![Outcome::LostRequest, Outcome::LostRequest],
        vec![Outcome::LostResponse],
        vec![Outcome::LostRequest, Outcome::LostResponse, Outcome::Rejected],
    ] {
        for options in [AppendOptions::default(), with_key("request")] {
            let (probe, env) = Probe::new_env();
            let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
            probe.script(outcomes.clone());
            let appended = memory.append_all(&scope, thread, vec![Draft::user("once")], &options).await.unwrap();
            assert!(!appended.replayed, "the caller made one request");
            let messages = memory.newest(&scope, thread, 10).await.unwrap();
            assert_eq!(messages.len(), 1);
            assert_eq!(appended.messages[0].id, messages[0].id);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_is_reported() {
    let (probe, env) = Probe::new_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    probe.script([Outcome::LostResponse].into_iter().chain([Outcome::Rejected; 7]));
    let draft = || vec![Draft::assistant("once")];
    let error = memory.append_all(&scope, thread, draft(), &with_key("request")).await.unwrap_err();
    assert!(error.maybe_applied() && error.is_retryable(), "{error}");
    let repeated = memory.append_all(&scope, thread, draft(), &with_key("request")).await.unwrap();
    assert!(repeated.replayed);
    assert_eq!(memory.newest(&scope, thread, 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn appends_to_a_titled_thread_take_one_call_each() {
    let (probe, env) = Probe::new_env();
    let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
    memory.append(&scope, thread, Draft::assistant("welcome")).await.unwrap();
    memory.append(&scope, thread, Draft::user("hello")).await.unwrap();
    probe.take_calls();
    for _ in 0..3 {
        memory.append(&scope, thread, Draft::user("and")).await.unwrap();
        memory.append(&scope, thread, Draft::assistant("so")).await.unwrap();
        memory.newest(&scope, thread, 16).await.unwrap();
    }
    assert_eq!(probe.take_calls(), [("commit", 6), ("list_messages", 3)]);
}

// S1.11
#[tokio::test(start_paused = true)]
async fn upsert_replaces_a_message_with_the_same_id() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let ids: Vec<_> = (0..3_u8).map(|number| MessageId::from_name(&[number])).collect();
        let draft = |number: usize, text: &str| Draft::user(text).with_id(ids[number]);
        memory.upsert(&scope, thread, vec![draft(0, "zero"), draft(1, "one")]).await.unwrap();
        memory.upsert(&scope, thread, vec![draft(1, "one, again"), draft(2, "two")]).await.unwrap();
        let messages = memory.newest(&scope, thread, 10).await.unwrap();
        assert_eq!(texts(&messages), ["zero", "one, again", "two"]);
        assert_eq!(messages.iter().map(|message| message.revision).collect::<Vec<_>>(), [0, 1, 0]);

        let before = memory.get_thread(&scope, thread).await.unwrap().positions;
        memory.upsert(&scope, thread, vec![draft(1, "one, again"), draft(2, "two")]).await.unwrap();
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().positions, before);

        let named = |id: &str, text: &str| Draft::user(text).with_external_id(id);
        let drafts = vec![named("x", "three"), Draft::user("four")];
        let options = AppendOptions { idempotency_key: Some("k".to_owned()), ..AppendOptions::default() };
        for replayed in [false, true] {
            let upserted = memory.upsert_with(&scope, thread, drafts.clone(), &options).await.unwrap();
            assert_eq!(upserted.replayed, replayed);
            assert_eq!(upserted.messages.iter().map(|message| message.seq).collect::<Vec<_>>(), [4, 5]);
        }
        let drafts = vec![named("y", "five"), named("x", "three, again")];
        let upserted = memory.upsert_with(&scope, thread, drafts, &AppendOptions::default()).await.unwrap();
        let outcomes: Vec<_> = upserted.messages.iter().map(|message| (message.seq, message.outcome)).collect();
        assert_eq!(outcomes, [(6, UpsertOutcome::Added), (4, UpsertOutcome::Replaced)]);

        memory.upsert(&scope, thread, vec![draft(0, "title")]).await.unwrap();
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().title.as_deref(), Some("title"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn concurrent_upserts_of_a_new_id_create_one_message() {
    on_all_stores(async |env: TestEnv| {
        let thread = env.open_thread().await;
        let id = MessageId::from_name(b"one");
        let writers = (0..4).map(|writer| {
            let memory = env.memory.clone();
            tokio::spawn(async move {
                memory.upsert(&ana(), thread, vec![Draft::assistant(format!("{writer}")).with_id(id)]).await.unwrap()
            })
        });
        futures::future::try_join_all(writers).await.unwrap();
        assert_eq!(env.memory.newest(&ana(), thread, 10).await.unwrap().len(), 1);
    })
    .await;
}

// S4.06, S4.21
#[tokio::test(start_paused = true)]
async fn users_can_only_append_to_a_shared_thread() {
    on_all_stores(async |env: TestEnv| {
        let memory = &env.memory;
        let open = OpenThread { owner: Owner::Tenant, ..OpenThread::new(&acme(), memory.generate_thread_id()) };
        let thread = memory.open_thread(&acme(), open).await.unwrap().thread.id;
        let appended = memory.append(&ana(), thread, Draft::user("from ana")).await.unwrap();
        memory.append(&ben(), thread, Draft::user("from ben")).await.unwrap();
        assert_eq!(texts(&memory.newest(&acme(), thread, 10).await.unwrap()), ["from ana", "from ben"]);
        let denied = memory.erase_messages(&ana(), thread, &[appended.messages[0].id]).await.unwrap_err();
        assert!(matches!(denied, MemoryError::Store(StoreError::Denied(_))), "{denied}");
        assert!(memory.delete_thread(&ana(), thread).await.is_err());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_batch_is_atomic() {
    use threadkeep_core::{JsonText, Namespace, PutRecord, RecordName, RecordState, ThreadPatch};
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let name = RecordName { namespace: Namespace::system("run").unwrap(), key: "journal".to_owned() };
        let put = PutRecord { name: name.clone(), value: JsonText::new("[1]").unwrap(), expires_at: None };
        let turn_batch = |key: &str| {
            let patch = ThreadPatch { metadata: Some(threadkeep_core::Map::new()), ..ThreadPatch::default() };
            let batch = memory.batch().idempotency_key(key).append(Draft::user("do it"));
            batch.require(name.clone(), RecordState::Absent).put(put.clone()).patch(patch)
        };
        let first = turn_batch("turn").commit(&scope, thread).await.unwrap();
        assert_eq!((first.count, first.replayed), (1, false));
        let repeated = turn_batch("turn").commit(&scope, thread).await.unwrap();
        assert_eq!((repeated.change, repeated.replayed), (first.change, true));
        assert!(matches!(
            turn_batch("another").commit(&scope, thread).await.unwrap_err().conflict(),
            Some(Conflict::Record { actual: Some(_), .. })
        ));
        let other = memory.batch().idempotency_key("turn").append(Draft::user("do it")).delete(name.clone());
        assert_eq!(other.commit(&scope, thread).await.unwrap_err().conflict(), Some(&Conflict::IdempotencyKey));
        assert_eq!(memory.newest(&scope, thread, 10).await.unwrap().len(), 1);
    })
    .await;
}
