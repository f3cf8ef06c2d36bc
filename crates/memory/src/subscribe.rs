//! Subscriptions: streams of every change, in order, without gaps.
//!
//! Wake-ups only indicate when to read the thread's change log, and each read continues from the last change number. So it does
//! not matter if wake-ups are lost or repeated. The subscriber pulls its updates: nothing is queued for a slow subscriber, and a
//! dropped subscription leaves nothing behind.
//!
//! The subscribers to one thread in one scope share a feed (`feed.rs`), so that one read of the log serves them all. A feed also
//! buffers the commits by this [`crate::Memory`] (`own_commits.rs`), for a short time and up to a limit, so that subscribers need
//! not read them from the log. `feeds.rs` dispatches the store's wake-ups to the feeds.

mod feed;
mod feeds;
mod log;
mod own_commits;
mod thread;
mod threads;
mod waker;
mod watch;

use std::sync::Arc;

use futures::stream::BoxStream;
use threadkeep_core::{
    ChangeTag, ChangedThread, CorruptRow, Message, MessageId, Positions, RecordName, Role, TaggedNumber, Timestamp,
    UserCursor,
};

pub(crate) use feeds::Feeds;
pub use watch::Watch;

use crate::Result;

/// The changes in one thread. Subscribers share each update. Ends after [`ThreadUpdate::Deleted`] or an error.
pub type ThreadUpdates = BoxStream<'static, Result<Arc<ThreadUpdate>>>;

/// The changes in the list of a scope's threads. Ends after an error.
pub type ThreadsUpdates = BoxStream<'static, Result<ThreadsUpdate>>;

/// Options for subscribing to a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// Where the subscription starts.
    pub start: Start,
    /// Only messages with these roles; empty for all roles.
    pub roles: Vec<Role>,
}

/// Where a subscription starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At the first change after the call.
    #[default]
    Now,
    /// At the first change after this one, to resume an earlier subscription. If the thread's log contains another tag for this
    /// number, the subscription starts with [`ThreadUpdate::Reset`].
    After(TaggedNumber),
    /// With at most this many of the newest messages, followed by later changes.
    Last(usize),
}

/// An update of a subscription to a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadUpdate {
    /// The newest messages, for [`Start::Last`].
    History {
        /// The messages, oldest first.
        messages: Vec<Message>,
        /// The messages that cannot be decoded.
        corrupt: Vec<CorruptRow>,
        /// The positions of the thread. The next updates are the changes after these positions.
        positions: Positions,
    },
    /// One commit.
    Commit {
        /// The change number of the commit. To resume the subscription later, pass the number and tag to [`Start::After`].
        change: u64,
        /// The tag of the commit; `None` if the store has no tags.
        tag: Option<ChangeTag>,
        /// The time of the commit.
        at: Timestamp,
        /// The effects of the commit, in order.
        events: Vec<ThreadEvent>,
    },
    /// The store was restored to a state that predates the last change that the subscriber received: read the thread again. The
    /// next updates are the changes after the current positions.
    Reset {
        /// The current positions of the thread.
        positions: Positions,
    },
    /// The thread was deleted, or has expired.
    Deleted,
}

/// A page of a thread's updates.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatesPage {
    /// The updates, in order; empty if none concerns the requested roles.
    pub updates: Vec<ThreadUpdate>,
    /// The change after which the next page starts.
    pub change: TaggedNumber,
}

/// One effect of a commit on a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadEvent {
    /// Messages were added. Contains their current versions, and omits messages that have been erased or trimmed since.
    Appended {
        /// The messages, in order.
        messages: Vec<Message>,
        /// The messages that cannot be decoded.
        corrupt: Vec<CorruptRow>,
    },
    /// The content of a message was replaced.
    Replaced {
        /// The current version of the message.
        message: Box<Message>,
    },
    /// A message was erased.
    Erased {
        /// The position of the message.
        seq: u64,
        /// The id of the message.
        id: MessageId,
    },
    /// All messages below a position were removed.
    Trimmed {
        /// The first position that was kept.
        first_seq: u64,
    },
    /// A record of the thread was written or deleted.
    Record {
        /// The name of the record.
        name: RecordName,
        /// The new version of the record; `None` if it was deleted.
        version: Option<u64>,
    },
    /// The title, metadata, state or expiry was changed.
    Patched,
}

/// An update of a subscription to a scope's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsUpdate {
    /// The threads that changed, each once, in the order of their last change. Some may be reported again after resuming.
    pub threads: Vec<ChangedThread>,
    /// The cursor from which the subscription can be resumed.
    pub cursor: UserCursor,
    /// Whether the store was restored to a state that predates the cursor. If so, list the threads again.
    pub reset: bool,
}
