//! Helpers for the tests in this folder.

use std::time::Duration;

use threadkeep_core::{
    Backend, Batch, Content, DumpEntry, Fingerprint, IdempotencyKey, MessageId, NewMessage, OpenThread, Role, Scope,
    ThreadId, Timestamp,
};
use threadkeep_postgres_server::Database;
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

pub(crate) fn now() -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000).unwrap()
}

pub(crate) fn ana() -> Scope {
    Scope::user("acme", "ana").unwrap()
}

pub(crate) fn thread_id(number: u128) -> ThreadId {
    ThreadId(Uuid::from_u128(number))
}

pub(crate) fn message_id(number: u128) -> MessageId {
    MessageId(Uuid::from_u128(number))
}

pub(crate) fn batch(number: u128) -> Batch {
    Batch::new(IdempotencyKey::Generated(Uuid::from_u128(number)), Fingerprint([0; 8]))
}

pub(crate) fn message(number: u128, text: &str) -> NewMessage {
    let content = Content::text(Role::User, text);
    NewMessage { id: message_id(number), external_id: None, content, created_at: now() }
}

pub(crate) async fn open_thread(backend: &Backend, scope: &Scope, number: u128) -> bool {
    backend.store.open_thread(scope, OpenThread::new(scope, thread_id(number)), now()).await.unwrap().created
}

/// Opens a connection as superuser, without the store.
pub(crate) async fn client(database: &Database) -> Client {
    connect(&database.url()).await
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// The maximum time for which a single fault may delay a caller, with a margin.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn append_batch(number: u128) -> Batch {
    Batch { append: vec![message(2 * number, "hello"), message(2 * number + 1, "hello")], ..batch(number) }
}

/// Commits two messages as the crate `memory` does: retries with the same key until the outcome is known. Returns the number of
/// failed attempts.
pub(crate) async fn commit(backend: &Backend, thread: ThreadId, number: u128) -> usize {
    let committing = async {
        let mut failures = 0;
        loop {
            match backend.store.commit(&ana(), thread, append_batch(number), now()).await {
                Ok(outcome) => {
                    assert_eq!(outcome.count, 2);
                    return failures;
                }
                Err(error) if error.is_retryable() || error.maybe_applied() => failures += 1,
                Err(error) => panic!("not retryable: {error:?}"),
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, committing).await.expect("the commit succeeds in time")
}

pub(crate) async fn ids_in(backend: &Backend, thread: ThreadId) -> Vec<u128> {
    let dump = backend.maintenance.dump_thread(ana().tenant_id(), thread, None, 1_000).await.unwrap();
    assert_eq!(dump.next, None);
    let id = |entry: &DumpEntry| match entry {
        DumpEntry::Message { id, .. } | DumpEntry::Tombstone { id, .. } => id.0.as_u128(),
        DumpEntry::Lost { seq, .. } => panic!("position {seq} is lost"),
    };
    dump.entries.iter().map(id).collect()
}
