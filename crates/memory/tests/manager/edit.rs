use threadkeep_core::{Conflict, Content, Expected, MessageId, Role};
use threadkeep_memory::{Draft, MemoryError};

use super::test_env::{TestEnv, ana, ben, on_all_stores};

#[tokio::test(start_paused = true)]
async fn erasing_a_message_updates_the_title_derived_from_it() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let read_title = async || memory.get_thread(&scope, thread).await.unwrap().title;
        let mut ids = Vec::new();
        for text in ["my secret", "more", "most"] {
            ids.push(memory.append(&scope, thread, Draft::user(text)).await.unwrap().messages[0].id);
        }
        assert_eq!(read_title().await.as_deref(), Some("my secret"));
        let change = memory.erase_messages(&scope, thread, &ids[..1]).await.unwrap();
        let found = memory.get_thread(&scope, thread).await.unwrap();
        assert_eq!((found.title.as_deref(), found.positions.tagged()), (Some("more"), change));
        assert_eq!(found.message_count, 2);

        // Erasing another message does not change the title.
        memory.erase_messages(&scope, thread, &ids[2..]).await.unwrap();
        assert_eq!(read_title().await.as_deref(), Some("more"));
        memory.erase_messages(&scope, thread, &ids[1..2]).await.unwrap();
        assert_eq!(read_title().await, None);
        assert!(memory.newest(&scope, thread, 10).await.unwrap().is_empty());

        // An empty thread gets its title from the next message.
        memory.append(&scope, thread, Draft::user("again")).await.unwrap();
        assert_eq!(read_title().await.as_deref(), Some("again"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn replacing_a_message_keeps_its_position_and_updates_the_title() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let appended = memory.append(&scope, thread, Draft::user("typo")).await.unwrap();
        memory.append(&scope, thread, Draft::assistant("what?")).await.unwrap();
        let before = memory.newest(&scope, thread, 10).await.unwrap();
        let id = appended.messages[0].id;
        let content = Content::text(Role::User, "no typo");
        memory.replace_message(&scope, thread, id, content.clone(), None).await.unwrap();
        let after = memory.newest(&scope, thread, 10).await.unwrap();
        assert_eq!((after[0].seq, after[0].id, after[0].created_at), (1, id, before[0].created_at));
        assert_eq!((&after[0].content, after[0].revision, &after[1]), (&content, 1, &before[1]));
        assert_eq!(memory.get_thread(&scope, thread).await.unwrap().title.as_deref(), Some("no typo"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rejected_edits_report_the_reason() {
    on_all_stores(async |env: TestEnv| {
        let (memory, scope, thread) = (&env.memory, ana(), env.open_thread().await);
        let id = memory.append(&scope, thread, Draft::user("one")).await.unwrap().messages[0].id;
        let content = || Content::text(Role::User, "two");
        let unknown = MessageId::from_name(b"unknown");
        let error = memory.replace_message(&scope, thread, unknown, content(), None).await.unwrap_err();
        assert_eq!(error.to_string(), "message not found");
        let stale = Some(Expected::Change(0.into()));
        let error = memory.replace_message(&scope, thread, id, content(), stale).await.unwrap_err();
        let actual = memory.get_thread(&scope, thread).await.unwrap().positions.tagged();
        assert_eq!(error.conflict(), Some(&Conflict::Change { expected: 0.into(), actual }));
        for (scope, thread) in [(ben(), thread), (scope.clone(), threadkeep_core::ThreadId::from_name(b"none"))] {
            let error = memory.erase_messages(&scope, thread, &[id]).await.unwrap_err();
            assert_eq!(error.to_string(), "thread not found");
            assert!(matches!(error, MemoryError::Store(_)) && !error.is_retryable());
        }
        assert_eq!(memory.newest(&scope, thread, 10).await.unwrap()[0].plain_text(), "one");
    })
    .await;
}
