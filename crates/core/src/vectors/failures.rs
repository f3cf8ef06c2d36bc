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
    /// Adds the failure to a commit, after those that it already has.
    pub(super) apply: fn(&mut CommitVector),
    /// The result of the commit if this is its first failure.
    pub(super) answer: fn(Positions) -> Result<CommitOutcome>,
}

/// The part of a commit that a failure sets. Two failures can be combined unless they set the same part.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Scope,
    Key,
    Expected,
    /// An entry of a list, which can have further entries.
    Entry,
}

impl Part {
    /// Whether one commit can have both.
    pub(super) fn is_compatible_with(self, other: Self) -> bool {
        self == Self::Entry || self != other
    }
}

/// In the order in which they are checked. Among entries of the same list, the first determines the result.
pub(super) const FAILURES: [Failure; 22] = [
    Failure {
        name: "a message appears twice",
        part: Part::Entry,
        apply: |it| it.batch.erase.extend([id(90), id(90)]),
        answer: |_| Err(StoreError::invalid("message id", "appears twice in one commit")),
    },
    Failure {
        name: "the thread belongs to another tenant",
        part: Part::Scope,
        apply: |it| it.scope = Scope::Tenant(TenantId::new("stranger").expect("a valid name")),
        answer: |_| Err(StoreError::NotFound(Kind::Thread)),
    },
    Failure {
        name: "the caller may only append",
        part: Part::Scope,
        apply: |it| it.scope = Scope::User(prepared::tenant(), UserId::new("stranger").expect("a valid name")),
        answer: |_| Err(StoreError::Denied("changing a shared thread other than by adding messages")),
    },
    Failure {
        name: "the key was used for another request",
        part: Part::Key,
        apply: |it| {
            it.batch.key = prepared::used_key();
            it.batch.fingerprint = Fingerprint::of(b"another request");
        },
        answer: |_| Err(Conflict::IdempotencyKey.into()),
    },
    Failure {
        name: "it was committed before",
        part: Part::Key,
        apply: |it| {
            it.batch.key = prepared::used_key();
            it.batch.fingerprint = prepared::used_fingerprint();
        },
        answer: |Positions { seq, change, tag, .. }| {
            Ok(CommitOutcome { change, tag, first_seq: seq, count: 1, replayed: true })
        },
    },
    Failure {
        name: "the thread is at another message",
        part: Part::Expected,
        apply: |it| it.batch.expected = Some(Expected::Seq(1)),
        answer: |positions| Err(Conflict::Seq { expected: 1, actual: positions.seq }.into()),
    },
    Failure {
        name: "the thread is at another change",
        part: Part::Expected,
        apply: |it| it.batch.expected = Some(Expected::Change(1.into())),
        answer: |positions| Err(Conflict::Change { expected: 1.into(), actual: positions.tagged() }.into()),
    },
    Failure {
        name: "the thread is at this change, of another history",
        part: Part::Expected,
        apply: |it| {
            let lost = TaggedNumber { number: it.positions.change, tag: Some(prepared::lost_tag()) };
            it.batch.expected = Some(Expected::Change(lost));
        },
        answer: |positions| {
            let expected = TaggedNumber { number: positions.change, tag: Some(prepared::lost_tag()) };
            Err(Conflict::Change { expected, actual: positions.tagged() }.into())
        },
    },
    Failure {
        name: "a record exists that must not",
        part: Part::Entry,
        apply: |it| it.batch.require.push(condition("first", RecordState::Absent)),
        answer: |positions| record_conflict("first", Some(prepared::record_version(positions))),
    },
    Failure {
        name: "a record has another version",
        part: Part::Entry,
        apply: |it| it.batch.require.push(condition("second", RecordState::Version(1.into()))),
        answer: |positions| record_conflict("second", Some(prepared::record_version(positions))),
    },
    Failure {
        name: "a record has this version, of another history",
        part: Part::Entry,
        apply: |it| {
            let lost = TaggedNumber { number: prepared::version(it.positions), tag: Some(prepared::lost_tag()) };
            it.batch.require.push(condition("fourth", RecordState::Version(lost)));
        },
        answer: |positions| record_conflict("fourth", Some(prepared::record_version(positions))),
    },
    Failure {
        name: "a record does not exist",
        part: Part::Entry,
        apply: |it| it.batch.require.push(condition("third", RecordState::Version(1.into()))),
        answer: |_| record_conflict("third", None),
    },
    Failure {
        name: "a message id is taken",
        part: Part::Entry,
        apply: |it| it.batch.append.push(message(2)),
        answer: |positions| id_taken(2, positions),
    },
    Failure {
        name: "a message id belongs to a tombstone",
        part: Part::Entry,
        apply: |it| it.batch.append.push(message(5)),
        answer: |positions| id_taken(5, positions),
    },
    Failure {
        name: "an external id is taken",
        part: Part::Entry,
        apply: |it| it.batch.append.push(NewMessage { external_id: Some("x1".to_owned()), ..message(11) }),
        answer: |positions| Err(Conflict::ExternalId { seq: positions.first_seq }.into()),
    },
    Failure {
        name: "the id and the external id of a message are taken",
        part: Part::Entry,
        apply: |it| it.batch.append.push(NewMessage { external_id: Some("x4".to_owned()), ..message(3) }),
        answer: |positions| id_taken(3, positions),
    },
    Failure {
        name: "a replaced message is unknown",
        part: Part::Entry,
        apply: |it| it.batch.replace.push(replacement(id(91))),
        answer: no_message,
    },
    Failure {
        name: "a replaced message is erased",
        part: Part::Entry,
        apply: |it| it.batch.replace.push(replacement(id(6))),
        answer: no_message,
    },
    Failure {
        name: "an erased message is unknown",
        part: Part::Entry,
        apply: |it| it.batch.erase.push(id(92)),
        answer: no_message,
    },
    Failure {
        name: "an erased message was erased before",
        part: Part::Entry,
        apply: |it| it.batch.erase.push(id(7)),
        answer: no_message,
    },
    Failure {
        name: "the trim goes beyond the end",
        part: Part::Entry,
        apply: |it| it.batch.trim_below = Some(limits::LAST_POSITION + 9),
        answer: |_| Err(StoreError::invalid("trim_below", "beyond the end of the thread")),
    },
    Failure {
        name: "the positions are exhausted",
        part: Part::Entry,
        apply: |it| it.batch.append.extend((0..u128::from(prepared::FREE)).map(|number| message(30 + number))),
        answer: |positions| {
            let max = limits::LAST_POSITION;
            let actual = (positions.seq + prepared::FREE + 1).max(positions.change + 1);
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
