use std::error::Error;
use std::fmt;

use crate::{MessageId, Namespace, TaggedNumber};

/// The result of a call on a store.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;

/// An error of a store. Variants are named for what the caller can do about it.
///
/// The text contains what was wrong with the request, but never message content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The object does not exist in this scope: it is unknown, deleted, expired, or owned by someone else.
    #[error("{0} not found")]
    NotFound(Kind),
    /// The caller may read the object, but not make this change. Use a scope with more access.
    #[error("not allowed in this scope: {0}")]
    Denied(&'static str),
    /// The stored state differs from the expected state. Read the state again and decide again; the error contains the actual state.
    #[error("conflict: {0}")]
    Conflict(#[from] Conflict),
    /// The request is invalid in any state. Change it.
    #[error("invalid {field}: {reason}")]
    Invalid {
        /// The invalid part of the request.
        field: &'static str,
        /// Why it is invalid.
        reason: String,
    },
    /// This backend does not have the feature.
    #[error("this store does not support {0}")]
    Unsupported(&'static str),
    /// The request exceeds a limit. Send less.
    #[error("{limit}: {actual} exceeds the maximum of {max}")]
    LimitExceeded {
        /// What is limited.
        limit: &'static str,
        /// The maximum.
        max: u64,
        /// The requested size or count.
        actual: u64,
    },
    /// The store cannot be reached or written to. Retry later with the same idempotency key.
    #[error("store unavailable: {reason}{}", if *.maybe_applied { " (the change may have been applied)" } else { "" })]
    Unavailable {
        /// Why it is unavailable.
        reason: Reason,
        /// Whether the change may have been applied nevertheless. To find out, retry with the same key.
        maybe_applied: bool,
        /// The error of the backend.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
    /// Stored data cannot be decoded. Restore a backup, or run `check` to list the damage.
    #[error("stored data is corrupt: {what}: {detail}")]
    Corrupt {
        /// What cannot be decoded.
        what: &'static str,
        /// Where and why.
        detail: String,
    },
    /// The data was written by another program or by a later version. Use that program or version.
    #[error("incompatible store: {0}")]
    Incompatible(String),
}

impl StoreError {
    /// Creates an `Invalid` error.
    pub fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid { field, reason: reason.into() }
    }

    /// Creates a `Corrupt` error.
    pub fn corrupt(what: &'static str, detail: impl Into<String>) -> Self {
        Self::Corrupt { what, detail: detail.into() }
    }

    /// Creates an `Unavailable` error for a call that certainly changed nothing.
    #[must_use]
    pub fn unavailable(reason: Reason) -> Self {
        Self::Unavailable { reason, maybe_applied: false, source: None }
    }

    /// Returns the stable name of the kind of error, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound(_) => "not_found",
            Self::Denied(_) => "denied",
            Self::Conflict(conflict) => conflict.code(),
            Self::Invalid { .. } => "invalid_request",
            Self::Unsupported(_) => "unsupported",
            Self::LimitExceeded { .. } => "limit_exceeded",
            Self::Unavailable { .. } => "unavailable",
            Self::Corrupt { .. } => "corrupt",
            Self::Incompatible(_) => "incompatible",
        }
    }

    /// Whether the same call may succeed later.
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

/// The kind of object that was not found.
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
            Self::Record => "record",
        })
    }
}

/// How the stored state differs from the expected state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Conflict {
    /// The last message of the thread is not at the expected position.
    #[error("the thread is at message {actual}, not {expected}")]
    Seq {
        /// The expected position.
        expected: u64,
        /// The actual position.
        actual: u64,
    },
    /// The thread is not at the expected change, because it was changed after the caller read it, or because the expected change
    /// belongs to a discarded history.
    #[error("the thread is at change {}, not {}{}", actual.number, expected.number, discarded_history_suffix(*expected, *actual))]
    Change {
        /// The expected change number.
        expected: TaggedNumber,
        /// The actual change number.
        actual: TaggedNumber,
    },
    /// The idempotency key was used for a different request.
    #[error("the idempotency key was already used for a different request")]
    IdempotencyKey,
    /// The thread already contains a message with this id.
    #[error("message {id} already exists in the thread, at position {seq}")]
    MessageId {
        /// The id.
        id: MessageId,
        /// The position of the message or of its tombstone.
        seq: u64,
    },
    /// The thread already contains a message with this external id.
    #[error("a message with this external id already exists in the thread, at position {seq}")]
    ExternalId {
        /// The position of the message.
        seq: u64,
    },
    /// A record is not in the required state.
    #[error("record {namespace}/{key} is {}", match .actual { Some(version) => format!("at version {}", version.number), None => "absent".to_owned() })]
    Record {
        /// The record's namespace.
        namespace: Namespace,
        /// The record's key.
        key: String,
        /// Its actual version; `None` if it does not exist.
        actual: Option<TaggedNumber>,
    },
    /// A thread with this id already exists.
    #[error("a thread with this id already exists")]
    Thread,
}

impl Conflict {
    /// Returns the stable name of the kind of conflict, for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Change { .. } | Self::Record { .. } => "changed_meanwhile",
            Self::Seq { .. } => "seq_conflict",
            Self::IdempotencyKey => "idempotency_key_reused",
            Self::MessageId { .. } => "message_id_taken",
            Self::ExternalId { .. } => "external_id_taken",
            Self::Thread => "conflict",
        }
    }
}

/// Why a store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// Other connections or processes held locks for longer than the timeout.
    Busy,
    /// There is no connection.
    Disconnected,
    /// The store did not respond in time.
    Timeout,
    /// The disk is full.
    Full,
    /// The store is read-only.
    ReadOnly,
    /// Reading or writing the disk failed.
    Io,
    /// This handle of the store was closed.
    Closed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "busy",
            Self::Disconnected => "no connection",
            Self::Timeout => "timed out",
            Self::Full => "no space left",
            Self::ReadOnly => "read-only",
            Self::Io => "I/O error",
            Self::Closed => "closed",
        })
    }
}

/// Returns the end of the error text for two changes that have the same number and differ only in their tags.
fn discarded_history_suffix(expected: TaggedNumber, actual: TaggedNumber) -> &'static str {
    if expected.number == actual.number { " of a discarded history" } else { "" }
}
