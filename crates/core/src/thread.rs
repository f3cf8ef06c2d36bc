use serde::{Deserialize, Serialize};

use crate::{ChangeTag, Map, Owner, Result, TaggedNumber, ThreadId, Timestamp, limits};

/// A conversation, without its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its id, unique in the tenant.
    pub id: ThreadId,
    /// Its owner.
    pub owner: Owner,
    /// Its name in the application; `None` if it has only an id.
    pub key: Option<ThreadKey>,
    /// Its title.
    pub title: Option<String>,
    /// Metadata of the application.
    pub metadata: Map,
    /// State of the agent, retained between turns.
    pub state: Map,
    /// Its current positions.
    pub positions: Positions,
    /// The number of messages, not counting erased and trimmed messages.
    pub message_count: u64,
    /// When it was created, here or in the system that it was imported from.
    pub created_at: Timestamp,
    /// The `now` of the last commit.
    pub updated_at: Timestamp,
    /// When it expires. Calls treat an expired thread as absent.
    pub expires_at: Option<Timestamp>,
}

/// The metadata field that marks an ephemeral thread and each message in it. An ephemeral thread is created for a single question.
/// It is not listed as a conversation, is not searched or recalled from other threads, and expires.
pub const EPHEMERAL: &str = "threadkeep.ephemeral";

/// Whether the metadata of a thread or message marks it as ephemeral.
pub(crate) fn is_marked_ephemeral(metadata: &Map) -> bool {
    metadata.get(EPHEMERAL).is_some_and(|mark| mark.as_bool() == Some(true))
}

impl Thread {
    /// Whether the thread was created for a single question ([`EPHEMERAL`]).
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        is_marked_ephemeral(&self.metadata)
    }
}

/// The numbers of a thread's last message, last change and first remaining message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions {
    /// The position of the last appended message; 0 if there was none.
    pub seq: u64,
    /// The change number: the number of commits that changed the thread. It is used as event id and ETag.
    pub change: u64,
    /// The first position that is not trimmed; `seq + 1` if all positions are.
    pub first_seq: u64,
    /// The tag of the commit that made `change`; `None` before the first commit, and if an earlier release of Threadkeep, which had
    /// no tags, made the commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<ChangeTag>,
}

impl Positions {
    /// The positions of a new thread.
    pub const BEGINNING: Self = Self { seq: 0, change: 0, first_seq: 1, tag: None };

    /// Returns the change number with its tag.
    #[must_use]
    pub const fn tagged(&self) -> TaggedNumber {
        TaggedNumber { number: self.change, tag: self.tag }
    }

    /// Whether a reader that has read through the change `after` can continue with the changes that follow it. If not, `after` is
    /// beyond the current change or belongs to a discarded history. `logged` is the tag of `after` in the change log, `None` if the log
    /// has no such entry; `logged` is ignored if `after` is the current change.
    ///
    /// If `after` has a tag but the log no longer has the entry to compare it with, the result is `false`.
    #[must_use]
    pub fn can_continue_from(&self, after: TaggedNumber, logged: Option<ChangeTag>) -> bool {
        if after.number >= self.change {
            return after.may_be_same(self.tagged());
        }
        after.tag.is_none() || after.tag == logged
    }
}

/// The name of a thread in an application, such as `slack:T1:C123:1717.0001`.
///
/// Unique per (tenant, owner). 1 to 500 bytes of UTF-8 without control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ThreadKey(String);

impl ThreadKey {
    /// Creates a key.
    ///
    /// # Errors
    /// `Invalid` if it is empty or contains control characters, `LimitExceeded` for more than 500 bytes.
    pub fn new(key: impl Into<String>) -> Result<Self> {
        let key = key.into();
        limits::check_key("thread key", &key)?;
        Ok(Self(key))
    }

    /// Returns the key.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for ThreadKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for ThreadKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// Changes to the attributes of a thread. Attributes whose field is `None` are not changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadPatch {
    /// The new title; `Some(None)` removes it.
    pub title: Option<Option<String>>,
    /// Replaces the metadata.
    pub metadata: Option<Map>,
    /// Replaces the state.
    pub state: Option<Map>,
    /// When the thread expires; `Some(None)` for never.
    pub expires_at: Option<Option<Timestamp>>,
}

impl ThreadPatch {
    /// Whether the patch changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether the patch changes the title, metadata or state, which are stored as one text.
    #[must_use]
    pub fn changes_thread_body(&self) -> bool {
        self.title.is_some() || self.metadata.is_some() || self.state.is_some()
    }

    /// Checks the values against the limits that all stores share.
    ///
    /// # Errors
    /// `Invalid` if text contains NUL characters, `LimitExceeded` if a value is too large.
    pub fn check(&self) -> Result<()> {
        if let Some(Some(title)) = &self.title {
            limits::check_title(title)?;
        }
        for map in [&self.metadata, &self.state].into_iter().flatten() {
            limits::check_map("thread metadata or state", map)?;
        }
        Ok(())
    }
}
