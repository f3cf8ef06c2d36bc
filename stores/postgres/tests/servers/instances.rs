//! Several instances on one database.

use std::time::Duration;

use futures::StreamExt;
use threadkeep_core::{Batch, ThreadOrder, ThreadQuery, UserCursor, WakeUp, WakeUps};
use threadkeep_postgres_server::{Database, Pooler, Server};
use threadkeep_store_postgres::PostgresStore;

use super::support::{ana, batch, client, message, now, open_thread, thread_id};

/// The maximum delay of a wake-up.
const TIMEOUT: Duration = Duration::from_secs(20);

fn append_batch(number: u128) -> Batch {
    Batch { append: vec![message(number, "hello")], ..batch(number) }
}

async fn expect_wake_up(wake_ups: &mut WakeUps, expected: impl Fn(&WakeUp) -> bool) {
    let waiting = async {
        while let Some(wake_up) = wake_ups.next().await {
            if expected(&wake_up) {
                return;
            }
        }
        panic!("the stream of wake-ups ended");
    };
    tokio::time::timeout(TIMEOUT, waiting).await.expect("a wake-up arrives in time");
}

async fn two_instances(parameters: &str) -> Option<(Database, PostgresStore, PostgresStore)> {
    let database = Server::shared()?.create_database().await;
    let url = format!("{}?{parameters}", database.url());
    let (one, other) = (PostgresStore::open(&url).await.unwrap(), PostgresStore::open(&url).await.unwrap());
    Some((database, one, other))
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_wakes_other_instances() {
    let Some((_database, here, there)) = two_instances("background=off").await else { return };
    let mut wake_ups = there.backend().store.wake_ups().await.unwrap();
    open_thread(&here.backend(), &ana(), 1).await;
    for number in 1..=3 {
        here.backend().store.commit(&ana(), thread_id(1), append_batch(number), now()).await.unwrap();
        expect_wake_up(
            &mut wake_ups,
            |wake_up| matches!(wake_up, WakeUp::Thread { thread, .. } if *thread == thread_id(1)),
        )
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instance_behind_a_pooler_polls_for_commits() {
    let Some((database, here, _there)) = two_instances("background=off").await else { return };
    let Some(pooler) = Pooler::start(Server::shared().unwrap()).await else { return };
    let url =
        format!("{}?prepare=off&listen=poll&poll_interval=20&background=off&migrate=off", pooler.url(database.name()));
    let pooled = PostgresStore::open(&url).await.unwrap();
    let mut wake_ups = pooled.backend().store.wake_ups().await.unwrap();
    open_thread(&here.backend(), &ana(), 1).await;
    expect_wake_up(&mut wake_ups, |wake_up| *wake_up == WakeUp::Unspecified).await;
    here.backend().store.delete_thread(&ana(), thread_id(1), now()).await.unwrap();
    expect_wake_up(&mut wake_ups, |wake_up| *wake_up == WakeUp::Unspecified).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reconnected_listener_receives_an_unspecified_wake_up() {
    let Some((database, here, there)) = two_instances("background=off").await else { return };
    let mut wake_ups = there.backend().store.wake_ups().await.unwrap();
    let client = client(&database).await;
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() \
               AND query LIKE 'LISTEN%'";
    assert_eq!(client.query(sql, &[]).await.unwrap().len(), 1);
    expect_wake_up(&mut wake_ups, |wake_up| *wake_up == WakeUp::Unspecified).await;
    open_thread(&here.backend(), &ana(), 1).await;
    expect_wake_up(
        &mut wake_ups,
        |wake_up| matches!(wake_up, WakeUp::Thread { thread, .. } if *thread == thread_id(1)),
    )
    .await;
}

// The slow transaction starts before the others and commits after them.
#[tokio::test(flavor = "multi_thread")]
async fn changed_threads_include_slow_transactions() {
    let Some((database, here, _)) = two_instances("background=off").await else { return };
    let backend = here.backend();
    for number in 1..=3 {
        open_thread(&backend, &ana(), number).await;
    }
    let client = client(&database).await;
    let slow = "BEGIN; SELECT threadkeep.enter('acme', 'user/ana'); \
                UPDATE threadkeep.stamps SET stamp = threadkeep.stamp() WHERE thread_no = \
                (SELECT no FROM threadkeep.threads WHERE id = '00000000-0000-0000-0000-000000000001')";
    let changed = async |cursor: Option<&UserCursor>, limit| {
        let changed = backend.store.list_changed_threads(&ana(), cursor, limit, now()).await.unwrap();
        assert!(!changed.reset);
        (changed.threads.iter().map(|thread| thread.id.0.as_u128()).collect::<Vec<_>>(), changed.cursor, changed.more)
    };
    let (_, cursor, _) = changed(None, 10).await;
    client.batch_execute(slow).await.unwrap();
    for number in [2, 3] {
        backend.store.commit(&ana(), thread_id(number), append_batch(number), now()).await.unwrap();
    }
    // With any page size, the slow transaction's change is listed after it commits, and no other change is listed again.
    let (threads, full_page, _) = changed(Some(&cursor), 10).await;
    assert_eq!(threads, [2, 3]);
    let (threads, single, more) = changed(Some(&cursor), 1).await;
    assert_eq!((threads, more), (vec![2], true));
    client.batch_execute("COMMIT").await.unwrap();
    assert_eq!(changed(Some(&full_page), 10).await.0, [1]);
    assert_eq!(changed(Some(&single), 10).await.0, [1, 3]);
    let (threads, last, _) = changed(Some(&cursor), 10).await;
    assert_eq!(threads, [1, 2, 3]);
    assert_eq!(changed(Some(&last), 10).await.0, Vec::<u128>::new());
}

// Data moved from another server may have stamps from transaction ids that this server has not reached.
#[tokio::test(flavor = "multi_thread")]
async fn moved_data_keeps_the_order_of_changes() {
    let Some((database, here, there)) = two_instances("background=off").await else { return };
    for number in 1..=2 {
        open_thread(&here.backend(), &ana(), number).await;
    }
    let old = here.backend().store.list_changed_threads(&ana(), None, 10, now()).await.unwrap().cursor;
    drop((here, there));
    let client = client(&database).await;
    client
        .batch_execute(
            "UPDATE threadkeep.stamps SET stamp = stamp + 1000000000; UPDATE threadkeep.marks SET value = 7 WHERE name = 'server'",
        )
        .await
        .unwrap();
    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    let cursor = backend.store.list_changed_threads(&ana(), None, 10, now()).await.unwrap().cursor;
    backend.store.commit(&ana(), thread_id(1), append_batch(1), now()).await.unwrap();
    let changed = backend.store.list_changed_threads(&ana(), Some(&cursor), 10, now()).await.unwrap();
    assert_eq!(changed.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [thread_id(1)]);
    let foreign = UserCursor(format!("elsewhere.{}", old.0.split_once('.').unwrap().1));
    assert!(backend.store.list_changed_threads(&ana(), Some(&foreign), 10, now()).await.unwrap().reset);
    let query = ThreadQuery::new(ThreadOrder::Recent, 10);
    let page = backend.store.list_threads(&ana(), &query, now()).await.unwrap();
    assert_eq!(page.threads.iter().map(|thread| thread.id).collect::<Vec<_>>(), [thread_id(1), thread_id(2)]);
}
