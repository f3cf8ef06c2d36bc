//! Failover to a replica after the permanent loss of the primary.

use std::time::Duration;

use threadkeep_core::{Backend, ChangedThreads, Reason, StoreError};
use threadkeep_postgres_server::{Database, Server, is_skipped};
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::Client;

use super::support::{TIMEOUT, ana, append_batch, commit, connect, ids_in, now, open_thread, thread_id};

const WRITERS: u128 = 8;

/// A primary and its replica.
struct Pair {
    primary: Server,
    replica: Server,
    database: Database,
    /// Connects to the server that accepts writes.
    backend: Backend,
}

async fn start_pair() -> Option<Pair> {
    if is_skipped("postgres") {
        return None;
    }
    let (primary, replica) = tokio::task::block_in_place(|| {
        let primary = Server::start(&["wal_level=replica"]);
        let replica = Server::start_replica(&primary);
        (primary, replica)
    });
    let database = primary.create_database().await;
    let url = format!("{}&background=off", primary.url_of_either(&replica, database.name()));
    let backend = PostgresStore::open(&url).await.unwrap().backend();
    for writer in 0..WRITERS {
        open_thread(&backend, &ana(), writer).await;
    }
    Some(Pair { primary, replica, database, backend })
}

impl Pair {
    /// Makes the primary acknowledge commits only after the replica has received them.
    async fn make_synchronous(&self) {
        let client = connect(&self.primary.url("postgres")).await;
        client.batch_execute("ALTER SYSTEM SET synchronous_standby_names = '*'").await.unwrap();
        client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        wait_until(&client, "SELECT count(*) > 0 FROM pg_stat_replication WHERE sync_state = 'sync'").await;
    }

    /// Waits until the replica has replayed everything.
    async fn catch_up(&self) {
        let primary = connect(&self.primary.url("postgres")).await;
        let end: String = primary.query_one("SELECT pg_current_wal_lsn()::text", &[]).await.unwrap().get(0);
        let replica = connect(&self.replica.url("postgres")).await;
        wait_until(&replica, &format!("SELECT pg_last_wal_replay_lsn() >= '{end}'::pg_lsn")).await;
    }

    /// Disconnects the replica from its primary after it has caught up.
    async fn disconnect_replica(&self) {
        self.catch_up().await;
        let primary = connect(&self.primary.url("postgres")).await;
        let replica = connect(&self.replica.url("postgres")).await;
        replica.batch_execute("ALTER SYSTEM SET primary_conninfo = ''").await.unwrap();
        replica.batch_execute("SELECT pg_reload_conf()").await.unwrap();
        wait_until(&primary, "SELECT count(*) = 0 FROM pg_stat_replication").await;
    }

    async fn fail_over(&self) {
        self.primary.kill();
        self.promote().await;
    }

    async fn promote(&self) {
        let client = connect(&self.replica.url("postgres")).await;
        let promoted: bool = client.query_one("SELECT pg_promote()", &[]).await.unwrap().get(0);
        assert!(promoted);
    }

    async fn cursor(&self) -> ChangedThreads {
        self.backend.store.list_changed_threads(&ana(), None, 10, now()).await.unwrap()
    }
}

/// Waits until a query returns true.
async fn wait_until(client: &Client, sql: &str) {
    let polling = async {
        while client.query_one(sql, &[]).await.unwrap().get::<_, Option<bool>>(0) != Some(true) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, polling).await.expect("the query returns true in time");
}

// S1.40
#[tokio::test(flavor = "multi_thread")]
async fn synchronous_replica_has_all_acknowledged_commits() {
    let Some(pair) = start_pair().await else { return };
    pair.make_synchronous().await;
    let cursor = pair.cursor().await.cursor;
    let writers = (0..WRITERS).map(|writer| {
        let backend = pair.backend.clone();
        tokio::spawn(async move {
            let mut failures = 0;
            for number in 0..40 {
                failures += commit(&backend, thread_id(writer), writer * 1_000 + number).await;
            }
            failures
        })
    });
    let writers: Vec<_> = writers.collect();
    // At this point, some commits are acknowledged, and most have not started.
    let client = connect(&pair.database.url()).await;
    wait_until(&client, "SELECT count(*) >= 60 FROM threadkeep.commits").await;
    pair.fail_over().await;
    let failures: usize = futures::future::join_all(writers).await.into_iter().map(|failures| failures.unwrap()).sum();
    assert!(failures > 0, "no commit was interrupted");
    for writer in 0..WRITERS {
        let expected: Vec<_> = (0..40).flat_map(|number| [0, 1].map(|m| 2 * (writer * 1_000 + number) + m)).collect();
        assert_eq!(ids_in(&pair.backend, thread_id(writer)).await, expected);
    }
    while !pair.backend.search.catch_up(1_000).await.unwrap().done {}
    assert_eq!(pair.backend.maintenance.verify().await.unwrap().findings, []);
    // Cursors of the former primary are reset.
    let changed = pair.backend.store.list_changed_threads(&ana(), Some(&cursor), 10, now()).await.unwrap();
    assert!(changed.reset);
}

#[tokio::test(flavor = "multi_thread")]
async fn commit_without_replica_confirmation_is_not_acknowledged() {
    let Some(pair) = start_pair().await else { return };
    commit(&pair.backend, thread_id(1), 0).await;
    let url = format!("{}?background=off&statement_timeout=5", pair.database.url());
    let impatient = PostgresStore::open(&url).await.unwrap().backend();
    pair.make_synchronous().await;
    pair.disconnect_replica().await;
    let scope = ana();
    let waiting = impatient.store.commit(&scope, thread_id(1), append_batch(1), now());
    let error = tokio::time::timeout(TIMEOUT, waiting).await.expect("the commit times out").unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { reason: Reason::Timeout, maybe_applied: true, .. }), "{error:?}");
    pair.fail_over().await;
    assert_eq!(ids_in(&pair.backend, thread_id(1)).await, [0, 1], "the replica does not have the second commit");
    commit(&pair.backend, thread_id(1), 1).await;
    assert_eq!(ids_in(&pair.backend, thread_id(1)).await, [0, 1, 2, 3]);
    assert_eq!(pair.backend.maintenance.verify().await.unwrap().findings, []);
}

// As documented in docs/stores.md, the newest commits may be lost, and all earlier ones are kept.
#[tokio::test(flavor = "multi_thread")]
async fn asynchronous_replica_loses_only_the_newest_commits() {
    let Some(pair) = start_pair().await else { return };
    for number in 0..3 {
        commit(&pair.backend, thread_id(1), number).await;
    }
    let cursor = pair.cursor().await.cursor;
    pair.disconnect_replica().await;
    for number in 3..5 {
        assert_eq!(
            commit(&pair.backend, thread_id(1), number).await,
            0,
            "the primary did not acknowledge a commit without its replica"
        );
    }
    pair.fail_over().await;
    assert_eq!(ids_in(&pair.backend, thread_id(1)).await, (0..6).collect::<Vec<_>>());
    // Repeating the lost commits stores each of them once.
    for number in 2..5 {
        commit(&pair.backend, thread_id(1), number).await;
    }
    assert_eq!(ids_in(&pair.backend, thread_id(1)).await, (0..10).collect::<Vec<_>>());
    let changed = pair.backend.store.list_changed_threads(&ana(), Some(&cursor), 10, now()).await.unwrap();
    assert!(changed.reset, "a cursor of the former primary was accepted");
    assert_eq!(pair.backend.maintenance.verify().await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_replica_rejects_commits() {
    let Some(pair) = start_pair().await else { return };
    commit(&pair.backend, thread_id(1), 0).await;
    pair.catch_up().await;
    let url = format!("{}?migrate=off&background=off", pair.replica.url(pair.database.name()));
    let replica = PostgresStore::open(&url).await.unwrap().backend();
    assert_eq!(ids_in(&replica, thread_id(1)).await, [0, 1]);
    let error = replica.store.commit(&ana(), thread_id(1), append_batch(1), now()).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Unavailable { reason: Reason::ReadOnly, maybe_applied: false, .. }),
        "{error:?}"
    );
}
