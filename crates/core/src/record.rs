use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    ChangeTag, Expected, JsonText, Owner, Positions, RecordCondition, RecordName, RecordState, Result, StoreError,
    Tagged, ThreadId, Timestamp, UserId, limits,
};

/// Whom a record belongs to. It lives and dies with its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordOwner {
    /// A thread; written only by commits of that thread.
    Thread(ThreadId),
    /// A user.
    User(UserId),
    /// The tenant: read by all its users, written by the application.
    Tenant,
}

impl RecordOwner {
    /// The user or the tenant that it is; `None` for a thread.
    #[must_use]
    pub fn as_owner(&self) -> Option<Owner> {
        match self {
            Self::Thread(_) => None,
            Self::User(user) => Some(Owner::User(user.clone())),
            Self::Tenant => Some(Owner::Tenant),
        }
    }
}

/// Which family of records one belongs to. Text form: `app/NAME` or `system/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Namespace {
    /// An application's own.
    App(String),
    /// Threadkeep's own (journals, approvals, summaries, leases): reachable through no door.
    System(String),
}

impl Namespace {
    /// Makes a namespace of an application.
    ///
    /// # Errors
    /// `Invalid` when the name is empty or holds control characters, `LimitExceeded` over 200 bytes.
    pub fn app(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        limits::check_name("namespace", &name)?;
        Ok(Self::App(name))
    }

    /// Makes a namespace of Threadkeep itself.
    ///
    /// # Errors
    /// As [`Namespace::app`].
    pub fn system(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        limits::check_name("namespace", &name)?;
        Ok(Self::System(name))
    }

    /// The family of a thread's derived records, which [`crate::Store::write_derived`] writes.
    #[must_use]
    pub fn derived() -> Self {
        Self::System("summary".to_owned())
    }

    pub(crate) fn check(&self) -> Result<()> {
        let (Self::App(name) | Self::System(name)) = self;
        limits::check_name("namespace", name)
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::App(name) => write!(f, "app/{name}"),
            Self::System(name) => write!(f, "system/{name}"),
        }
    }
}

impl std::str::FromStr for Namespace {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self> {
        match text.split_once('/') {
            Some(("app", name)) => Self::app(name),
            Some(("system", name)) => Self::system(name),
            _ => Err(StoreError::invalid("namespace", "does not start with app/ or system/")),
        }
    }
}

impl Serialize for Namespace {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Namespace {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// A small JSON value with a name, changed by compare-and-set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Its family.
    pub namespace: Namespace,
    /// Its name in the family.
    pub key: String,
    /// What it holds, byte for byte.
    pub value: JsonText,
    /// Another one with each write. It never repeats for a name, so that compare-and-set cannot be fooled by a deletion.
    pub version: u64,
    /// The tag of the change of its thread that it was written at; `None` for one from before there were tags, and for one of a
    /// user or a tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<ChangeTag>,
    /// From when on it is as if it had never been.
    pub expires_at: Option<Timestamp>,
}

impl Record {
    /// The version with its tag.
    #[must_use]
    pub const fn tagged(&self) -> Tagged {
        Tagged { number: self.version, tag: self.tag }
    }
}

/// A write to a record of a user or of the tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordWrite {
    /// A user or the tenant; thread-owned records change through commits only.
    pub owner: RecordOwner,
    /// Its family.
    pub namespace: Namespace,
    /// Its name in the family.
    pub key: String,
    /// The version that it must have now, `Some(0)` for absent; `None` writes whatever is there.
    pub expected: Option<u64>,
    /// What it shall hold; `None` deletes it.
    pub value: Option<JsonText>,
    /// From when on it shall be as if it had never been.
    pub expires_at: Option<Timestamp>,
}

impl RecordWrite {
    /// Checks what every store must be able to keep.
    ///
    /// # Errors
    /// `Invalid` for bad names and a thread as owner, `LimitExceeded` for sizes.
    pub fn check(&self) -> Result<()> {
        if matches!(self.owner, RecordOwner::Thread(_)) {
            return Err(StoreError::invalid("document owner", "a thread's documents change by commits"));
        }
        self.namespace.check()?;
        limits::check_key("document key", &self.key)?;
        limits::check_bytes(
            "document",
            self.value.as_ref().map_or(0, |value| value.as_str().len()),
            limits::RECORD_BYTES,
        )
    }
}

/// A write to a derived record of a thread: what was computed from the thread and can be computed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedWrite {
    /// Its name in [`Namespace::derived`].
    pub key: String,
    /// The change position at which everything was read that it was derived from.
    pub at_change: Tagged,
    /// The version that it had then; `None` for absent.
    pub expected: Option<Tagged>,
    /// What it shall hold.
    pub value: JsonText,
}

impl DerivedWrite {
    /// The record's name among those of its thread.
    #[must_use]
    pub fn name(&self) -> RecordName {
        RecordName { namespace: Namespace::derived(), key: self.key.clone() }
    }

    /// The version that the record gets: `at_change` in the lower 32 bits, and above how often it was written since a commit
    /// last wrote or deleted it.
    ///
    /// Commits give their own change as the version, which fits 32 bits and is beyond every `at_change` before it. So no version
    /// comes back, although neither kind of write knows of the other.
    #[must_use]
    pub fn version(&self) -> u64 {
        (self.writes() << 32) | self.at_change.number
    }

    fn writes(&self) -> u64 {
        self.expected.map_or(0, |version| version.number >> 32) + 1
    }

    /// Checks what every store must be able to keep.
    ///
    /// # Errors
    /// `Invalid` for bad names, `LimitExceeded` for sizes and beyond 2,147,483,647 writes without a commit that writes it.
    pub fn check(&self) -> Result<()> {
        limits::check_key("document key", &self.key)?;
        limits::check_bytes("document", self.value.as_str().len(), limits::RECORD_BYTES)?;
        let writes = self.writes();
        let max = u64::from(u32::MAX >> 1);
        if writes > max {
            return Err(StoreError::LimitExceeded { limit: "writes of a derived document", max, actual: writes });
        }
        Ok(())
    }

    /// Holds the write against where the thread stands and the version that the record has, if it is there. The record gets
    /// the thread's tag.
    ///
    /// # Errors
    /// `Conflict` with the actual change or version.
    pub fn check_against(&self, positions: Positions, actual: Option<Tagged>) -> Result<()> {
        Expected::Change(self.at_change).check(positions)?;
        let state = self.expected.map_or(RecordState::Absent, RecordState::Version);
        RecordCondition { name: self.name(), state }.check(actual)
    }
}

/// What a write to a record did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOutcome {
    /// The version it has now; 0 when it was deleted or was not there.
    pub version: u64,
    /// The tag of that version, as [`Record::tag`].
    pub tag: Option<ChangeTag>,
}

impl WriteOutcome {
    /// The version with its tag.
    #[must_use]
    pub const fn tagged(&self) -> Tagged {
        Tagged { number: self.version, tag: self.tag }
    }
}

/// Which records to list: by namespace, then key, both in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordQuery {
    /// Whose.
    pub owner: RecordOwner,
    /// Of which family; `None` for all, system families included.
    pub namespace: Option<Namespace>,
    /// Only keys that start so.
    pub key_prefix: String,
    /// Only those after this one, for the next page.
    pub after: Option<(Namespace, String)>,
    /// At most so many (1 to [`limits::PAGE`]).
    pub limit: usize,
}

impl RecordQuery {
    /// Makes a query for all records of an owner, in pages of the greatest size.
    #[must_use]
    pub fn of(owner: RecordOwner) -> Self {
        Self { owner, namespace: None, key_prefix: String::new(), after: None, limit: limits::PAGE }
    }
}
