use serde::{Deserialize, Serialize};

use crate::{ChangeTag, Map, Owner, Result, Tagged, ThreadId, Timestamp, limits};

/// A conversation, without its messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its id, unique in the tenant.
    pub id: ThreadId,
    /// Whom it belongs to.
    pub owner: Owner,
    /// What a channel calls it.
    pub key: Option<ThreadKey>,
    /// What a person calls it.
    pub title: Option<String>,
    /// The application's own notes.
    pub metadata: Map,
    /// The state that an agent keeps from turn to turn.
    pub state: Map,
    /// Where it stands.
    pub positions: Positions,
    /// How many messages it holds, erased and trimmed ones left out.
    pub message_count: u64,
    /// When it was made: opened first, here or where it was imported from.
    pub created_at: Timestamp,
    /// When it last changed, by the store's clock of commits (`now`).
    pub updated_at: Timestamp,
    /// From when on it is as if it had never been.
    pub expires_at: Option<Timestamp>,
}

/// The member of metadata that marks a thread that was made for a single question, and each message of it: it is in no list of
/// conversations, and nothing in it is found or recalled from elsewhere. Such a thread expires.
pub const EPHEMERAL: &str = "threadkeep.ephemeral";

/// Whether metadata says so.
pub(crate) fn is_marked_ephemeral(metadata: &Map) -> bool {
    metadata.get(EPHEMERAL).is_some_and(|mark| mark.as_bool() == Some(true))
}

impl Thread {
    /// Whether it was made for a single question ([`EPHEMERAL`]).
    #[must_use]
    pub fn is_ephemeral(&self) -> bool {
        is_marked_ephemeral(&self.metadata)
    }
}

/// Where a thread stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Positions {
    /// The position of the newest message ever appended; 0 when there was none.
    pub seq: u64,
    /// The number of commits that changed it; the event id and ETag.
    pub change: u64,
    /// The position from which on messages are kept; `seq + 1` when none is.
    pub first_seq: u64,
    /// The tag of the commit that made `change`; `None` before the first one, and where that was made before there were tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<ChangeTag>,
}

impl Positions {
    /// Where a thread stands that was just made.
    pub const BEGINNING: Self = Self { seq: 0, change: 0, first_seq: 1, tag: None };

    /// The change with its tag.
    #[must_use]
    pub const fn tagged(&self) -> Tagged {
        Tagged { number: self.change, tag: self.tag }
    }

    /// Whether the changes after a position are what a reader misses that has come so far. If not, the position is beyond the
    /// thread's own or belongs to a lost past. `logged` is the tag of the change log's entry at that position, `None` where the
    /// log holds none there; it is not looked at where the thread stands at the position itself.
    ///
    /// A tag that cannot be compared, as the log is trimmed up to the position, is not taken on trust.
    #[must_use]
    pub fn can_continue_from(&self, after: Tagged, logged: Option<ChangeTag>) -> bool {
        if after.number >= self.change {
            return after.is_same(self.tagged());
        }
        after.tag.is_none() || after.tag == logged
    }
}

/// What a channel calls a conversation, such as `slack:T1:C123:1717.0001`.
///
/// Unique per (tenant, owner). 1 to 500 bytes of UTF-8 without control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct ThreadKey(String);

impl ThreadKey {
    /// Checks and takes a key.
    ///
    /// # Errors
    /// `Invalid` when it is empty or holds control characters, `LimitExceeded` over 500 bytes.
    pub fn new(key: impl Into<String>) -> Result<Self> {
        let key = key.into();
        limits::check_key("thread key", &key)?;
        Ok(Self(key))
    }

    /// The key as text.
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

/// A change of what a thread says about itself. A field that is `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ThreadPatch {
    /// A new title; `Some(None)` takes it away.
    pub title: Option<Option<String>>,
    /// New metadata in place of the old.
    pub metadata: Option<Map>,
    /// New state in place of the old.
    pub state: Option<Map>,
    /// A new instant of expiry; `Some(None)` lets it live.
    pub expires_at: Option<Option<Timestamp>>,
}

impl ThreadPatch {
    /// Whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it changes the title, metadata or state, which are stored as one text.
    #[must_use]
    pub fn changes_thread_body(&self) -> bool {
        self.title.is_some() || self.metadata.is_some() || self.state.is_some()
    }

    /// Checks what every store must be able to keep.
    ///
    /// # Errors
    /// `Invalid` for NUL characters, `LimitExceeded` for sizes.
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
