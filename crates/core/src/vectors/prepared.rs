//! The thread that the vectors are committed to, and the batch that failures are added to.

use uuid::Uuid;

use super::CommitVector;
use crate::{
    Batch, ChangeTag, CommitOutcome, Content, Dump, DumpEntry, DumpedCommit, DumpedThread, Fingerprint,
    IDEMPOTENCY_WINDOW_MS, IdempotencyKey, JsonText, MessageId, Namespace, NewMessage, Owner, Positions, PutRecord,
    Record, RecordName, Role, Scope, Tagged, TenantId, ThreadId, Timestamp, codec,
};

/// How many messages and tombstones the thread holds.
pub(super) const ENTRIES: u64 = 7;
/// How many messages may be appended to the thread that is nearly full: more than any failure but the last appends.
pub(super) const FREE: u64 = 4;

pub(super) fn tenant() -> TenantId {
    TenantId::new("vectors").expect("a good name")
}

pub(super) fn thread(number: u128) -> ThreadId {
    ThreadId(Uuid::from_u128(0x7e00 + number))
}

pub(super) fn now() -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000).expect("in the range of years")
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

/// The key of the thread's last commit but one, which wrote its records.
fn forgotten() -> IdempotencyKey {
    IdempotencyKey::Given("forgotten".to_owned())
}

/// The tag of a commit that the thread does not have.
pub(super) fn lost_tag() -> ChangeTag {
    ChangeTag::of(&IdempotencyKey::Given("lost".to_owned()))
}

/// The key of the thread's last commit.
pub(super) fn used_key() -> IdempotencyKey {
    IdempotencyKey::Given("used".to_owned())
}

/// What its last commit was.
pub(super) fn used_fingerprint() -> Fingerprint {
    Fingerprint::of(b"used")
}

/// The version of the thread's records.
pub(super) fn version(positions: Positions) -> u64 {
    positions.change - 1
}

/// The same with its tag.
pub(super) fn kept_version(positions: Positions) -> Tagged {
    Tagged { number: version(positions), tag: Some(ChangeTag::of(&forgotten())) }
}

/// A batch of the tenant's own that appends a message and writes a record, under a key that was used for something else
/// longer ago than is remembered.
pub(super) fn plain(name: &str, positions: Positions) -> CommitVector {
    let mut batch = Batch::new(forgotten(), Fingerprint::of(name.as_bytes()));
    batch.append = vec![message(10)];
    batch.put = vec![PutRecord { name: record("written"), value: null(), expires_at: None }];
    let Positions { seq, change, .. } = positions;
    let tag = Some(ChangeTag::of(&batch.key));
    let answer = Ok(CommitOutcome { change: change + 1, tag, first_seq: seq + 1, count: 1, replayed: false });
    CommitVector { name: name.to_owned(), scope: Scope::Tenant(tenant()), batch, positions, answer }
}

/// Messages 1 to 4, of which 1 and 4 have external ids, then the tombstones 5 to 7; the records `first`, `second` and `fourth`; the
/// record of a commit that counts, and one that is forgotten.
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
    let Tagged { number: version, tag } = kept_version(positions);
    let kept = |key: &str| {
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
        records: vec![kept("first"), kept("second"), kept("fourth")],
        commits: vec![
            commit(positions.change - 1, long_ago, forgotten(), Fingerprint::of(b"forgotten")),
            commit(positions.change, now().plus_ms(1 - IDEMPOTENCY_WINDOW_MS), used_key(), used_fingerprint()),
        ],
        entries: (1..=ENTRIES).map(entry).collect(),
        ..Dump::default()
    }
}
