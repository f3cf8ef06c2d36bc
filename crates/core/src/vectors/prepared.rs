//! The thread to which the batches are committed, and a valid batch to which failures are added.

use uuid::Uuid;

use super::CommitVector;
use crate::{
    Batch, ChangeTag, CommitOutcome, Content, Dump, DumpEntry, DumpedCommit, DumpedThread, Fingerprint,
    IDEMPOTENCY_WINDOW_MS, IdempotencyKey, JsonText, MessageId, Namespace, NewMessage, Owner, Positions, PutRecord,
    Record, RecordName, Role, Scope, TaggedNumber, TenantId, ThreadId, Timestamp, codec,
};

/// The number of messages and tombstones in the thread.
pub(super) const ENTRIES: u64 = 7;
/// The number of messages that can be appended to the nearly full thread. Only the last failure appends more.
pub(super) const FREE_POSITIONS: u64 = 4;

pub(super) fn tenant() -> TenantId {
    TenantId::new("vectors").expect("a valid name")
}

pub(super) fn thread(number: u128) -> ThreadId {
    ThreadId(Uuid::from_u128(0x7e00 + number))
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000).expect("within the range")
}

pub(super) fn id(number: u128) -> MessageId {
    MessageId(Uuid::from_u128(0x3e00 + number))
}

pub(super) fn message(number: u128) -> NewMessage {
    NewMessage { id: id(number), external_id: None, created_at: now(), content: Content::text(Role::User, "hello") }
}

pub(super) fn record(key: &str) -> RecordName {
    RecordName { namespace: Namespace::App("vectors".to_owned()), key: key.to_owned() }
}

pub(super) fn null() -> JsonText {
    JsonText::new("null").expect("JSON")
}

/// The key of the second to last commit on the thread. That commit wrote the thread's records, and is older than the idempotency
/// window.
fn expired_key() -> IdempotencyKey {
    IdempotencyKey::FromCaller("forgotten".to_owned())
}

/// The tag of a commit that is not part of the thread's history.
pub(super) fn lost_tag() -> ChangeTag {
    ChangeTag::of(&IdempotencyKey::FromCaller("lost".to_owned()))
}

/// The key of the thread's last commit.
pub(super) fn used_key() -> IdempotencyKey {
    IdempotencyKey::FromCaller("used".to_owned())
}

/// The fingerprint of the last commit of the thread.
pub(super) fn used_fingerprint() -> Fingerprint {
    Fingerprint::of(b"used")
}

/// The version of the thread's records.
pub(super) fn version(positions: Positions) -> u64 {
    positions.change - 1
}

/// The version of the thread's records, with its tag.
pub(super) fn record_version(positions: Positions) -> TaggedNumber {
    TaggedNumber { number: version(positions), tag: Some(ChangeTag::of(&expired_key())) }
}

/// Creates a valid commit in the tenant's scope, which appends a message and writes a record. Its key was used for another request,
/// longer ago than the idempotency window.
pub(super) fn valid_commit(name: &str, positions: Positions) -> CommitVector {
    let mut batch = Batch::new(expired_key(), Fingerprint::of(name.as_bytes()));
    batch.append = vec![message(10)];
    batch.put = vec![PutRecord { name: record("written"), value: null(), expires_at: None }];
    let Positions { seq, change, .. } = positions;
    let tag = Some(ChangeTag::of(&batch.key));
    let expected_result = Ok(CommitOutcome { change: change + 1, tag, first_seq: seq + 1, count: 1, replayed: false });
    CommitVector { name: name.to_owned(), scope: Scope::Tenant(tenant()), batch, positions, expected_result }
}

/// Creates the dump of the thread: messages 1 to 4, of which 1 and 4 have external ids, then the tombstones 5 to 7; the records
/// `first`, `second` and `fourth`; an idempotency record within the window, and one outside it.
pub(super) fn dump(positions: Positions) -> Dump {
    let entry = |number: u64| {
        let (seq, id) = (positions.first_seq + number - 1, id(u128::from(number)));
        if number > 4 {
            return DumpEntry::Tombstone { seq, id, erased_at: now() };
        }
        let external_id = [1, 4].contains(&number).then(|| format!("x{number}"));
        let message = NewMessage { id, external_id, ..message(0) };
        let body = codec::encode_content(&message.content).expect("a short text");
        let checksum = Some(message.checksum(&body));
        let NewMessage { id, external_id, created_at, .. } = message;
        DumpEntry::Message { seq, id, external_id, revision: 0, created_at, body, checksum }
    };
    let TaggedNumber { number: version, tag } = record_version(positions);
    let stored_record = |key: &str| {
        let RecordName { namespace, key } = record(key);
        Record { namespace, key, value: null(), version, tag, expires_at: None }
    };
    let commit = |change, at, key, fingerprint| {
        let (first_seq, count) = (positions.seq, 1);
        DumpedCommit { change, at, key, fingerprint, first_seq, count, effects: Vec::new() }
    };
    let long_ago = now().plus_ms(-IDEMPOTENCY_WINDOW_MS);
    Dump {
        thread: Some(DumpedThread {
            owner: Owner::Tenant,
            key: None,
            body: codec::encode_thread(&codec::ThreadAttributes::default()),
            positions,
            created_at: long_ago,
            updated_at: now(),
            expires_at: None,
        }),
        records: vec![stored_record("first"), stored_record("second"), stored_record("fourth")],
        commits: vec![
            commit(positions.change - 1, long_ago, expired_key(), Fingerprint::of(b"forgotten")),
            commit(positions.change, now().plus_ms(1 - IDEMPOTENCY_WINDOW_MS), used_key(), used_fingerprint()),
        ],
        entries: (1..=ENTRIES).map(entry).collect(),
        ..Dump::default()
    }
}
