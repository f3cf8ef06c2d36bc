use std::ops::Range;

use futures_core::stream::BoxStream;
use serde::{Deserialize, Serialize};

use crate::{
    Bound, ChangeTag, CorruptRow, Message, MessageId, MessagePage, MessageQuery, OnCorrupt, Owner, Positions,
    RecordName, RecordWrite, Scope, Tagged, TenantId, ThreadId, Timestamp, limits,
};

/// One commit on a thread, as its subscribers see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The change position that the commit made.
    pub change: u64,
    /// The tag of the commit; `None` where the store knows none.
    pub tag: Option<ChangeTag>,
    /// When, by the commit's `now`.
    pub at: Timestamp,
    /// What it did, in the order: append, replace, erase, trim, records, patch.
    pub effects: Vec<Effect>,
}

impl Change {
    /// The change position with its tag.
    #[must_use]
    pub const fn tagged(&self) -> Tagged {
        Tagged { number: self.change, tag: self.tag }
    }
}

/// One thing that a commit did. What was appended or replaced is read from the thread, in the form it has by then.
///
/// What a commit named but did not do is not told: a trim below the first position, the deletion of a record that was
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
    /// A record was written.
    #[serde(rename = "document_put")]
    RecordPut {
        /// Which.
        name: RecordName,
        /// The version it got.
        version: u64,
    },
    /// A record was deleted.
    #[serde(rename = "document_deleted")]
    RecordDeleted {
        /// Which.
        name: RecordName,
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
    /// The position belongs to a lost past (a restore, a failover, or longer ago than changes are kept): read the thread anew and
    /// go on from its present change.
    Reset {
        /// Where the thread stands.
        positions: Positions,
    },
}

impl ChangePage {
    /// The positions that its changes gave to messages, from the first to the one after the last; `None` where they added none.
    /// Positions are gapless, so what a run of changes added is one range.
    #[must_use]
    pub fn appended(&self) -> Option<Range<u64>> {
        let Self::Changes { changes, .. } = self else { return None };
        let ranges = changes.iter().flat_map(|change| &change.effects).filter_map(|effect| match effect {
            Effect::Appended { first_seq, count } => Some(*first_seq..first_seq.saturating_add(*count)),
            _ => None,
        });
        ranges.reduce(|all, one| all.start.min(one.start)..all.end.max(one.end))
    }
}

/// What came after a change position, and the messages that it added.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangesWithMessages {
    /// The changes.
    pub page: ChangePage,
    /// What they appended, ascending, as it stands when it is read.
    pub messages: Vec<Message>,
    /// Those that do not decode.
    pub corrupt: Vec<CorruptRow>,
    /// How far the messages reach: one up to here that is not among them is gone, one beyond has to be read. 0 where nothing
    /// was appended.
    pub read_to: u64,
}

impl ChangesWithMessages {
    /// What to read for [`ChangesWithMessages::new`]: the messages that some changes appended. `None` where they appended none.
    #[must_use]
    pub fn query(page: &ChangePage) -> Option<MessageQuery> {
        let appended = page.appended()?;
        Some(MessageQuery {
            before: Some(Bound::Seq(appended.end)),
            on_corrupt: OnCorrupt::Report,
            ..MessageQuery::following(appended.start.saturating_sub(1), limits::PAGE)
        })
    }

    /// Puts together changes and a page of what they appended, read in ascending order from the first on.
    #[must_use]
    pub fn new(page: ChangePage, messages: Option<MessagePage>) -> Self {
        let last = page.appended().map_or(0, |appended| appended.end.saturating_sub(1));
        let Some(MessagePage { messages, corrupt, more, .. }) = messages else {
            return Self { page, messages: Vec::new(), corrupt: Vec::new(), read_to: 0 };
        };
        let reached = messages.last().map(|message| message.seq).max(corrupt.last().map(|row| row.seq));
        let read_to = if more { reached.unwrap_or(0) } else { last };
        Self { page, messages, corrupt, read_to }
    }
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
    /// A record of a user, or of the tenant, was written or deleted.
    Record {
        /// The tenant.
        tenant: TenantId,
        /// Whose it is.
        owner: Owner,
        /// Which.
        name: RecordName,
    },
    /// Anything may have changed: hints were lost, or another process wrote.
    Anything,
}

impl WakeUp {
    /// The hint about a write under a scope; `None` for a thread's record, which changes by commits.
    #[must_use]
    pub fn of_record(scope: &Scope, write: &RecordWrite) -> Option<Self> {
        let owner = write.owner.as_owner()?;
        let name = RecordName { namespace: write.namespace.clone(), key: write.key.clone() };
        Some(Self::Record { tenant: scope.tenant_id().clone(), owner, name })
    }
}

/// A stream of hints that ends when the store is closed.
pub type WakeUps = BoxStream<'static, WakeUp>;
