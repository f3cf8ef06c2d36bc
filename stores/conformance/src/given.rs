//! The people, instants and words that the cases play with.

use threadkeep_core::{
    Batch, ChangeTag, Conflict, Content, DerivedWrite, Fingerprint, IdempotencyKey, JsonText, MessageId, Namespace,
    NewMessage, PutRecord, RecordName, RecordOwner, RecordWrite, Result, Role, Scope, StoreError, Tagged, TenantId,
    ThreadId, ThreadKey, Timestamp, UserId,
};
use uuid::Uuid;

/// More than the idempotency window, in seconds.
pub(crate) const EIGHT_DAYS: i64 = 8 * 24 * 60 * 60;

/// The instant so many seconds after the beginning of the play.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000).expect("2026 is in the range of years").plus_ms(seconds * 1000)
}

pub(crate) fn tenant(name: &str) -> TenantId {
    TenantId::new(name).expect("the cases name tenants well")
}

pub(crate) fn user_id(name: &str) -> UserId {
    UserId::new(name).expect("the cases name users well")
}

pub(crate) fn user(tenant: &str, name: &str) -> Scope {
    Scope::user(tenant, name).expect("the cases name users well")
}

/// The application of the tenant `acme`.
pub(crate) fn acme() -> Scope {
    Scope::Tenant(tenant("acme"))
}

/// A user of `acme`.
pub(crate) fn ana() -> Scope {
    user("acme", "ana")
}

/// Another user of `acme`.
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
    ThreadKey::new(key).expect("the cases name keys well")
}

/// A user's message, said `number` seconds into the play.
pub(crate) fn says(number: u128, text: &str) -> NewMessage {
    spoken(number, Content::text(Role::User, text))
}

pub(crate) fn spoken(number: u128, content: Content) -> NewMessage {
    let created_at = at(i64::try_from(number).expect("messages have small numbers"));
    NewMessage { id: message_id(number), external_id: None, created_at, content }
}

/// A batch that does nothing yet; its key also is what its fingerprint is taken from.
pub(crate) fn batch(key: &str) -> Batch {
    Batch::new(IdempotencyKey::Given(key.to_owned()), Fingerprint::of(key.as_bytes()))
}

/// A batch that appends; its key names the first and the last message and how many there are.
pub(crate) fn adds(messages: Vec<NewMessage>) -> Batch {
    let ends = [messages.first(), messages.last()].map(|message| message.map(|message| message.id));
    let key = format!("adds {ends:?} {}", messages.len());
    Batch { append: messages, ..batch(&key) }
}

/// The tag that the commit of a batch has.
pub(crate) fn tag_of(batch: &Batch) -> Option<ChangeTag> {
    Some(ChangeTag::of(&batch.key))
}

pub(crate) fn app(name: &str) -> Namespace {
    Namespace::app(name).expect("the cases name namespaces well")
}

pub(crate) fn system(name: &str) -> Namespace {
    Namespace::system(name).expect("the cases name namespaces well")
}

pub(crate) fn named(namespace: Namespace, key: &str) -> RecordName {
    RecordName { namespace, key: key.to_owned() }
}

pub(crate) fn json(text: &str) -> JsonText {
    JsonText::new(text).expect("the cases write JSON well")
}

pub(crate) fn put(namespace: Namespace, key: &str, value: &str) -> PutRecord {
    PutRecord { name: named(namespace, key), value: json(value), expires_at: None }
}

/// A write to the derived record `k` of a thread.
pub(crate) fn derives(at_change: u64, expected: Option<u64>, value: &str) -> DerivedWrite {
    let (at_change, expected) = (at_change.into(), expected.map(Tagged::from));
    DerivedWrite { key: "k".to_owned(), at_change, expected, value: json(value) }
}

/// A write to a record of a user or tenant in the namespace `app/notes`, whatever is there.
pub(crate) fn note(owner: RecordOwner, key: &str, value: &str) -> RecordWrite {
    RecordWrite {
        owner,
        namespace: app("notes"),
        key: key.to_owned(),
        expected: None,
        value: Some(json(value)),
        expires_at: None,
    }
}

/// The conflict that a call must have ended with.
pub(crate) fn conflict_of<T: std::fmt::Debug>(answer: Result<T>) -> Conflict {
    match answer {
        Err(StoreError::Conflict(conflict)) => conflict,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// As [`conflict_of`], with what is there told by number alone.
pub(crate) fn numbered_conflict_of<T: std::fmt::Debug>(answer: Result<T>) -> Conflict {
    let plain = |tagged: Tagged| Tagged::from(tagged.number);
    match conflict_of(answer) {
        Conflict::Change { expected, actual } => Conflict::Change { expected: plain(expected), actual: plain(actual) },
        Conflict::Record { namespace, key, actual } => Conflict::Record { namespace, key, actual: actual.map(plain) },
        other => other,
    }
}

/// Asserts a call's error by pattern.
macro_rules! assert_error {
    ($answer:expr, $pattern:pat $(if $guard:expr)?) => {
        match $answer {
            Err($pattern) $(if $guard)? => {}
            other => panic!("expected an error like {}, got {other:?}", stringify!($pattern $(if $guard)?)),
        }
    };
}
pub(crate) use assert_error;
