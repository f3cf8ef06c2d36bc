//! Snapshots use one connection, regardless of the server's timeouts, directly and through a pooler.

use std::error::Error as _;
use std::time::Duration;

use threadkeep_core::{ChunkSize, Reason, StoreError};
use threadkeep_postgres_server::{Database, Pooler, Server};
use threadkeep_store_postgres::PostgresStore;
use tokio_postgres::Client;

use super::support::{TIMEOUT, ana, client, commit, now, open_thread, thread_id};

const LARGE: ChunkSize = ChunkSize { entries: 1_000, bytes: 1_000_000 };

/// Counts the connections that are idle in a transaction.
async fn idle_transactions(client: &Client, database: &Database) -> i64 {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND state = 'idle in transaction'";
    client.query_one(sql, &[&database.name()]).await.unwrap().get(0)
}

async fn wait_until_none_idle(client: &Client, database: &Database) {
    let waiting = async {
        while idle_transactions(client, database).await > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.expect("a dropped snapshot frees its connection");
}

#[tokio::test]
async fn snapshot_outlives_the_idle_timeout() {
    let Some(server) = Server::shared() else { return };
    let Some(pooler) = Pooler::start(server).await else { return };
    let database = server.create_database().await;
    let direct = format!("{}?background=off&pool_size=2", database.url());
    drop(PostgresStore::open(&direct).await.unwrap());
    let client = client(&database).await;
    let idle_timeout = "SET idle_in_transaction_session_timeout = '100ms'";
    client.batch_execute(&format!("ALTER DATABASE {} {idle_timeout}", database.name())).await.unwrap();
    // Without a direct URL everything goes through the pooler.
    let pooled = format!("{}?background=off&pool_size=2&prepare=off&listen=off", pooler.url(database.name()));
    for (number, url) in [(1, direct), (2, pooled)] {
        let backend = PostgresStore::open(&url).await.unwrap().backend();
        open_thread(&backend, &ana(), number).await;
        commit(&backend, thread_id(number), number).await;
        let snapshot = backend.maintenance.snapshot(now()).await.unwrap();
        for later in 1..=20 {
            commit(&backend, thread_id(number), 100 * number + later).await;
        }
        // Longer than the idle timeout.
        tokio::time::sleep(Duration::from_millis(500)).await;
        let listed = snapshot.list_threads(None, 10).await.unwrap();
        let last = listed.last().unwrap();
        assert_eq!((last.thread.id, last.thread.message_count), (thread_id(number), 2));
        let dumps = snapshot.dump_threads(&[last.number], None, LARGE).await.unwrap();
        assert_eq!((dumps[0].entries.len(), dumps[0].commits.len()), (2, 1));
        assert_eq!(idle_transactions(&client, &database).await, 1);
        drop(snapshot);
        wait_until_none_idle(&client, &database).await;
    }
}

#[tokio::test]
async fn reading_an_ended_snapshot_fails() {
    let Some(server) = Server::shared() else { return };
    let database = server.create_database().await;
    let backend = PostgresStore::open(&format!("{}?background=off", database.url())).await.unwrap().backend();
    open_thread(&backend, &ana(), 1).await;
    let snapshot = backend.maintenance.snapshot(now()).await.unwrap();
    let client = client(&database).await;
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
               WHERE datname = $1 AND state = 'idle in transaction'";
    assert_eq!(client.query(sql, &[&database.name()]).await.unwrap().len(), 1);
    wait_until_none_idle(&client, &database).await;
    let error = snapshot.list_threads(None, 10).await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { reason: Reason::Closed, .. }), "{error:?}");
    assert!(!error.is_retryable());
    let cause = error.source().unwrap().to_string();
    assert!(cause.contains("transaction_timeout") && cause.contains("query_timeout"), "{cause}");
    // The store itself still works.
    assert_eq!(backend.maintenance.snapshot(now()).await.unwrap().totals().await.unwrap().threads, 1);
}
