//! A full disk and clock jumps on the server.

use std::fmt::Write;

use threadkeep_core::{Batch, Reason, StoreError};
use threadkeep_postgres_server::Server;
use threadkeep_store_postgres::PostgresStore;
use uuid::Uuid;

use super::support::{
    TIMEOUT, ana, append_batch, batch, commit, connect, ids_in, message, now, open_thread, thread_id,
};

/// Returns a batch with incompressible text, so that a few batches fill the disk.
fn large_batch(number: u128) -> Batch {
    let noise = (0..2_000_u128).fold(String::new(), |mut text, word| {
        let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).wrapping_add(word);
        write!(text, "{:x}", Uuid::from_u128(number.wrapping_mul(number | 1)).as_simple())
            .expect("writing to a String cannot fail");
        text
    });
    Batch { append: vec![message(2 * number, &noise), message(2 * number + 1, "that was long")], ..batch(number) }
}

// S1.40
#[tokio::test(flavor = "multi_thread")]
async fn full_disk_rejects_commits_until_space_is_freed() {
    let Some(server) = Server::start_with_small_folder("20m") else { return };
    let database = server.create_database().await;
    let superuser = connect(&server.url("postgres")).await;
    let tablespace = format!("CREATE TABLESPACE small LOCATION '{}'", server.small_folder().display());
    superuser.batch_execute(&tablespace).await.unwrap();
    let move_database = format!("ALTER DATABASE {} SET TABLESPACE small", database.name());
    superuser.batch_execute(&move_database).await.unwrap();
    let client = connect(&database.url()).await;
    client
        .batch_execute("CREATE TABLE filler AS SELECT repeat('x', 1000) AS x FROM generate_series(1, 6000)")
        .await
        .unwrap();
    let backend =
        PostgresStore::open(&format!("{}?background=off&pool_size=2", database.url())).await.unwrap().backend();
    for number in 1..=5 {
        open_thread(&backend, &ana(), number).await;
    }

    let mut acknowledged = 0;
    let error = loop {
        match backend.store.commit(&ana(), thread_id(1), large_batch(acknowledged), now()).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1_000, "the disk did not become full");
    };
    assert!(acknowledged > 0);
    // The server rejected the commit, so nothing was applied, and an immediate retry would fail too.
    assert!(matches!(error, StoreError::Unavailable { reason: Reason::Full, maybe_applied: false, .. }), "{error:?}");
    assert!(!error.is_retryable());
    // Each commit of a batch gets its own error.
    let ana = ana();
    let together =
        (1..=5).map(|number| backend.store.commit(&ana, thread_id(number), large_batch(2_000 + number), now()));
    for answer in futures::future::join_all(together).await {
        let error = answer.unwrap_err();
        assert!(
            matches!(error, StoreError::Unavailable { reason: Reason::Full, maybe_applied: false, .. }),
            "{error:?}"
        );
    }
    let expected: Vec<u128> = (0..2 * acknowledged).collect();
    assert_eq!(ids_in(&backend, thread_id(1)).await, expected, "acknowledged commits differ");

    client.batch_execute("DROP TABLE filler").await.unwrap();
    backend.store.commit(&ana, thread_id(1), large_batch(acknowledged), now()).await.unwrap();
    assert_eq!(ids_in(&backend, thread_id(1)).await.len() as u128, 2 * acknowledged + 2);
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn server_clock_jumps_have_no_effect() {
    let Some(server) = Server::start_with_clock() else { return };
    let database = server.create_database().await;
    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    let client = connect(&database.url()).await;
    let clock = async || -> f64 {
        client.query_one("SELECT extract(epoch FROM clock_timestamp())::float8", &[]).await.unwrap().get(0)
    };
    open_thread(&backend, &ana(), 1).await;
    let before = clock().await;
    // A year forwards, two years back, and the correct time.
    for (round, seconds) in (0..).zip([0, 31_536_000, -31_536_000, 0]) {
        server.set_clock(seconds);
        let moved = clock().await - before;
        assert!((moved - seconds as f64).abs() < 600.0, "the clock moved by {moved} s");
        for number in 0..10 {
            let scope = ana();
            let committing = backend.store.commit(&scope, thread_id(1), append_batch(10 * round + number), now());
            let committed = tokio::time::timeout(TIMEOUT, committing).await.expect("the commit does not hang");
            assert_eq!(committed.expect("only the caller's clock is used").change as u128, 10 * round + number + 1);
        }
        let replayed = backend.store.commit(&ana(), thread_id(1), append_batch(0), now()).await.unwrap();
        assert!(replayed.replayed, "idempotency records expire by the caller's clock");
    }
    assert_eq!(commit(&backend, thread_id(1), 40).await, 0);
    assert_eq!(ids_in(&backend, thread_id(1)).await, (0..82).collect::<Vec<_>>());
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}
