use threadkeep_core::{
    Backend, Batch, Content, Fingerprint, IdempotencyKey, MessageId, NewMessage, OpenThread, Role, Scope, ThreadId,
    Timestamp,
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
    Batch::new(IdempotencyKey::Minted(Uuid::from_u128(number)), Fingerprint([0; 8]))
}

pub(crate) fn said(number: u128, text: &str) -> NewMessage {
    let content = Content::text(Role::User, text);
    NewMessage { id: message_id(number), external_id: None, content, created_at: now() }
}

pub(crate) async fn open_thread(backend: &Backend, scope: &Scope, number: u128) -> bool {
    backend.store.open_thread(scope, OpenThread::new(scope, thread_id(number)), now()).await.unwrap().created
}

/// A connection past the store, as whoever owns the server.
pub(crate) async fn client(database: &Database) -> Client {
    connect(&database.url()).await
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
