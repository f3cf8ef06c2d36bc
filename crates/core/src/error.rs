use std::error::Error;
use std::fmt;

use crate::{MessageId, Namespace, Tagged};

/// The result of a call on a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// Why a store did not do what it was asked, named for what the caller can do about it.
///
/// The text names what was wrong with the request, never what a message says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// There is no such thing in this scope: unknown, deleted, expired, or somebody else's. Ask for another.
    #[error("{0} not found")]
    NotFound(Kind),
    /// The caller sees the thing and may not do this to it. Use a scope that may.
    #[error("not allowed in this scope: {0}")]
    Denied(&'static str),
    /// Something else happened first. Read again and decide anew; the actual state is inside.
    #[error("conflict: {0}")]
    Conflict(#[from] Conflict),
    /// The request can never be carried out as it is. Change it.
    #[error("invalid {field}: {reason}")]
    Invalid {
        /// What was wrong.
        field: &'static str,
        /// Why.
        reason: String,
    },
    /// This backend cannot do that.
    #[error("this store does not support {0}")]
    Unsupported(&'static str),
    /// The request is larger than the limit that it names. Send less.
    #[error("{limit} is limited to {max}, but {actual} was given")]
    LimitExceeded {
        /// Which limit.
        limit: &'static str,
        /// The most that is allowed.
        max: u64,
        /// What was given.
        actual: u64,
    },
    /// The store cannot be reached or written now. Repeat later, with the same idempotency key.
    #[error("store unavailable: {reason}{}", if *.maybe_applied { " (the change may have been applied)" } else { "" })]
    Unavailable {
        /// What stands in the way.
        reason: Reason,
        /// Whether the commit may have happened all the same: repeat it with the same key to find out.
        maybe_applied: bool,
        /// What the backend said.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Stored bytes that do not decode. Restore from a backup, or let `check` say how far the damage goes.
    #[error("stored data is corrupt: {what}: {detail}")]
    Corrupt {
        /// What does not decode.
        what: &'static str,
        /// Where, and how it shows.
        detail: String,
    },
    /// The data was written by another program or a later version of this one. Use that one.
    #[error("incompatible store: {0}")]
    Incompatible(String),
}

impl StoreError {
    /// Makes an `Invalid`.
    pub fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid { field, reason: reason.into() }
    }

    /// Makes a `Corrupt`.
    pub fn corrupt(what: &'static str, detail: impl Into<String>) -> Self {
        Self::Corrupt { what, detail: detail.into() }
    }

    /// Makes an `Unavailable` of a call that certainly changed nothing.
    #[must_use]
    pub fn unavailable(reason: Reason) -> Self {
        Self::Unavailable { reason, maybe_applied: false, source: None }
    }

    /// Whether the same call can succeed later without being changed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { reason: Reason::Busy | Reason::Disconnected | Reason::Timeout, .. })
    }

    /// Whether the change may have been applied although the call failed.
    #[must_use]
    pub fn maybe_applied(&self) -> bool {
        matches!(self, Self::Unavailable { maybe_applied: true, .. })
    }
}

/// What kind of thing was not found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A thread.
    Thread,
    /// A message of a thread.
    Message,
    /// A record.
    Record,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Thread => "thread",
            Self::Message => "message",
            Self::Record => "document",
        })
    }
}

/// What happened first.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// The thread has another last position than the commit expected.
    #[error("the thread is at message {actual}, not {expected}")]
    Seq {
        /// What the commit expected.
        expected: u64,
        /// Where the thread is.
        actual: u64,
    },
    /// The thread has changed since the commit's author read it.
    #[error("the thread is at change {}, not {}{}", actual.number, expected.number, of_a_lost_past(*expected, *actual))]
    Change {
        /// What the commit expected.
        expected: Tagged,
        /// Where the thread is.
        actual: Tagged,
    },
    /// The idempotency key was used for something else.
    #[error("the idempotency key was used before for a different request")]
    IdempotencyKey,
    /// A message of the thread has this id already.
    #[error("message {id} is in the thread already, at {seq}")]
    MessageId {
        /// The id.
        id: MessageId,
        /// Where it stands (or stood before it was erased).
        seq: u64,
    },
    /// A message of the thread has this external id already.
    #[error("a message with this external id is in the thread already, at {seq}")]
    ExternalId {
        /// Where it stands.
        seq: u64,
    },
    /// A record is not in the state that was required.
    #[error("document {namespace}/{key} is {}", match .actual { Some(version) => format!("at version {}", version.number), None => "absent".to_owned() })]
    Record {
        /// The record's namespace.
        namespace: Namespace,
        /// The record's key.
        key: String,
        /// The version it has, or `None` when there is none.
        actual: Option<Tagged>,
    },
    /// A thread with this id is there already (restoring never overwrites).
    #[error("a thread with this id is there already")]
    Thread,
}

/// What stands between the caller and the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Others hold it for longer than this call may wait.
    Busy,
    /// The connection was lost or never made.
    Disconnected,
    /// It did not answer in time.
    Timeout,
    /// There is no room left to write.
    Full,
    /// It may only be read.
    ReadOnly,
    /// The device failed.
    Io,
    /// It was closed.
    Closed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "it is busy",
            Self::Disconnected => "the connection is lost",
            Self::Timeout => "it did not answer in time",
            Self::Full => "no space is left",
            Self::ReadOnly => "it is read-only",
            Self::Io => "the device failed",
            Self::Closed => "it is closed",
        })
    }
}

/// What tells two changes apart that have the same number.
fn of_a_lost_past(expected: Tagged, actual: Tagged) -> &'static str {
    if expected.number == actual.number { " of a lost past" } else { "" }
}
