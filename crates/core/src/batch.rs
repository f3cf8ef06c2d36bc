use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    ChangeTag, Checksum, Content, JsonText, MessageId, Namespace, NewMessage, Positions, Result, StoreError,
    TaggedNumber, ThreadPatch, Timestamp, codec, limits,
};

/// The changes that one commit makes to one thread, all or nothing.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Makes retries of the commit idempotent.
    pub key: IdempotencyKey,
    /// A digest of the request that uses the key. The same key with a different fingerprint is a conflict.
    pub fingerprint: Fingerprint,
    /// A precondition on the thread's positions.
    pub expected: Option<Expected>,
    /// Preconditions on the thread's records.
    pub require: Vec<RecordCondition>,
    /// Messages to append, in order.
    pub append: Vec<NewMessage>,
    /// Messages whose content is replaced. Position, id and `created_at` are unchanged.
    pub replace: Vec<Replacement>,
    /// Messages to erase. Each is replaced by a tombstone.
    pub erase: Vec<MessageId>,
    /// Removes every message below this position, without leaving tombstones. At most `seq + 1`, where `seq` is the thread's last
    /// position after appending.
    pub trim_below: Option<u64>,
    /// Records to write.
    pub put: Vec<PutRecord>,
    /// Records to delete. Missing ones are ignored.
    pub delete: Vec<RecordName>,
    /// Changes of title, metadata, state and expiry.
    pub patch: ThreadPatch,
    /// When the commit must be synced to disk.
    pub sync_policy: SyncPolicy,
}

/// When a commit must be synced to disk, in stores on a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before it is acknowledged.
    #[default]
    Now,
    /// With the next commit that is synced, at the latest. The commit survives the end of this process, but a power failure may undo it
    /// together with all deferred commits after it. A store may treat it as [`SyncPolicy::Now`].
    Deferred,
}

impl Batch {
    /// Creates a batch without changes.
    #[must_use]
    pub fn new(key: IdempotencyKey, fingerprint: Fingerprint) -> Self {
        Self {
            key,
            fingerprint,
            expected: None,
            require: Vec::new(),
            append: Vec::new(),
            replace: Vec::new(),
            erase: Vec::new(),
            trim_below: None,
            put: Vec::new(),
            delete: Vec::new(),
            patch: ThreadPatch::default(),
            sync_policy: SyncPolicy::Now,
        }
    }

    /// Whether the batch changes nothing. Committing an empty batch succeeds, but is not recorded and produces no event.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_append_only() && self.append.is_empty()
    }

    /// Whether the batch only appends messages, the only change that [`crate::Access::Append`] allows.
    #[must_use]
    pub fn is_append_only(&self) -> bool {
        self.replace.is_empty()
            && self.erase.is_empty()
            && self.trim_below.is_none()
            && self.put.is_empty()
            && self.delete.is_empty()
            && self.patch.is_empty()
    }

    /// Performs all checks that need no stored data, and encodes the content. Every store calls this method first.
    ///
    /// # Errors
    /// `Invalid` if a name is invalid, a text contains NUL, or a message or record appears twice; `LimitExceeded` if a size or count
    /// exceeds its limit.
    pub fn encode(&self) -> Result<EncodedBatch> {
        self.check()?;
        let append = self.append.iter().map(|message| codec::encode_content(&message.content));
        let replace = self.replace.iter().map(|replacement| codec::encode_content(&replacement.content));
        let append = append.collect::<Result<Vec<_>>>()?;
        let checksums = self.append.iter().zip(&append).map(|(message, body)| message.checksum(body)).collect();
        let encoded = EncodedBatch { append, checksums, replace: replace.collect::<Result<_>>()? };
        let bytes = encoded.append.iter().chain(&encoded.replace).map(String::len).sum();
        limits::check_at_most("commit bytes", bytes, limits::COMMIT_BYTES)?;
        Ok(encoded)
    }

    fn check(&self) -> Result<()> {
        self.key.check()?;
        limits::check_count("messages per commit", self.append.len(), limits::COMMIT_MESSAGES)?;
        limits::check_count("replacements per commit", self.replace.len(), limits::COMMIT_EDITS)?;
        limits::check_count("erasures per commit", self.erase.len(), limits::COMMIT_EDITS)?;
        let records = self.put.len() + self.delete.len() + self.require.len();
        limits::check_count("records per commit", records, limits::COMMIT_RECORDS)?;
        self.append.iter().try_for_each(NewMessage::check)?;
        self.replace.iter().try_for_each(|replacement| replacement.content.check())?;
        for put in &self.put {
            limits::check_at_most("record", put.value.as_str().len(), limits::RECORD_BYTES)?;
        }
        self.patch.check()?;
        self.check_duplicates()
    }

    fn check_duplicates(&self) -> Result<()> {
        let appended = self.append.iter().map(|message| message.id);
        let edited = self.replace.iter().map(|replacement| replacement.id).chain(self.erase.iter().copied());
        check_distinct("message id", appended.chain(edited))?;
        check_distinct("external id", self.append.iter().filter_map(|message| message.external_id.as_deref()))?;
        let written = self.put.iter().map(|put| &put.name).chain(&self.delete);
        let required = self.require.iter().map(|condition| &condition.name);
        written.clone().chain(required.clone()).try_for_each(RecordName::check)?;
        check_distinct("record", written)?;
        check_distinct("record condition", required)
    }
}

/// The content of a batch in its stored form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedBatch {
    /// The content of each appended message.
    pub append: Vec<String>,
    /// The checksum of each appended message.
    pub checksums: Vec<Checksum>,
    /// The content of each replacement.
    pub replace: Vec<String>,
}

fn check_distinct<T: Eq + std::hash::Hash>(field: &'static str, names: impl IntoIterator<Item = T>) -> Result<()> {
    let mut seen = HashSet::new();
    if names.into_iter().all(|name| seen.insert(name)) {
        Ok(())
    } else {
        Err(StoreError::invalid(field, "appears twice in one commit"))
    }
}

/// Identifies the retries of a commit: within one thread and [`crate::IDEMPOTENCY_WINDOW_MS`], a second commit with the same key
/// has no effect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdempotencyKey {
    /// Generated for a caller without a key, so that internal retries are idempotent.
    #[serde(rename = "minted")]
    Generated(Uuid),
    /// Chosen by the caller: 1 to 500 bytes.
    #[serde(rename = "given")]
    FromCaller(String),
}

impl IdempotencyKey {
    fn check(&self) -> Result<()> {
        match self {
            Self::Generated(_) => Ok(()),
            Self::FromCaller(key) => limits::check_key("idempotency key", key),
        }
    }

    /// Encodes the key as bytes, to be stored and indexed. Different keys have different bytes.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Generated(uuid) => uuid.as_bytes().to_vec(),
            // The prefix distinguishes a caller's key of 16 bytes from a generated one.
            Self::FromCaller(key) => [b"given:", key.as_bytes()].concat(),
        }
    }

    /// Decodes a key that [`IdempotencyKey::to_bytes`] encoded.
    ///
    /// # Errors
    /// `Corrupt` for other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if let Ok(uuid) = Uuid::from_slice(bytes)
            && !bytes.starts_with(b"given:")
        {
            return Ok(Self::Generated(uuid));
        }
        let text = bytes.strip_prefix(b"given:").and_then(|key| std::str::from_utf8(key).ok());
        text.map(|key| Self::FromCaller(key.to_owned()))
            .ok_or_else(|| StoreError::corrupt("idempotency key", "neither a UUID nor a caller's key"))
    }
}

/// A short digest of a caller's request, without generated ids and timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 8]);

impl Fingerprint {
    /// Computes the digest: the first 8 bytes of the SHA-256.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest;
        let digest = sha2::Sha256::digest(bytes);
        let mut short = [0; 8];
        short.copy_from_slice(&digest[..8]);
        Self(short)
    }
}

/// A precondition on a thread's positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The last message must have this position.
    Seq(u64),
    /// The thread must be at this change number. If both numbers have a tag, they must be from the same commit
    /// ([`TaggedNumber::may_be_same`]).
    Change(TaggedNumber),
}

impl Expected {
    /// Checks the precondition against the positions of a thread.
    ///
    /// # Errors
    /// `Conflict` with the actual position or change.
    pub fn check(self, positions: Positions) -> Result<()> {
        use crate::Conflict;
        match self {
            Self::Seq(expected) if expected != positions.seq => {
                Err(Conflict::Seq { expected, actual: positions.seq }.into())
            }
            Self::Change(expected) if !expected.may_be_same(positions.tagged()) => {
                Err(Conflict::Change { expected, actual: positions.tagged() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// The name of a record, unique among the records of its owner.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordName {
    /// The namespace.
    pub namespace: Namespace,
    /// The key in the namespace: 1 to 500 bytes.
    pub key: String,
}

impl RecordName {
    /// Returns the name of the record that identifies the driver of a thread's current turn. The record is written when a run locks
    /// the thread and deleted when the run releases the thread; an interrupted run leaves the record behind. Stores can find these
    /// records across all threads ([`crate::Maintenance::list_driven_threads`]).
    #[must_use]
    pub fn driver() -> Self {
        Self { namespace: Namespace::System("run".to_owned()), key: "active".to_owned() }
    }

    fn check(&self) -> Result<()> {
        self.namespace.check()?;
        limits::check_key("record key", &self.key)
    }
}

/// A precondition on a record of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordCondition {
    /// The record.
    pub name: RecordName,
    /// The required state.
    pub state: RecordState,
}

/// The required state of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// The record does not exist or has expired.
    Absent,
    /// The record exists with this version. If both versions have a tag, they must be from the same commit
    /// ([`TaggedNumber::may_be_same`]).
    Version(TaggedNumber),
}

impl RecordCondition {
    /// Checks the condition against the version of the record; `None` if the record does not exist.
    ///
    /// # Errors
    /// `Conflict` with the actual version.
    pub fn check(&self, actual: Option<TaggedNumber>) -> Result<()> {
        let is_met = match self.state {
            RecordState::Absent => actual.is_none(),
            RecordState::Version(version) => actual.is_some_and(|actual| version.may_be_same(actual)),
        };
        if is_met {
            return Ok(());
        }
        let RecordName { namespace, key } = self.name.clone();
        Err(crate::Conflict::Record { namespace, key, actual }.into())
    }
}

/// A write to a record of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutRecord {
    /// The record.
    pub name: RecordName,
    /// Its new value.
    pub value: JsonText,
    /// When it expires. Readers treat an expired record as absent.
    pub expires_at: Option<Timestamp>,
}

/// New content of a message.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// The message.
    pub id: MessageId,
    /// Its new content.
    pub content: Content,
}

impl Replacement {
    /// Computes the checksum of the message after the replacement. `body` is the new content as stored.
    #[must_use]
    pub fn checksum(&self, created_at: Timestamp, external_id: Option<&str>, body: &str) -> Checksum {
        Checksum::of(self.id, Some(self.content.role), created_at, external_id, body)
    }
}

/// The result of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitOutcome {
    /// The change number of the commit; the thread's current change number if the batch was empty.
    pub change: u64,
    /// The tag of that change; `None` if unknown.
    pub tag: Option<ChangeTag>,
    /// The position of the first appended message; `seq + 1` if none was appended.
    pub first_seq: u64,
    /// The number of appended messages.
    pub count: u64,
    /// Whether this is the result of an earlier commit with the same key.
    pub replayed: bool,
}

impl CommitOutcome {
    /// Returns the change with its tag, which is also the version of the records that the commit wrote.
    #[must_use]
    pub const fn tagged(&self) -> TaggedNumber {
        TaggedNumber { number: self.change, tag: self.tag }
    }
}
