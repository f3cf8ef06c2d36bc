use std::collections::HashSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    ChangeTag, Checksum, Content, JsonText, MessageId, Namespace, NewMessage, Positions, Result, StoreError, Tagged,
    ThreadPatch, Timestamp, codec, limits,
};

/// Everything that one commit does to one thread: all of it or nothing.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Makes a repeated commit count once.
    pub key: IdempotencyKey,
    /// What the key stands for; the same key with another fingerprint is a conflict.
    pub fingerprint: Fingerprint,
    /// What must be true of the thread's positions.
    pub expected: Option<Expected>,
    /// What must be true of the thread's records.
    pub require: Vec<RecordCondition>,
    /// Messages to add at the end, in order.
    pub append: Vec<NewMessage>,
    /// Messages to say differently; position, id and `created_at` stay.
    pub replace: Vec<Replacement>,
    /// Messages to leave only a tombstone of.
    pub erase: Vec<MessageId>,
    /// Drop every message below this position, without tombstones; at most `seq + 1` (after the append).
    pub trim_below: Option<u64>,
    /// Records to write.
    pub put: Vec<PutRecord>,
    /// Records to delete; absent ones are ignored.
    pub delete: Vec<RecordName>,
    /// A change of what the thread says about itself.
    pub patch: ThreadPatch,
    /// When it must be on the disk.
    pub urgency: Urgency,
}

/// When a commit must be on the disk of a store that has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Urgency {
    /// Before it is acknowledged.
    #[default]
    Now,
    /// With the next commit that must, at the latest. It survives the end of this process, but a power cut may take it, and
    /// what is deferred after it, as if it had not been made. A store may treat it as [`Urgency::Now`].
    Deferred,
}

impl Batch {
    /// Makes a batch that does nothing yet.
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
            urgency: Urgency::Now,
        }
    }

    /// Whether it changes nothing: such a commit is not recorded, makes no event and is no error.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_append_only() && self.append.is_empty()
    }

    /// Whether it only adds messages, which is all that [`crate::Access::Append`] allows.
    #[must_use]
    pub fn is_append_only(&self) -> bool {
        self.replace.is_empty()
            && self.erase.is_empty()
            && self.trim_below.is_none()
            && self.put.is_empty()
            && self.delete.is_empty()
            && self.patch.is_empty()
    }

    /// Checks what can be told without the store, and encodes the content. Every store calls it before anything else.
    ///
    /// # Errors
    /// `Invalid` when names are bad, texts hold NUL, or one message or record is named twice;
    /// `LimitExceeded` for sizes and counts.
    pub fn encode(&self) -> Result<EncodedBatch> {
        self.check()?;
        let append = self.append.iter().map(|message| codec::encode_content(&message.content));
        let replace = self.replace.iter().map(|replacement| codec::encode_content(&replacement.content));
        let append = append.collect::<Result<Vec<_>>>()?;
        let checksums = self.append.iter().zip(&append).map(|(message, body)| message.checksum(body)).collect();
        let encoded = EncodedBatch { append, checksums, replace: replace.collect::<Result<_>>()? };
        let bytes = encoded.append.iter().chain(&encoded.replace).map(String::len).sum();
        limits::check_bytes("commit bytes", bytes, limits::COMMIT_BYTES)?;
        Ok(encoded)
    }

    fn check(&self) -> Result<()> {
        self.key.check()?;
        limits::check_count("messages of a commit", self.append.len(), limits::COMMIT_MESSAGES)?;
        limits::check_count("replacements of a commit", self.replace.len(), limits::COMMIT_EDITS)?;
        limits::check_count("erasures of a commit", self.erase.len(), limits::COMMIT_EDITS)?;
        let records = self.put.len() + self.delete.len() + self.require.len();
        limits::check_count("documents of a commit", records, limits::COMMIT_RECORDS)?;
        self.append.iter().try_for_each(NewMessage::check)?;
        self.replace.iter().try_for_each(|replacement| replacement.content.check())?;
        for put in &self.put {
            limits::check_bytes("document", put.value.as_str().len(), limits::RECORD_BYTES)?;
        }
        self.patch.check()?;
        self.check_named_once()
    }

    fn check_named_once(&self) -> Result<()> {
        let appended = self.append.iter().map(|message| message.id);
        let edited = self.replace.iter().map(|replacement| replacement.id).chain(self.erase.iter().copied());
        once("message id", appended.chain(edited))?;
        once("external id", self.append.iter().filter_map(|message| message.external_id.as_deref()))?;
        let put = self.put.iter().map(|put| &put.name);
        let written = put.chain(&self.delete);
        let required = self.require.iter().map(|condition| &condition.name);
        written.clone().chain(required.clone()).try_for_each(RecordName::check)?;
        once("document", written)?;
        once("document condition", required)
    }
}

/// The content of a batch as stores keep it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EncodedBatch {
    /// The content of each appended message.
    pub append: Vec<String>,
    /// The checksum of each appended message.
    pub checksums: Vec<Checksum>,
    /// The content of each replacement.
    pub replace: Vec<String>,
}

fn once<T: Eq + std::hash::Hash>(field: &'static str, names: impl IntoIterator<Item = T>) -> Result<()> {
    let mut seen = HashSet::new();
    if names.into_iter().all(|name| seen.insert(name)) {
        Ok(())
    } else {
        Err(StoreError::invalid(field, "named twice in one commit"))
    }
}

/// What tells a repeated commit from a second one, within its thread and for [`crate::IDEMPOTENCY_WINDOW_MS`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdempotencyKey {
    /// Minted for a caller that gave none, so that our own retries count once.
    Minted(Uuid),
    /// Given by the caller: 1 to 500 bytes.
    Given(String),
}

impl IdempotencyKey {
    fn check(&self) -> Result<()> {
        match self {
            Self::Minted(_) => Ok(()),
            Self::Given(key) => limits::check_key("idempotency key", key),
        }
    }

    /// The key as bytes for an index: no two keys share them.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Minted(uuid) => uuid.as_bytes().to_vec(),
            // The prefix keeps a given key of 16 bytes from being a minted one.
            Self::Given(key) => [b"given:", key.as_bytes()].concat(),
        }
    }

    /// Reads what [`IdempotencyKey::to_bytes`] wrote.
    ///
    /// # Errors
    /// `Corrupt` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        if let Ok(uuid) = Uuid::from_slice(bytes)
            && !bytes.starts_with(b"given:")
        {
            return Ok(Self::Minted(uuid));
        }
        let text = bytes.strip_prefix(b"given:").and_then(|key| std::str::from_utf8(key).ok());
        text.map(|key| Self::Given(key.to_owned()))
            .ok_or_else(|| StoreError::corrupt("idempotency key", "neither a UUID nor a given key"))
    }
}

/// A short digest of what a caller asked for, ids and instants that were minted for it left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Fingerprint(pub [u8; 8]);

impl Fingerprint {
    /// The digest of some bytes: the first 8 of their SHA-256.
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
    /// The last position must be this one.
    Seq(u64),
    /// The change position must be this one, and of the same commit.
    Change(Tagged),
}

impl Expected {
    /// Holds the expectation against a thread.
    ///
    /// # Errors
    /// `Conflict` with the actual position.
    pub fn check(self, positions: Positions) -> Result<()> {
        use crate::Conflict;
        match self {
            Self::Seq(expected) if expected != positions.seq => {
                Err(Conflict::Seq { expected, actual: positions.seq }.into())
            }
            Self::Change(expected) if !expected.is_same(positions.tagged()) => {
                Err(Conflict::Change { expected, actual: positions.tagged() }.into())
            }
            _ => Ok(()),
        }
    }
}

/// A thread-owned record's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordName {
    /// Its family.
    pub namespace: Namespace,
    /// Its name in the family: 1 to 500 bytes.
    pub key: String,
}

impl RecordName {
    /// The record of a thread that says who drives it: there from the moment that a run takes the thread to the moment
    /// that it lets go, and left behind by one that was cut. Stores find it in all threads at once
    /// ([`crate::Maintenance::list_driven_threads`]).
    #[must_use]
    pub fn driver() -> Self {
        Self { namespace: Namespace::System("run".to_owned()), key: "active".to_owned() }
    }

    fn check(&self) -> Result<()> {
        self.namespace.check()?;
        limits::check_key("document key", &self.key)
    }
}

/// A precondition on a thread-owned record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordCondition {
    /// Which.
    pub name: RecordName,
    /// How it must be.
    pub state: RecordState,
}

/// How a record must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordState {
    /// Not there (or expired).
    Absent,
    /// There, at this version, and written by the same commit.
    Version(Tagged),
}

impl RecordCondition {
    /// Holds the condition against the version that the record has, if it is there.
    ///
    /// # Errors
    /// `Conflict` with the actual version.
    pub fn check(&self, actual: Option<Tagged>) -> Result<()> {
        let met = match self.state {
            RecordState::Absent => actual.is_none(),
            RecordState::Version(version) => actual.is_some_and(|actual| version.is_same(actual)),
        };
        if met {
            return Ok(());
        }
        let RecordName { namespace, key } = self.name.clone();
        Err(crate::Conflict::Record { namespace, key, actual }.into())
    }
}

/// A write to a thread-owned record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PutRecord {
    /// Which.
    pub name: RecordName,
    /// What it shall hold.
    pub value: JsonText,
    /// From when on it shall be as if it had never been.
    pub expires_at: Option<Timestamp>,
}

/// What a message shall say instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Replacement {
    /// Which message.
    pub id: MessageId,
    /// Its new content.
    pub content: Content,
}

impl Replacement {
    /// The checksum of the message that it makes: of its new content as stored, and of what stays.
    #[must_use]
    pub fn checksum(&self, created_at: Timestamp, external_id: Option<&str>, body: &str) -> Checksum {
        Checksum::of(self.id, Some(self.content.role), created_at, external_id, body)
    }
}

/// What a commit did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitOutcome {
    /// The change position that the commit made; the thread's present one if it was empty.
    pub change: u64,
    /// The tag of that change; `None` where the store knows none.
    pub tag: Option<ChangeTag>,
    /// The position of the first appended message; `seq + 1` if none was appended.
    pub first_seq: u64,
    /// How many messages were appended.
    pub count: u64,
    /// Whether this is the answer to an earlier commit with the same key.
    pub replayed: bool,
}

impl CommitOutcome {
    /// The change with its tag: also the version of the records that the commit wrote.
    #[must_use]
    pub const fn tagged(&self) -> Tagged {
        Tagged { number: self.change, tag: self.tag }
    }
}
