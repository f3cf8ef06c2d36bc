//! Subscriptions: streams of every change, in order, without gaps.
//!
//! Wake-ups only indicate when to poll; the changes are read from the thread's log, by position. So it does not matter if
//! wake-ups are lost or repeated. A subscription is pulled: nothing is queued for a slow subscriber, and a dropped subscription
//! leaves nothing behind.
//!
//! The subscribers to one thread in one scope share a feed (`feed.rs`): one read of the log serves them all. A feed also buffers
//! the commits of this manager (`own_commits.rs`) for a short time and up to a size, so that subscribers need not read the log
//! for them. `feeds.rs` dispatches the store's wake-ups to the feeds.

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

/// The changes of one thread, each shared by the subscribers to it. Ends after [`ThreadUpdate::Deleted`] and after an error.
pub type ThreadUpdates = BoxStream<'static, Result<Arc<ThreadUpdate>>>;

/// The changes among a scope's threads. Ends after an error.
pub type ThreadsUpdates = BoxStream<'static, Result<ThreadsUpdate>>;

/// Options for subscribing to a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// Where the subscription starts.
    pub start: Start,
    /// Only messages of these roles; empty for all.
    pub roles: Vec<Role>,
}

/// Where a subscription starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// At the first change after the call.
    #[default]
    Now,
    /// At the first change after this position, to resume an earlier subscription. If the thread's log does not contain the tag
    /// at this number, the subscription starts with [`ThreadUpdate::Reset`].
    After(TaggedNumber),
    /// With this many of the newest messages, then the changes after them.
    Last(usize),
}

/// An update of a subscription to a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadUpdate {
    /// The newest messages, for [`Start::Last`].
    History {
        /// Oldest first.
        messages: Vec<Message>,
        /// Those that do not decode.
        corrupt: Vec<CorruptRow>,
        /// The positions of the thread; the next updates are the changes after them.
        positions: Positions,
    },
    /// One commit.
    Commit {
        /// Its position: pass the last one seen to [`Start::After`].
        change: u64,
        /// Its tag; `None` if the store has no tags.
        tag: Option<ChangeTag>,
        /// When it was made.
        at: Timestamp,
        /// Its effects, in order.
        events: Vec<ThreadEvent>,
    },
    /// The store was restored to a state before the position of [`Start::After`]: read the thread again. The next updates are
    /// the changes after the current positions.
    Reset {
        /// The current positions of the thread.
        positions: Positions,
    },
    /// The thread was deleted, or has expired.
    Deleted,
}

/// A page of the updates of a thread after a position.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatesPage {
    /// In order; empty if no update concerns the requested roles.
    pub updates: Vec<ThreadUpdate>,
    /// The position to continue after.
    pub change: TaggedNumber,
}

/// One effect of a commit on a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadEvent {
    /// Messages were added. Contains their current versions, without those erased or trimmed since.
    Appended {
        /// In order.
        messages: Vec<Message>,
        /// Those that do not decode.
        corrupt: Vec<CorruptRow>,
    },
    /// The content of a message was replaced.
    Replaced {
        /// The current version of the message.
        message: Box<Message>,
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
        /// The first position that was kept.
        first_seq: u64,
    },
    /// A record of the thread was written, or deleted.
    Record {
        /// Its name.
        name: RecordName,
        /// Its new version; `None` if it was deleted.
        version: Option<u64>,
    },
    /// The title, metadata, state or expiry was changed.
    Patched,
}

/// An update of a subscription to a scope's threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsUpdate {
    /// Threads that changed, each once, in the order of their last change. Some may be repeated after resuming.
    pub threads: Vec<ChangedThread>,
    /// The cursor to resume from.
    pub cursor: UserCursor,
    /// Whether the store was restored to a state before the cursor: list the threads again.
    pub reset: bool,
}
