use threadkeep_core::{OpenThread, RecordOwner, RecordQuery, StoreError, ThreadOrder, ThreadQuery, WakeUp};

use super::dump_restore::thread_with_history;
use super::search::query_for;
use crate::conversation::Conversation;
use crate::fixtures::{ana, app, assert_error, at, note_write, thread_id, user_id};
use crate::run::{TestEnv, TestStore};

/// Returns all visible data of a store.
async fn visible_state(store: &TestStore, conversation: &Conversation) -> String {
    let client = &store.client;
    client.catch_up_fully().await;
    let (scope, now) = (&ana(), at(20));
    let mut found = client.search(scope, &query_for("message walrus"), now).await.expect("searching works");
    // With faults, the indexed positions are random.
    found.hits.clear();
    found.unindexed.clear();
    let records = [RecordOwner::User(user_id("ana")), RecordOwner::Thread(conversation.id)].map(RecordQuery::of);
    format!(
        "{:?}",
        (
            conversation.dump(3).await,
            conversation.thread(now).await,
            conversation.messages(now).await,
            conversation.changes(0, now).await,
            client.list_threads(scope, &ThreadQuery::new(ThreadOrder::Recent, 10), now).await.expect("reading works"),
            client.list_records(scope, &records[0], now).await.expect("reading works"),
            client.list_records(scope, &records[1], now).await.expect("reading works"),
            client.verify().await.expect("verifying works"),
            found,
        )
    )
}

// S1.40
pub(super) async fn data_survives_reopening(env: &TestEnv<'_>) {
    let store = env.open().await;
    if !env.capabilities().durable {
        return assert_not_durable(env, store).await;
    }
    let conversation = thread_with_history(&store.client).await;
    let deleted = Conversation::open(&store.client, &ana(), 2, at(8)).await;
    let ana_owner = RecordOwner::User(user_id("ana"));
    let version = store.client.write_record(&ana(), &note_write(ana_owner.clone(), "k", "1"), at(9)).await;
    let version = version.expect("writing works").version;
    let cursor = store.client.list_changed_threads(&ana(), None, 10, at(9)).await.expect("reading works").cursor;
    store.client.delete_thread(&ana(), deleted.id, at(10)).await.expect("the thread exists");
    let before = visible_state(&store, &conversation).await;
    let (scope, id) = (conversation.scope.clone(), conversation.id);
    drop((conversation, deleted));

    let store = store.reopen().await;
    let conversation = Conversation { client: store.client.clone(), scope, id };
    assert_eq!(visible_state(&store, &conversation).await, before);
    let changed = store.client.list_changed_threads(&ana(), Some(&cursor), 10, at(11)).await.expect("reading works");
    assert!(!changed.reset, "a cursor is unusable after reopening");
    assert_eq!(changed.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [thread_id(2)]);
    let open = OpenThread::new(&ana(), thread_id(2));
    assert_error!(store.client.open_thread(&ana(), &open, at(12)).await, StoreError::NotFound(_));
    assert_eq!(conversation.append(11..=12, at(13)).await.first_seq, 11);
    let written = store.client.write_record(&ana(), &note_write(ana_owner.clone(), "k", "2"), at(13)).await;
    assert!(written.expect("writing works").version > version);
    drop(conversation);

    // Data written after reopening survives as well.
    let store = store.reopen().await;
    let found = store.client.find_record(&ana(), &ana_owner, &app("notes"), "k", at(14)).await;
    assert_eq!(found.expect("reading works").map(|record| record.value.to_string()), Some("2".to_owned()));
    let conversation = Conversation { client: store.client.clone(), scope: ana(), id };
    assert_eq!(conversation.thread(at(14)).await.positions.seq, 12);
}

/// Asserts that a store that is not durable has no files and shares no data with other stores.
async fn assert_not_durable(env: &TestEnv<'_>, store: TestStore) {
    assert!(!store.has_files(), "a store that is not durable has files");
    Conversation::open(&store.client, &ana(), 1, at(0)).await;
    let other = env.open().await;
    Conversation::open(&other.client, &ana(), 1, at(0)).await;
}

pub(super) async fn wake_ups_end_when_the_store_closes(env: &TestEnv<'_>) {
    use futures::StreamExt;
    let store = env.open().await;
    let mut wake_ups = store.client.wake_ups().await.expect("subscribing works");
    Conversation::open(&store.client, &ana(), 1, at(0)).await;
    drop(store);
    let ends = async { while let Some(WakeUp::Thread { .. } | WakeUp::Unspecified) = wake_ups.next().await {} };
    let ended = env.timeout(std::time::Duration::from_secs(10), ends).await;
    ended.expect("the wake-ups end when the store is closed");
}
