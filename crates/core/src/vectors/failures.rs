//! Every failure of a commit, in the order of the contract.

use super::CommitVector;
use super::prepared::{self, id, message, record};
use crate::{
    CommitOutcome, Conflict, Content, Expected, Fingerprint, Kind, MessageId, NewMessage, Positions, RecordCondition,
    RecordName, RecordState, Replacement, Result, Role, Scope, StoreError, TaggedNumber, TenantId, UserId, limits,
};

/// A failure that can be added to a commit.
pub(super) struct Failure {
    pub(super) name: &'static str,
    pub(super) part: Part,
    /// Adds the failure to a commit that may already have others.
    pub(super) apply: fn(&mut CommitVector),
    /// The result of the commit if this is its first failure.
    pub(super) expected_result: fn(Positions) -> Result<CommitOutcome>,
}

/// The part of a commit that a failure sets. Two failures can be combined unless they set the same part; entries can always be
/// combined.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Scope,
    Key,
    Expected,
    /// An entry of a list, which can have further entries.
    Entry,
}

impl Part {
    /// Whether one commit can have a failure in each of the two parts.
    pub(super) fn is_compatible_with(self, other: Self) -> bool {
        self == Self::Entry || self != other
    }
}

/// All failures, in the order in which stores check for them. Among entries of the same list, the first one determines the result.
pub(super) const FAILURES: [Failure; 22] = [
    Failure {
        name: "a message appears twice",
        part: Part::Entry,
        apply: |vector| vector.batch.erase.extend([id(90), id(90)]),
        expected_result: |_| Err(StoreError::invalid("message id", "appears twice in one commit")),
    },
    Failure {
        name: "the thread belongs to another tenant",
        part: Part::Scope,
        apply: |vector| vector.scope = Scope::Tenant(TenantId::new("stranger").expect("a valid name")),
        expected_result: |_| Err(StoreError::NotFound(Kind::Thread)),
    },
    Failure {
        name: "the caller may only append",
        part: Part::Scope,
        apply: |vector| vector.scope = Scope::User(prepared::tenant(), UserId::new("stranger").expect("a valid name")),
        expected_result: |_| Err(StoreError::Denied("changing a shared thread other than by adding messages")),
    },
    Failure {
        name: "the key was used for another request",
        part: Part::Key,
        apply: |vector| {
            vector.batch.key = prepared::used_key();
            vector.batch.fingerprint = Fingerprint::of(b"another request");
        },
        expected_result: |_| Err(Conflict::IdempotencyKey.into()),
    },
    Failure {
        name: "the batch was committed before",
        part: Part::Key,
        apply: |vector| {
            vector.batch.key = prepared::used_key();
            vector.batch.fingerprint = prepared::used_fingerprint();
        },
        expected_result: |Positions { seq, change, tag, .. }| {
            Ok(CommitOutcome { change, tag, first_seq: seq, count: 1, replayed: true })
        },
    },
    Failure {
        name: "the thread is at another message",
        part: Part::Expected,
        apply: |vector| vector.batch.expected = Some(Expected::Seq(1)),
        expected_result: |positions| Err(Conflict::Seq { expected: 1, actual: positions.seq }.into()),
    },
    Failure {
        name: "the thread is at another change",
        part: Part::Expected,
        apply: |vector| vector.batch.expected = Some(Expected::Change(1.into())),
        expected_result: |positions| Err(Conflict::Change { expected: 1.into(), actual: positions.tagged() }.into()),
    },
    Failure {
        name: "the thread is at this change number, but in another history",
        part: Part::Expected,
        apply: |vector| {
            let lost = TaggedNumber { number: vector.positions.change, tag: Some(prepared::lost_tag()) };
            vector.batch.expected = Some(Expected::Change(lost));
        },
        expected_result: |positions| {
            let expected = TaggedNumber { number: positions.change, tag: Some(prepared::lost_tag()) };
            Err(Conflict::Change { expected, actual: positions.tagged() }.into())
        },
    },
    Failure {
        name: "a record exists that must not",
        part: Part::Entry,
        apply: |vector| vector.batch.require.push(condition("first", RecordState::Absent)),
        expected_result: |positions| record_conflict("first", Some(prepared::record_version(positions))),
    },
    Failure {
        name: "a record has another version",
        part: Part::Entry,
        apply: |vector| vector.batch.require.push(condition("second", RecordState::Version(1.into()))),
        expected_result: |positions| record_conflict("second", Some(prepared::record_version(positions))),
    },
    Failure {
        name: "a record has this version number, but in another history",
        part: Part::Entry,
        apply: |vector| {
            let lost = TaggedNumber { number: prepared::version(vector.positions), tag: Some(prepared::lost_tag()) };
            vector.batch.require.push(condition("fourth", RecordState::Version(lost)));
        },
        expected_result: |positions| record_conflict("fourth", Some(prepared::record_version(positions))),
    },
    Failure {
        name: "a record does not exist",
        part: Part::Entry,
        apply: |vector| vector.batch.require.push(condition("third", RecordState::Version(1.into()))),
        expected_result: |_| record_conflict("third", None),
    },
    Failure {
        name: "a message id is taken",
        part: Part::Entry,
        apply: |vector| vector.batch.append.push(message(2)),
        expected_result: |positions| id_taken(2, positions),
    },
    Failure {
        name: "a message id belongs to a tombstone",
        part: Part::Entry,
        apply: |vector| vector.batch.append.push(message(5)),
        expected_result: |positions| id_taken(5, positions),
    },
    Failure {
        name: "an external id is taken",
        part: Part::Entry,
        apply: |vector| vector.batch.append.push(NewMessage { external_id: Some("x1".to_owned()), ..message(11) }),
        expected_result: |positions| Err(Conflict::ExternalId { seq: positions.first_seq }.into()),
    },
    Failure {
        name: "the id and the external id of a message are taken",
        part: Part::Entry,
        apply: |vector| vector.batch.append.push(NewMessage { external_id: Some("x4".to_owned()), ..message(3) }),
        expected_result: |positions| id_taken(3, positions),
    },
    Failure {
        name: "a replaced message is unknown",
        part: Part::Entry,
        apply: |vector| vector.batch.replace.push(replacement(id(91))),
        expected_result: no_message,
    },
    Failure {
        name: "a replaced message is erased",
        part: Part::Entry,
        apply: |vector| vector.batch.replace.push(replacement(id(6))),
        expected_result: no_message,
    },
    Failure {
        name: "an erased message is unknown",
        part: Part::Entry,
        apply: |vector| vector.batch.erase.push(id(92)),
        expected_result: no_message,
    },
    Failure {
        name: "an erased message was erased before",
        part: Part::Entry,
        apply: |vector| vector.batch.erase.push(id(7)),
        expected_result: no_message,
    },
    Failure {
        name: "the trim goes beyond the end",
        part: Part::Entry,
        apply: |vector| vector.batch.trim_below = Some(limits::LAST_POSITION + 9),
        expected_result: |_| Err(StoreError::invalid("trim_below", "beyond the end of the thread")),
    },
    Failure {
        name: "the positions are exhausted",
        part: Part::Entry,
        apply: |vector| {
            vector.batch.append.extend((0..u128::from(prepared::FREE_POSITIONS)).map(|number| message(30 + number)))
        },
        expected_result: |positions| {
            let max = limits::LAST_POSITION;
            let actual = (positions.seq + prepared::FREE_POSITIONS + 1).max(positions.change + 1);
            Err(StoreError::LimitExceeded { limit: "positions of a thread", max, actual })
        },
    },
];

fn condition(key: &str, state: RecordState) -> RecordCondition {
    RecordCondition { name: record(key), state }
}

fn record_conflict(key: &str, actual: Option<TaggedNumber>) -> Result<CommitOutcome> {
    let RecordName { namespace, key } = record(key);
    Err(Conflict::Record { namespace, key, actual }.into())
}

/// Messages are numbered by their order in the thread, from 1.
fn id_taken(number: u64, positions: Positions) -> Result<CommitOutcome> {
    let seq = positions.first_seq + number - 1;
    Err(Conflict::MessageId { id: id(u128::from(number)), seq }.into())
}

fn replacement(id: MessageId) -> Replacement {
    Replacement { id, content: Content::text(Role::User, "hello again") }
}

fn no_message(_: Positions) -> Result<CommitOutcome> {
    Err(StoreError::NotFound(Kind::Message))
}
