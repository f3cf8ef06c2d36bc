//! The server has no room left, and its clock jumps.

use std::fmt::Write;

use threadkeep_core::{Batch, Reason, StoreError};
use threadkeep_postgres_server::Server;
use threadkeep_store_postgres::PostgresStore;
use uuid::Uuid;

use super::support::{TIMEOUT, ana, batch, commit, connect, ids_in, now, open_thread, said, says, thread_id};

/// A message that cannot be made smaller, so that a few of them fill a disk.
fn says_much(number: u128) -> Batch {
    let noise = (0..2_000_u128).fold(String::new(), |mut text, word| {
        let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835).wrapping_add(word);
        write!(text, "{:x}", Uuid::from_u128(number.wrapping_mul(number | 1)).as_simple()).expect("text takes text");
        text
    });
    Batch { append: vec![said(2 * number, &noise), said(2 * number + 1, "that was long")], ..batch(number) }
}

// S1.40
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_and_room_is_enough_to_go_on() {
    let Some(server) = Server::start_with_small_folder("20m") else { return };
    let database = server.create_database().await;
    let owner = connect(&server.url("postgres")).await;
    let tablespace = format!("CREATE TABLESPACE small LOCATION '{}'", server.small_folder().display());
    owner.batch_execute(&tablespace).await.unwrap();
    let moving = format!("ALTER DATABASE {} SET TABLESPACE small", database.name());
    owner.batch_execute(&moving).await.unwrap();
    let client = connect(&database.url()).await;
    client
        .batch_execute("CREATE TABLE room AS SELECT repeat('x', 1000) AS x FROM generate_series(1, 6000)")
        .await
        .unwrap();
    let backend =
        PostgresStore::open(&format!("{}?background=off&pool_size=2", database.url())).await.unwrap().backend();
    for number in 1..=5 {
        open_thread(&backend, &ana(), number).await;
    }

    let mut acknowledged = 0;
    let refused = loop {
        match backend.store.commit(&ana(), thread_id(1), says_much(acknowledged), now()).await {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
        assert!(acknowledged < 1_000, "the disk is never full");
    };
    assert!(acknowledged > 0);
    // The server says that it was refused: nothing of it is there, and trying again at once is of no use.
    assert!(
        matches!(refused, StoreError::Unavailable { reason: Reason::Full, maybe_applied: false, .. }),
        "{refused:?}"
    );
    assert!(!refused.is_retryable());
    // Sharing a transaction, each gets an answer of its own.
    let ana = ana();
    let together =
        (1..=5).map(|number| backend.store.commit(&ana, thread_id(number), says_much(2_000 + number), now()));
    for answer in futures::future::join_all(together).await {
        let error = answer.unwrap_err();
        assert!(
            matches!(error, StoreError::Unavailable { reason: Reason::Full, maybe_applied: false, .. }),
            "{error:?}"
        );
    }
    let expected: Vec<u128> = (0..2 * acknowledged).collect();
    assert_eq!(ids_in(&backend, thread_id(1)).await, expected, "what was acknowledged can be read");

    client.batch_execute("DROP TABLE room").await.unwrap();
    backend.store.commit(&ana, thread_id(1), says_much(acknowledged), now()).await.unwrap();
    assert_eq!(ids_in(&backend, thread_id(1)).await.len() as u128, 2 * acknowledged + 2);
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_jump_of_the_servers_clock_is_not_noticed() {
    let Some(server) = Server::start_with_clock() else { return };
    let database = server.create_database().await;
    let backend = PostgresStore::open(&database.url()).await.unwrap().backend();
    let client = connect(&database.url()).await;
    let clock = async || -> f64 {
        client.query_one("SELECT extract(epoch FROM clock_timestamp())::float8", &[]).await.unwrap().get(0)
    };
    open_thread(&backend, &ana(), 1).await;
    let before = clock().await;
    // A year on, two years back, and as it was.
    for (place, seconds) in (0..).zip([0, 31_536_000, -31_536_000, 0]) {
        server.set_clock(seconds);
        let moved = clock().await - before;
        assert!((moved - seconds as f64).abs() < 600.0, "the clock moved by {moved} s");
        for number in 0..10 {
            let scope = ana();
            let committing = backend.store.commit(&scope, thread_id(1), says(10 * place + number), now());
            let committed = tokio::time::timeout(TIMEOUT, committing).await.expect("a bounded wait");
            assert_eq!(committed.expect("no clock but the caller's counts").change as u128, 10 * place + number + 1);
        }
        let replayed = backend.store.commit(&ana(), thread_id(1), says(0), now()).await.unwrap();
        assert!(replayed.replayed, "what was done is remembered by the caller's clock");
    }
    assert_eq!(commit(&backend, thread_id(1), 40).await, 0);
    assert_eq!(ids_in(&backend, thread_id(1)).await, (0..82).collect::<Vec<_>>());
    assert_eq!(backend.maintenance.verify().await.unwrap().findings, []);
}
