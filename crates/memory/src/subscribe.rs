//! Subscriptions: hearing of every change, in order, and missing none.
//!
//! Wake-ups only say when to look; what happened is read from the thread's own log, by position. So it is written once,
//! here, and does not matter whether wake-ups are lost or come twice. A subscription is pulled: nothing waits in memory
//! for a slow subscriber, and one that is dropped leaves nothing behind.
//!
//! Those who listen to one thread in one scope share a feed (`feed.rs`): one look at the log serves them all, and what this
//! manager itself commits is handed to it from memory (`handed.rs`), for a moment and up to a size. Who comes too late for
//! that reads the log like everybody else. `feeds.rs` passes the store's wake-ups on to the feeds that they concern.

mod feed;
mod feeds;
mod handed;
mod log;
mod thread;
mod threads;
mod wake;
mod watch;

use std::sync::Arc;

use futures::stream::BoxStream;
use threadkeep_core::{
    ChangeTag, ChangedThread, CorruptRow, Message, MessageId, Positions, RecordName, Role, Tagged, Timestamp,
    UserCursor,
};

pub(crate) use feeds::Feeds;
pub use watch::Watch;

use crate::Result;

/// The changes of one thread, each shared by all who hear the same. It ends after [`ThreadUpdate::Deleted`] and after an error.
pub type ThreadUpdates = BoxStream<'static, Result<Arc<ThreadUpdate>>>;

/// The changes among a scope's threads. It ends after an error.
pub type ThreadsUpdates = BoxStream<'static, Result<ThreadsUpdate>>;

/// How to subscribe to a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubscribeOptions {
    /// Where to begin.
    pub start: Start,
    /// Only messages of these roles; empty for all.
    pub roles: Vec<Role>,
}

/// Where a subscription begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// With the first change after this moment.
    #[default]
    Now,
    /// With the first change after this position: what a subscriber passes who was here before. A tag that the thread's log does
    /// not hold at the number begins with [`ThreadUpdate::Reset`].
    After(Tagged),
    /// With the newest so many messages as they stand, then the changes after them.
    Last(usize),
}

/// What a subscriber to a thread hears.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadUpdate {
    /// The newest messages, where the subscription began with them.
    History {
        /// Oldest first.
        messages: Vec<Message>,
        /// Those that do not decode.
        corrupt: Vec<CorruptRow>,
        /// Where the thread stood; the changes that follow come after it.
        positions: Positions,
    },
    /// One commit.
    Commit {
        /// Its position: pass the last one seen to [`Start::After`].
        change: u64,
        /// Its tag; `None` where the store knows none.
        tag: Option<ChangeTag>,
        /// When.
        at: Timestamp,
        /// What it did, in order.
        events: Vec<ThreadEvent>,
    },
    /// The position that the subscription began after belongs to a lost past: read the thread anew. The changes that
    /// follow come after where it stands.
    Reset {
        /// Where it stands.
        positions: Positions,
    },
    /// The thread was deleted, or has expired.
    Deleted,
}

/// Some of what happened in a thread after a position.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdatesPage {
    /// In order; none where nothing of it was for these roles.
    pub updates: Vec<ThreadUpdate>,
    /// Where to go on: the last change that was looked at.
    pub change: Tagged,
}

/// One thing that a commit did to a thread.
#[derive(Clone, Debug, PartialEq)]
pub enum ThreadEvent {
    /// Messages were added. They are shown as they stand by now; those erased or trimmed since are left out.
    Appended {
        /// In order.
        messages: Vec<Message>,
        /// Those that do not decode.
        corrupt: Vec<CorruptRow>,
    },
    /// A message says something else.
    Replaced {
        /// As it stands by now.
        message: Box<Message>,
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
    /// A record of the thread was written, or deleted.
    Record {
        /// Which.
        name: RecordName,
        /// The version that it got; `None` when it was deleted.
        version: Option<u64>,
    },
    /// Title, metadata, state or expiry changed.
    Patched,
}

/// What a subscriber to a scope's threads hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadsUpdate {
    /// Threads that changed, each once, in the order of their last change. Some may come again after a resumption.
    pub threads: Vec<ChangedThread>,
    /// What to go on from.
    pub cursor: UserCursor,
    /// Whether the cursor that was passed belongs to a lost past: list the threads anew.
    pub reset: bool,
}
