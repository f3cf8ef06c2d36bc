use futures::StreamExt;
use threadkeep_core::{Bound, Content, Message, MessageQuery, MessageRef, OrderBy, Role, Source, Timestamp};
use threadkeep_memory::{AppendOptions, Draft};

use super::test_env::{TestEnv, ana, on_all_stores, on_memory_stores};

/// Opens a thread with this many messages, whose texts are their positions.
async fn open_filled_thread(env: &TestEnv, count: usize) -> threadkeep_core::ThreadId {
    let thread = env.open_thread().await;
    let drafts = (1..=count).map(|number| {
        let role = if number % 2 == 1 { Role::User } else { Role::Assistant };
        Draft::new(Content::text(role, number.to_string()))
    });
    env.memory.append_all(&ana(), thread, drafts.collect(), &AppendOptions::default()).await.unwrap();
    thread
}

fn texts_of(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.plain_text().into_owned()).collect()
}

// S0.11, S1.02, S1.03, S1.13, S1.14, S1.16, S3.24, S3.25
#[tokio::test(start_paused = true)]
async fn newest_messages_are_returned_in_chronological_order() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope) = (&env.memory, ana());
        let thread = open_filled_thread(&env, 30).await;
        // All messages have the same timestamp, so they are returned in append order.
        let newest: Vec<_> = (15..=30).map(|number| number.to_string()).collect();
        assert_eq!(texts_of(&memory.newest(&scope, thread, 16).await.unwrap()), newest);
        assert_eq!(memory.newest(&scope, thread, 1_000).await.unwrap().len(), 30);
        let page = memory.messages(&scope, thread, &MessageQuery::newest(16)).await.unwrap();
        assert!(page.more && page.positions.seq == 30);
        assert!(memory.newest(&scope, thread, 0).await.is_err());
    })
    .await;
}

// S1.03, S1.15, S1.16
#[tokio::test(start_paused = true)]
async fn bounds_are_exclusive_and_apply_before_the_limit() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let time_at = |second: usize| -> Timestamp { format!("2026-11-21T08:00:{second:02}Z").parse().unwrap() };
        let drafts = (1..=9).map(|second| Draft::user(second.to_string()).with_created_at(time_at(second)));
        memory.append_all(&scope, thread, drafts.collect(), &AppendOptions::default()).await.unwrap();
        let read = async |before, after, limit| {
            let query = MessageQuery { before, after, ..MessageQuery::newest(limit) };
            texts_of(&memory.messages(&scope, thread, &query).await.unwrap().messages)
        };
        assert_eq!(read(Some(Bound::Time(time_at(5))), None, 2).await, ["3", "4"]);
        assert_eq!(read(None, Some(Bound::Time(time_at(7))), 10).await, ["8", "9"]);
        assert_eq!(read(Some(Bound::Seq(5)), Some(Bound::Seq(2)), 10).await, ["3", "4"]);
        assert_eq!(read(Some(Bound::Time(time_at(9))), Some(Bound::Seq(2)), 3).await, ["6", "7", "8"]);
        let roles = MessageQuery { roles: vec![Role::Assistant], ..MessageQuery::newest(10) };
        assert!(memory.messages(&scope, thread, &roles).await.unwrap().messages.is_empty());
    })
    .await;
}

// S1.14
#[tokio::test(start_paused = true)]
async fn time_order_is_stable_for_equal_timestamps() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let (earlier, later) = ("2026-11-21T08:00:00Z".parse().unwrap(), "2026-11-21T09:00:00Z".parse().unwrap());
        for (text, at) in [("c", later), ("a", earlier), ("d", later), ("b", earlier)] {
            memory.append(&scope, thread, Draft::user(text).with_created_at(at)).await.unwrap();
        }
        let query = MessageQuery { order: OrderBy::Time, ..MessageQuery::newest(10) };
        assert_eq!(texts_of(&memory.messages(&scope, thread, &query).await.unwrap().messages), ["a", "b", "c", "d"]);
        let query = MessageQuery { limit: 3, ..query };
        assert_eq!(texts_of(&memory.messages(&scope, thread, &query).await.unwrap().messages), ["b", "c", "d"]);
    })
    .await;
}

// S1.17, S1.41, S3.28, S3.30, S4.03
#[tokio::test(start_paused = true)]
async fn a_message_is_returned_unchanged_and_as_a_copy() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let mut content = Content::text(Role::Assistant, "ñ".repeat(2_000));
        content.sources.push(Source {
            kind: "tesis".to_owned(),
            id: "2024".to_owned(),
            title: Some("AMPARO".to_owned()),
            score: Some(1150.5),
            distance: Some(0.234),
            fields: threadkeep_core::Map::new(),
        });
        memory.append(&scope, thread, content.clone()).await.unwrap();
        let mut returned = memory.newest(&scope, thread, 1).await.unwrap();
        assert_eq!((&returned[0].content, returned[0].created_at), (&content, memory.now()));
        returned[0].content.parts.clear();
        assert_eq!(memory.newest(&scope, thread, 1).await.unwrap()[0].content, content);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn messages_are_found_by_position_id_or_external_id() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let draft = Draft::user("hello").with_external_id("source:1");
        let id = memory.append(&scope, thread, draft).await.unwrap().messages[0].id;
        let refs = [MessageRef::Seq(1), MessageRef::Id(id), MessageRef::External("source:1".to_owned())];
        for message_ref in refs {
            assert_eq!(memory.find_messages(&scope, thread, &[message_ref]).await.unwrap()[0].id, id);
        }
        assert!(memory.find_messages(&scope, thread, &[MessageRef::Seq(2)]).await.unwrap().is_empty());
        let too_many = vec![MessageRef::Seq(1); 1_001];
        let error = memory.find_messages(&scope, thread, &too_many).await.unwrap_err();
        assert_eq!(error.to_string(), "message references: 1001 exceeds the maximum of 1000");
    })
    .await;
}

// S0.28
#[tokio::test(start_paused = true)]
async fn a_corrupt_message_is_reported_and_the_others_are_returned() {
    use threadkeep_core::{DumpEntry, OnCorrupt, Scope, TenantId};
    // SQLite does not restore bodies that cannot be decoded, so only the in-memory store can have a corrupt message.
    on_memory_stores(async |env: TestEnv| {
        let source = TestEnv::plain();
        let thread = open_filled_thread(&source, 3).await;
        let tenant = TenantId::new("acme").unwrap();
        let mut dump = source.backend.maintenance.dump_thread(&tenant, thread, None, 100).await.unwrap();
        let broken = dump.entries.iter_mut().find_map(|entry| match entry {
            DumpEntry::Message { seq: 2, body, .. } => Some(body),
            _ => None,
        });
        *broken.unwrap() = "1a{\"parts\":".to_owned();
        env.backend.maintenance.restore_thread(&tenant, thread, dump).await.unwrap();

        let (memory, scope) = (&env.memory, Scope::User(tenant.clone(), super::test_env::user_id("ana")));
        assert!(memory.newest(&scope, thread, 10).await.unwrap_err().to_string().starts_with("stored data is corrupt"));
        let query = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(10) };
        let page = memory.messages(&scope, thread, &query).await.unwrap();
        assert_eq!(texts_of(&page.messages), ["1", "3"]);
        assert_eq!(page.corrupt.iter().map(|row| row.seq).collect::<Vec<_>>(), [2]);
        let analytics = memory.analytics(&scope, threadkeep_memory::ThreadSelection::Thread(thread)).await.unwrap();
        assert_eq!((analytics.messages, analytics.corrupt_messages), (2, 1));

        let lines: Vec<_> = memory.export(&scope, threadkeep_memory::ThreadSelection::All).collect().await;
        let errors: Vec<_> = lines.iter().filter_map(|line| line.as_ref().err()).map(ToString::to_string).collect();
        assert_eq!((lines.len(), errors.len()), (5, 1), "header, thread, two messages and an error");
        assert!(errors[0].contains(&format!("thread {thread}, position 2")), "{}", errors[0]);
    })
    .await;
}
