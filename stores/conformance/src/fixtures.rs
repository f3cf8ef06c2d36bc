//! Scopes, timestamps, messages and batches that the cases use.

use threadkeep_core::{
    Batch, ChangeTag, Conflict, Content, DerivedWrite, Fingerprint, IdempotencyKey, JsonText, MessageId, Namespace,
    NewMessage, PutRecord, RecordName, RecordOwner, RecordWrite, Result, Role, Scope, StoreError, TaggedNumber,
    TenantId, ThreadId, ThreadKey, Timestamp, UserId,
};
use uuid::Uuid;

/// A time in seconds, longer than the idempotency window.
pub(crate) const EIGHT_DAYS: i64 = 8 * 24 * 60 * 60;

/// Returns the timestamp the given number of seconds after the start of a case.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000).expect("2026 is a valid year").plus_ms(seconds * 1000)
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("the tenant id is valid")
}

pub(crate) fn user_id(name: &str) -> UserId {
    UserId::new(name).expect("the user id is valid")
}

pub(crate) fn user(tenant: &str, name: &str) -> Scope {
    Scope::user(tenant, name).expect("the ids are valid")
}

/// Returns the scope of the tenant `acme`.
pub(crate) fn acme() -> Scope {
    Scope::Tenant(tenant("acme"))
}

/// Returns the scope of a user of `acme`.
pub(crate) fn ana() -> Scope {
    user("acme", "ana")
}

/// Returns the scope of another user of `acme`.
pub(crate) fn ben() -> Scope {
    user("acme", "ben")
}

pub(crate) fn thread_id(number: u128) -> ThreadId {
    ThreadId(Uuid::from_u128(0x7000_0000_0000_0000_0000 + number))
}

pub(crate) fn message_id(number: u128) -> MessageId {
    MessageId(Uuid::from_u128(0x3000_0000_0000_0000_0000 + number))
}

pub(crate) fn thread_key(key: &str) -> ThreadKey {
    ThreadKey::new(key).expect("the key is valid")
}

/// Returns a message of a user, created at second `number`.
pub(crate) fn user_message(number: u128, text: &str) -> NewMessage {
    message_with(number, Content::text(Role::User, text))
}

/// Returns a message with the given content, created at second `number`.
pub(crate) fn message_with(number: u128, content: Content) -> NewMessage {
    let created_at = at(i64::try_from(number).expect("the number is small"));
    NewMessage { id: message_id(number), external_id: None, created_at, content }
}

/// Returns an empty batch. The fingerprint is computed from the key.
pub(crate) fn batch(key: &str) -> Batch {
    Batch::new(IdempotencyKey::FromCaller(key.to_owned()), Fingerprint::of(key.as_bytes()))
}

/// Returns a batch that appends messages. Its key contains the first id, the last id and the number of messages.
pub(crate) fn appending(messages: Vec<NewMessage>) -> Batch {
    let ends = [messages.first(), messages.last()].map(|message| message.map(|message| message.id));
    let key = format!("append {ends:?} {}", messages.len());
    Batch { append: messages, ..batch(&key) }
}

/// Returns the tag of the change that a batch makes.
pub(crate) fn tag_of(batch: &Batch) -> Option<ChangeTag> {
    Some(ChangeTag::of(&batch.key))
}

pub(crate) fn app(name: &str) -> Namespace {
    Namespace::app(name).expect("the namespace is valid")
}

pub(crate) fn system(name: &str) -> Namespace {
    Namespace::system(name).expect("the namespace is valid")
}

pub(crate) fn record_name(namespace: Namespace, key: &str) -> RecordName {
    RecordName { namespace, key: key.to_owned() }
}

pub(crate) fn json(text: &str) -> JsonText {
    JsonText::new(text).expect("the JSON is valid")
}

pub(crate) fn put(namespace: Namespace, key: &str, value: &str) -> PutRecord {
    PutRecord { name: record_name(namespace, key), value: json(value), expires_at: None }
}

/// Returns a write of a thread's derived record `k`.
pub(crate) fn derived_write(at_change: u64, expected: Option<u64>, value: &str) -> DerivedWrite {
    let (at_change, expected) = (at_change.into(), expected.map(TaggedNumber::from));
    DerivedWrite { key: "k".to_owned(), at_change, expected, value: json(value) }
}

/// Returns an unconditional write of a user's or tenant's record in the namespace `app/notes`.
pub(crate) fn note_write(owner: RecordOwner, key: &str, value: &str) -> RecordWrite {
    RecordWrite {
        owner,
        namespace: app("notes"),
        key: key.to_owned(),
        expected: None,
        value: Some(json(value)),
        expires_at: None,
    }
}

/// Returns the conflict that a call returned. Panics on any other result.
pub(crate) fn conflict_of<T: std::fmt::Debug>(answer: Result<T>) -> Conflict {
    match answer {
        Err(StoreError::Conflict(conflict)) => conflict,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// Like [`conflict_of`], without the tags.
pub(crate) fn numbered_conflict_of<T: std::fmt::Debug>(answer: Result<T>) -> Conflict {
    let untagged = |tagged: TaggedNumber| TaggedNumber::from(tagged.number);
    match conflict_of(answer) {
        Conflict::Change { expected, actual } => {
            Conflict::Change { expected: untagged(expected), actual: untagged(actual) }
        }
        Conflict::Record { namespace, key, actual } => {
            Conflict::Record { namespace, key, actual: actual.map(untagged) }
        }
        other => other,
    }
}

/// Asserts that a call returns an error that matches a pattern.
macro_rules! assert_error {
    ($answer:expr, $pattern:pat $(if $guard:expr)?) => {
        match $answer {
            Err($pattern) $(if $guard)? => {}
            other => panic!("expected an error like {}, got {other:?}", stringify!($pattern $(if $guard)?)),
        }
    };
}
pub(crate) use assert_error;
