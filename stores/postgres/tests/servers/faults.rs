//! Server crashes, lost connections and slow statements: acknowledged commits are stored exactly once, and callers get a typed
//! error in bounded time.

use std::time::Duration;

use threadkeep_core::{Backend, Reason, StoreError, StoreExt, ThreadOrder, ThreadQuery, ThreadRef};
use threadkeep_postgres_server::{Cut, Database, Pooler, Proxy, Server, is_skipped};
use threadkeep_store_postgres::PostgresStore;

use super::support::{TIMEOUT, ana, append_batch, client, commit, ids_in, now, open_thread, thread_id};

// S1.40
#[tokio::test(flavor = "multi_thread")]
async fn killed_server_keeps_acknowledged_commits() {
    if is_skipped("postgres") {
        return;
    }
    // Test servers run without fsync by default.
    let server = Server::start(&["fsync=on", "full_page_writes=on"]);
    let database = server.create_database().await;
    let url = format!("{}?statement_timeout=5&connect_timeout=2", database.url());
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    for writer in 0..16 {
        open_thread(&backend, &ana(), writer).await;
    }
    let writers = (0..16_u128).map(|writer| {
        let backend = backend.clone();
        tokio::spawn(async move {
            let mut failures = 0;
            for number in 0..40 {
                failures += commit(&backend, thread_id(writer), writer * 1_000 + number).await;
            }
            failures
        })
    });
    let writers: Vec<_> = writers.collect();
    for _ in 0..3 {
        let before = count_commits(&backend).await;
        // Kills the server while commits are running.
        while count_commits(&backend).await < before + 60 && !writers.iter().all(tokio::task::JoinHandle::is_finished) {
            tokio::task::yield_now().await;
        }
        server.kill();
        let server = &server;
        tokio::task::block_in_place(move || server.restart());
    }
    let mut failures = 0;
    for writer in futures::future::join_all(writers).await {
        failures += writer.unwrap();
    }
    assert!(failures > 0, "no commit was interrupted");
    for writer in 0..16_u128 {
        let expected: Vec<_> = (0..40).flat_map(|number| [0, 1].map(|m| 2 * (writer * 1_000 + number) + m)).collect();
        assert_eq!(ids_in(&backend, thread_id(writer)).await, expected);
    }
    while !backend.search.catch_up(1_000).await.unwrap().done {}
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

async fn count_commits(backend: &Backend) -> u64 {
    let query = ThreadQuery::new(ThreadOrder::Created, 100);
    let reading = async {
        loop {
            if let Ok(page) = backend.store.list_threads(&ana(), &query, now()).await {
                return page.threads.iter().map(|thread| thread.positions.change).sum();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, reading).await.expect("the server restarts in time")
}

async fn open_on_shared_server(parameters: &str) -> Option<(&'static Server, Database, Backend)> {
    let server = Server::shared()?;
    let database = server.create_database().await;
    let url = format!("{}?background=off{parameters}", database.url());
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    Some((server, database, backend))
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_is_applied_once_after_a_lost_connection() {
    let Some((server, database, direct)) = open_on_shared_server("").await else { return };
    open_thread(&direct, &ana(), 1).await;
    let proxy = Proxy::start(server).await;
    let url = format!("{}?background=off&listen=off&pool_size=1&sslmode=disable", proxy.url(database.name()));
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    commit(&backend, thread_id(1), 0).await;
    for (number, cut) in (1..).zip([Cut::BeforeRequest, Cut::InRequest, Cut::BeforeReply].repeat(3)) {
        // Establishes the connection and prepares the statement, so that the next request is the commit itself.
        commit(&backend, thread_id(1), number - 1).await;
        proxy.cut(cut);
        let error = backend.store.commit(&ana(), thread_id(1), append_batch(number), now()).await.unwrap_err();
        assert!(proxy.has_cut());
        assert!(error.maybe_applied() && error.is_retryable(), "{cut:?}: {error:?}");
        let was_applied = ids_in(&direct, thread_id(1)).await.contains(&(2 * number));
        // The commit was applied only if its whole request arrived, so the server sent a reply.
        assert_eq!(was_applied, cut == Cut::BeforeReply, "{cut:?}");
        let outcome = backend.store.commit(&ana(), thread_id(1), append_batch(number), now()).await.unwrap();
        assert_eq!((outcome.replayed, outcome.change), (was_applied, number as u64 + 1));
        proxy.cut(cut);
        let read = backend.store.find_thread(&ana(), &ThreadRef::Id(thread_id(1)), now()).await;
        assert!(read.is_err_and(|error| error.is_retryable() && !error.maybe_applied()), "a read changes nothing");
    }
    assert_eq!(ids_in(&direct, thread_id(1)).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_statement_is_cancelled() {
    let Some((_server, database, backend)) = open_on_shared_server("&statement_timeout=1").await else { return };
    open_thread(&backend, &ana(), 1).await;
    open_thread(&backend, &ana(), 2).await;
    let client = client(&database).await;
    client
        .batch_execute(
            "BEGIN; SELECT 1 FROM threadkeep.threads WHERE id = '00000000-0000-0000-0000-000000000001' FOR UPDATE",
        )
        .await
        .unwrap();
    let result =
        tokio::time::timeout(TIMEOUT, backend.store.commit(&ana(), thread_id(1), append_batch(1), now())).await;
    let error = result.expect("the statement times out").unwrap_err();
    // The server reports that it cancelled the statement, so nothing was applied.
    assert!(
        matches!(error, StoreError::Unavailable { reason: Reason::Timeout, maybe_applied: false, .. }),
        "{error:?}"
    );
    backend.store.commit(&ana(), thread_id(2), append_batch(2), now()).await.unwrap();
    client.batch_execute("ROLLBACK").await.unwrap();
    commit(&backend, thread_id(1), 1).await;
    assert_eq!(ids_in(&backend, thread_id(1)).await, [2, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_reconnects_to_a_restarted_pooler() {
    let Some((server, database, direct)) = open_on_shared_server("").await else { return };
    let Some(pooler) = Pooler::start(server).await else { return };
    let url = format!("{}?prepare=off&listen=off&background=off", pooler.url(database.name()));
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    open_thread(&backend, &ana(), 1).await;
    for number in 0..3 {
        commit(&backend, thread_id(1), number).await;
        pooler.restart().await;
    }
    commit(&backend, thread_id(1), 3).await;
    assert_eq!(ids_in(&direct, thread_id(1)).await, (0..8).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn commits_wait_for_a_free_connection() {
    let Some((_server, _database, backend)) = open_on_shared_server("&pool_size=1").await else { return };
    open_thread(&backend, &ana(), 1).await;
    let commits = (0..40).map(|number| {
        let backend = backend.clone();
        tokio::spawn(async move { commit(&backend, thread_id(1), number).await })
    });
    for committed in futures::future::join_all(commits).await {
        assert_eq!(committed.unwrap(), 0);
    }
    assert_eq!(ids_in(&backend, thread_id(1)).await.len(), 80);
}
