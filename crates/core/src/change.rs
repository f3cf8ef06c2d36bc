use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::{DocumentName, MessageId, Owner, Positions, TenantId, ThreadId, Timestamp};

/// One commit on a thread, as its subscribers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The change position that the commit made.
    pub change: u64,
    /// When, by the commit's `now`.
    pub at: Timestamp,
    /// What it did, in the order: append, replace, erase, trim, documents, patch.
    pub effects: Vec<Effect>,
}

/// One thing that a commit did. What was appended or replaced is read from the thread, in the form it has by then.
///
/// What a commit named but did not do is not told: a trim below the first position, the deletion of a document that was
/// not there. So a change may have no effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Messages were added.
    Appended {
        /// The position of the first.
        first_seq: u64,
        /// How many.
        count: u64,
    },
    /// A message says something else.
    Replaced {
        /// Its position.
        seq: u64,
        /// Its id.
        id: MessageId,
    },
    /// A message is gone.
    Erased {
        /// Its position.
        seq: u64,
        /// Its id.
        id: MessageId,
    },
    /// All messages below a position are gone.
    Trimmed {
        /// The first position that is kept.
        first_seq: u64,
    },
    /// A document was written.
    DocumentPut {
        /// Which.
        name: DocumentName,
        /// The version it got.
        version: u64,
    },
    /// A document was deleted.
    DocumentDeleted {
        /// Which.
        name: DocumentName,
    },
    /// Title, metadata, state or expiry changed.
    Patched,
}

/// What came after a change position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangePage {
    /// The changes, oldest first, without a gap after the position that was asked for.
    Changes {
        /// At most as many as were asked for.
        changes: Vec<Change>,
        /// Where the thread stood when they were read: more remain when its `change` is beyond the last one here.
        positions: Positions,
    },
    /// The position belongs to a lost past (a restore, or longer ago than changes are kept): read the thread anew and
    /// go on from its present change.
    Reset {
        /// Where the thread stands.
        positions: Positions,
    },
}

/// How far a subscriber to all of a user's (or tenant's) threads has come. Opaque: only the store that made it reads it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserCursor(pub String);

/// A hint that something may have changed. Hints may be lost or come twice: they only say when to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WakeUp {
    /// This thread changed.
    Thread {
        /// Its tenant.
        tenant: TenantId,
        /// Its owner.
        owner: Owner,
        /// Its id.
        thread: ThreadId,
        /// The change that a commit brought it to; `None` where it was opened, deleted or restored, or nobody knows. Whoever has
        /// come so far already need not look.
        change: Option<u64>,
    },
    /// Anything may have changed: hints were lost, or another process wrote.
    Anything,
}

/// A stream of hints that ends when the store is closed.
pub type WakeUps = BoxStream<'static, WakeUp>;
