use std::ops::Range;

use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::{
    Bound, ChangeTag, CorruptRow, Message, MessageId, MessagePage, MessageQuery, OnCorrupt, Owner, Positions,
    RecordName, RecordWrite, Scope, TaggedNumber, TenantId, ThreadId, Timestamp, limits,
};

/// A commit on a thread, as delivered to subscribers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The change number of the commit.
    pub change: u64,
    /// The tag of the commit; `None` if unknown.
    pub tag: Option<ChangeTag>,
    /// The `now` of the commit.
    pub at: Timestamp,
    /// Its effects, in the order: append, replace, erase, trim, records, patch.
    pub effects: Vec<Effect>,
}

impl Change {
    /// Returns the change number with its tag.
    #[must_use]
    pub const fn tagged(&self) -> TaggedNumber {
        TaggedNumber { number: self.change, tag: self.tag }
    }
}

/// One effect of a commit. It does not contain message content: readers get the current content from the thread.
///
/// Parts of a batch that change nothing, such as a trim below the first position or the deletion of a missing record, are not listed
/// as effects. So a change may have no effects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Messages were added.
    Appended {
        /// The position of the first message.
        first_seq: u64,
        /// The number of messages.
        count: u64,
    },
    /// The content of a message was replaced.
    Replaced {
        /// Its position.
        seq: u64,
        /// Its id.
        id: MessageId,
    },
    /// A message was erased.
    Erased {
        /// Its position.
        seq: u64,
        /// Its id.
        id: MessageId,
    },
    /// All messages below a position were removed.
    Trimmed {
        /// The first remaining position.
        first_seq: u64,
    },
    /// A record was written.
    #[serde(rename = "document_put")]
    RecordPut {
        /// The name of the record.
        name: RecordName,
        /// Its new version.
        version: u64,
    },
    /// A record was deleted.
    #[serde(rename = "document_deleted")]
    RecordDeleted {
        /// The name of the record.
        name: RecordName,
    },
    /// Title, metadata, state or expiry changed.
    Patched,
}

/// The changes of a thread after a given change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangePage {
    /// The changes, oldest first, without a gap after the requested change.
    Changes {
        /// The changes, at most as many as requested.
        changes: Vec<Change>,
        /// The positions of the thread when the changes were read. More changes follow if `positions.change` is beyond the last one
        /// of `changes`.
        positions: Positions,
    },
    /// Changes cannot be listed after the requested change: it belongs to a discarded history (after a restore or failover), or is
    /// older than the change log. The client has to read the thread again and continue from its current change.
    Reset {
        /// The current positions of the thread.
        positions: Positions,
    },
}

impl ChangePage {
    /// Returns the positions of the messages that the changes appended; `None` if they appended none. The result is a single range,
    /// because positions have no gaps.
    #[must_use]
    pub fn appended_positions(&self) -> Option<Range<u64>> {
        let Self::Changes { changes, .. } = self else { return None };
        let ranges = changes.iter().flat_map(|change| &change.effects).filter_map(|effect| match effect {
            Effect::Appended { first_seq, count } => Some(*first_seq..first_seq.saturating_add(*count)),
            _ => None,
        });
        ranges.reduce(|all, range| all.start.min(range.start)..all.end.max(range.end))
    }
}

/// The changes of a thread after a given change, with the messages that they appended.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangesWithMessages {
    /// The changes.
    pub page: ChangePage,
    /// The appended messages with their current content, in ascending order of position.
    pub messages: Vec<Message>,
    /// The appended messages that cannot be decoded.
    pub corrupt: Vec<CorruptRow>,
    /// The last position that was read; 0 if nothing was appended. Appended messages through this position that are neither in
    /// `messages` nor in `corrupt` no longer exist. Those beyond it have to be read separately.
    pub read_to: u64,
}

impl ChangesWithMessages {
    /// Returns the query for the messages that the changes appended, for [`ChangesWithMessages::new`]. `None` if they appended
    /// none.
    #[must_use]
    pub fn query(page: &ChangePage) -> Option<MessageQuery> {
        let appended = page.appended_positions()?;
        Some(MessageQuery {
            before: Some(Bound::Seq(appended.end)),
            on_corrupt: OnCorrupt::Report,
            ..MessageQuery::following(appended.start.saturating_sub(1), limits::PAGE)
        })
    }

    /// Combines changes and the result of [`ChangesWithMessages::query`].
    #[must_use]
    pub fn new(page: ChangePage, messages: Option<MessagePage>) -> Self {
        let last = page.appended_positions().map_or(0, |appended| appended.end.saturating_sub(1));
        let Some(MessagePage { messages, corrupt, more, .. }) = messages else {
            return Self { page, messages: Vec::new(), corrupt: Vec::new(), read_to: 0 };
        };
        let reached = messages.last().map(|message| message.seq).max(corrupt.last().map(|row| row.seq));
        let read_to = if more { reached.unwrap_or(0) } else { last };
        Self { page, messages, corrupt, read_to }
    }
}

/// Marks how far a subscriber has read the changes of all threads of a user or tenant. Opaque: only the store that issued a cursor
/// can interpret it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UserCursor(pub String);

/// A hint that something may have changed. Hints may be lost or duplicated, so clients use them only to decide when to read.
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
        /// The change number of the commit. A client that has read through this change can ignore the hint. `None` if the thread was
        /// opened, deleted or restored, or the number is unknown.
        change: Option<u64>,
    },
    /// A record of a user, or of the tenant, was written or deleted.
    Record {
        /// The tenant.
        tenant: TenantId,
        /// The owner of the record.
        owner: Owner,
        /// The name of the record.
        name: RecordName,
    },
    /// Anything may have changed: hints were lost, or another process wrote.
    Unspecified,
}

impl WakeUp {
    /// Returns the hint for a write in a scope; `None` for a record of a thread, because only commits write those.
    #[must_use]
    pub fn of_record(scope: &Scope, write: &RecordWrite) -> Option<Self> {
        let owner = write.owner.as_owner()?;
        let name = RecordName { namespace: write.namespace.clone(), key: write.key.clone() };
        Some(Self::Record { tenant: scope.tenant_id().clone(), owner, name })
    }
}

/// A stream of hints that ends when the store is closed.
pub type WakeUps = BoxStream<'static, WakeUp>;
