use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{
    ChangeTag, Expected, JsonText, Owner, Positions, RecordCondition, RecordName, RecordState, Result, StoreError,
    TaggedNumber, ThreadId, Timestamp, UserId, limits,
};

/// The owner of a record. Deleting the owner deletes the record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordOwner {
    /// A thread. Its records are written only by commits on the thread.
    Thread(ThreadId),
    /// A user.
    User(UserId),
    /// The tenant. All its users can read these records; only the application can write them.
    Tenant,
}

impl RecordOwner {
    /// Returns the user or tenant as an [`Owner`]; `None` for a thread.
    #[must_use]
    pub fn as_owner(&self) -> Option<Owner> {
        match self {
            Self::Thread(_) => None,
            Self::User(user) => Some(Owner::User(user.clone())),
            Self::Tenant => Some(Owner::Tenant),
        }
    }
}

impl From<Owner> for RecordOwner {
    fn from(owner: Owner) -> Self {
        match owner {
            Owner::User(user) => Self::User(user),
            Owner::Tenant => Self::Tenant,
        }
    }
}

/// The namespace of a record. Text form: `app/NAME` or `system/NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Namespace {
    /// A namespace that the application may use.
    App(String),
    /// A namespace reserved for Threadkeep: journals, approvals, summaries and leases. No API exposes it.
    System(String),
}

impl Namespace {
    /// Creates a namespace for the application.
    ///
    /// # Errors
    /// `Invalid` if the name is empty or contains control characters, `LimitExceeded` for more than 200 bytes.
    pub fn app(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        limits::check_name("namespace", &name)?;
        Ok(Self::App(name))
    }

    /// Creates a namespace reserved for Threadkeep.
    ///
    /// # Errors
    /// The same as [`Namespace::app`].
    pub fn system(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        limits::check_name("namespace", &name)?;
        Ok(Self::System(name))
    }

    /// Returns the namespace in which [`crate::Store::write_derived`] stores a thread's derived records.
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
            _ => Err(StoreError::invalid("namespace", "must start with app/ or system/")),
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

/// A versioned JSON value, identified by owner, namespace and key, and updated by compare-and-set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The namespace.
    pub namespace: Namespace,
    /// The key in the namespace.
    pub key: String,
    /// The value, stored byte for byte.
    pub value: JsonText,
    /// The version, which changes with every write. The same namespace and key never get the same version twice, not even after a
    /// deletion, so that compare-and-set is safe.
    pub version: u64,
    /// The tag of the commit that wrote the record. `None` if an earlier release of Threadkeep, which had no tags, wrote the record,
    /// and for records of users and tenants, which commits do not write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<ChangeTag>,
    /// When it expires. Readers treat an expired record as absent.
    pub expires_at: Option<Timestamp>,
}

impl Record {
    /// Returns the version with its tag.
    #[must_use]
    pub const fn tagged(&self) -> TaggedNumber {
        TaggedNumber { number: self.version, tag: self.tag }
    }
}

/// A write to a record of a user or of the tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordWrite {
    /// A user or the tenant. Only commits write records of threads.
    pub owner: RecordOwner,
    /// The namespace.
    pub namespace: Namespace,
    /// The key in the namespace.
    pub key: String,
    /// The required current version; `Some(0)` if the record must not exist, `None` to write unconditionally.
    pub expected: Option<u64>,
    /// The new value; `None` deletes the record.
    pub value: Option<JsonText>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

impl RecordWrite {
    /// Checks the record against the limits that all stores share.
    ///
    /// # Errors
    /// `Invalid` if a name is invalid or the owner is a thread, `LimitExceeded` if the key or value is too large.
    pub fn check(&self) -> Result<()> {
        if matches!(self.owner, RecordOwner::Thread(_)) {
            return Err(StoreError::invalid("record owner", "only commits can write records of threads"));
        }
        self.namespace.check()?;
        limits::check_key("record key", &self.key)?;
        limits::check_at_most(
            "record",
            self.value.as_ref().map_or(0, |value| value.as_str().len()),
            limits::RECORD_BYTES,
        )
    }
}

/// A write to a derived record of a thread. Derived records are computed from the thread and can be computed again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedWrite {
    /// The key in [`Namespace::derived`].
    pub key: String,
    /// The thread's change number when the value was computed.
    pub at_change: TaggedNumber,
    /// The required current version; `None` if the record must not exist.
    pub expected: Option<TaggedNumber>,
    /// The new value.
    pub value: JsonText,
}

impl DerivedWrite {
    /// Returns the name of the record.
    #[must_use]
    pub fn name(&self) -> RecordName {
        RecordName { namespace: Namespace::derived(), key: self.key.clone() }
    }

    /// Returns the new version of the record: the number of `at_change` in the lower 32 bits, and in the upper 32 bits the number of
    /// derived writes since a commit last wrote or deleted the record.
    ///
    /// A commit uses its change number as the version, which fits into 32 bits and exceeds every earlier `at_change`. So versions are
    /// never reused, although derived writes and commits do not coordinate.
    #[must_use]
    pub fn version(&self) -> u64 {
        (self.count_writes() << 32) | self.at_change.number
    }

    fn count_writes(&self) -> u64 {
        self.expected.map_or(0, |version| version.number >> 32) + 1
    }

    /// Checks the record against the limits that all stores share.
    ///
    /// # Errors
    /// `Invalid` if the key is invalid; `LimitExceeded` if the key or value is too large, or after more than 2,147,483,647 derived
    /// writes since the last commit that wrote or deleted the record.
    pub fn check(&self) -> Result<()> {
        limits::check_key("record key", &self.key)?;
        limits::check_at_most("record", self.value.as_str().len(), limits::RECORD_BYTES)?;
        let writes = self.count_writes();
        let max = u64::from(u32::MAX >> 1);
        if writes > max {
            return Err(StoreError::LimitExceeded { limit: "writes to a derived record", max, actual: writes });
        }
        Ok(())
    }

    /// Checks the write against the positions of the thread and the version of the record (`None` if the record does not exist). The
    /// new version gets the thread's current tag.
    ///
    /// # Errors
    /// `Conflict` with the actual change or version.
    pub fn check_against(&self, positions: Positions, actual: Option<TaggedNumber>) -> Result<()> {
        Expected::Change(self.at_change).check(positions)?;
        let state = self.expected.map_or(RecordState::Absent, RecordState::Version);
        RecordCondition { name: self.name(), state }.check(actual)
    }
}

/// The result of a write to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteOutcome {
    /// The new version; 0 for a deletion, even if there was nothing to delete.
    pub version: u64,
    /// The tag of the version, as in [`Record::tag`].
    pub tag: Option<ChangeTag>,
}

impl WriteOutcome {
    /// Returns the version with its tag.
    #[must_use]
    pub const fn tagged(&self) -> TaggedNumber {
        TaggedNumber { number: self.version, tag: self.tag }
    }
}

/// A query for records, which are listed by namespace, then key, both in byte order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordQuery {
    /// The owner of the records.
    pub owner: RecordOwner,
    /// The namespace; `None` for all, including those of Threadkeep.
    pub namespace: Option<Namespace>,
    /// Only keys with this prefix.
    pub key_prefix: String,
    /// Only records after this one, for the next page.
    pub after: Option<(Namespace, String)>,
    /// The maximum number of records (1 to [`limits::PAGE`]).
    pub limit: usize,
}

impl RecordQuery {
    /// Creates a query for all records of an owner, in pages of the maximum size.
    #[must_use]
    pub fn of(owner: RecordOwner) -> Self {
        Self { owner, namespace: None, key_prefix: String::new(), after: None, limit: limits::PAGE }
    }
}
