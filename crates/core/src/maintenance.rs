use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    ChangeTag, Checksum, Effect, Fingerprint, IdempotencyKey, MessageId, Owner, Portable, Positions, Record,
    RecordOwner, Result, Snapshot, TenantId, ThreadId, ThreadKey, Timestamp, codec, limits,
};

/// How durable acknowledged commits are with the current configuration of a store's servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreDurability {
    /// What acknowledged commits survive, in words.
    pub description: String,
    /// Whether a restart of a server loses data.
    pub is_volatile: bool,
}

/// Administration of a store: migration, checks and cleanup. Only for administrators.
///
/// Access is not limited to a tenant. Migration, the command `check`, backups and the conformance tests use it.
#[async_trait]
pub trait Maintenance: Portable + std::fmt::Debug {
    /// What acknowledged commits survive, as found when the store was opened; `None` if this does not depend on the configuration of
    /// servers, or is stated only in the documentation.
    fn durability(&self) -> Option<StoreDurability> {
        None
    }

    /// Lists at most `limit` tenants after the tenant `after` (`None` for the first page), in byte order of their names.
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>>;

    /// Lists at most `limit` owners in a tenant after the owner `after` (`None` for the first page), in byte order of their names.
    /// These are the owners that have, or once had, threads, records or entries in collections. The tenant itself is always the
    /// first. An unknown tenant has no owners. How long former owners are listed depends on the store.
    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>>;

    /// Lists at most `limit` threads that have a driver, or whose driver was interrupted, after the thread `after` (`None` for the first
    /// page). These are the threads with the record [`crate::RecordName::driver`], in byte order of tenant and id. Expired threads are
    /// omitted. The cost depends only on the number of listed threads.
    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>>;

    /// Reads a thread verbatim, expired or not, in chunks: positions, tombstones, revisions, change log, idempotency records, and
    /// content as stored text. The first chunk (`after` is `None`) contains everything except the entries beyond `limit`; a later chunk
    /// contains at most `limit` entries after the position `after`. An unknown thread is `NotFound`.
    ///
    /// Damaged rows do not make the call fail. Stored text and checksums are returned unchecked. Positions without a readable row are
    /// [`DumpEntry::Lost`]; other unreadable data is omitted and listed in [`Dump::unreadable`]. The result is `Corrupt` only if nothing
    /// of the thread can be read.
    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump>;

    /// Takes a snapshot of the whole store, which later writes do not affect. Its lists omit threads and records that have expired at
    /// `now`.
    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>>;

    /// Writes a thread verbatim, chunk by chunk, in the order in which the chunks were dumped.
    ///
    /// The thread is not visible until its last chunk (`next` is `None`) is written. A first chunk discards the chunks of an earlier
    /// restoration that was not completed. An existing thread with the same id or key is `Conflict::Thread`; a later chunk without a
    /// first chunk is `Invalid`. Stored text and checksums are not validated, so that a damaged thread can be moved; `verify` reports
    /// the damage. Lost positions stay empty. A position beyond [`limits::LAST_POSITION`] is `LimitExceeded` ([`Dump::check`]). A
    /// thread with a deleted id may be restored at any time.
    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()>;

    /// Writes a record of a user or the tenant verbatim, and overwrites an existing record. Later writes get higher versions. A thread
    /// as owner is `Invalid`.
    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()>;

    /// Removes what is obsolete at `now`: expired threads and records; idempotency records, change logs and deleted ids outside the
    /// window; and every byte that erasing, trimming, deleting or replacing left behind. It works in bounded steps, between which other
    /// calls can run.
    async fn sweep(&self, now: Timestamp) -> Result<SweepReport>;

    /// Reads everything and reports inconsistencies: data that cannot be read, messages that do not match their [`Checksum`], an
    /// index that differs from the text. Changes nothing.
    async fn verify(&self) -> Result<VerifyReport>;

    /// Rebuilds derived data (indexes, counts) from the messages.
    async fn repair(&self, now: Timestamp) -> Result<()>;

    /// Returns unused disk space to the operating system. `Unsupported` if the store has none to return.
    async fn compact(&self) -> Result<()>;
}

/// A thread that has a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrivenThread {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its id.
    pub thread: ThreadId,
    /// Its owner.
    pub owner: Owner,
    /// The record that identifies the driver.
    pub record: Record,
}

/// A chunk of a dumped thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dump {
    /// The thread's row, in the first chunk only.
    pub thread: Option<DumpedThread>,
    /// Its records, in the first chunk only.
    #[serde(rename = "documents")]
    pub records: Vec<Record>,
    /// Its change log and idempotency records, oldest first, in the first chunk only.
    pub commits: Vec<DumpedCommit>,
    /// Its messages and tombstones, by position.
    pub entries: Vec<DumpEntry>,
    /// The `after` of the next chunk; `None` in the last one.
    pub next: Option<u64>,
    /// Descriptions of data that could not be read, except lost positions. They contain no message content and are not serialised.
    #[serde(skip)]
    pub unreadable: Vec<String>,
}

impl Dump {
    /// Adds a [`DumpEntry::Lost`] for each gap between the entries of a chunk. The chunk covers the positions after `after` through
    /// its last entry; the last chunk extends to the end of the thread.
    #[must_use]
    pub fn with_lost(mut self, after: u64, positions: Positions) -> Self {
        let mut expected = after.saturating_add(1).max(positions.first_seq);
        let mut entries = Vec::with_capacity(self.entries.len());
        let mut add_lost = |entries: &mut Vec<DumpEntry>, next: u64| {
            let count = next.saturating_sub(expected);
            if count > 0 {
                entries.push(DumpEntry::Lost { seq: expected, count });
            }
            expected = expected.max(next.saturating_add(1));
        };
        for entry in self.entries {
            add_lost(&mut entries, entry.seq());
            entries.push(entry);
        }
        if self.next.is_none() {
            add_lost(&mut entries, positions.seq.saturating_add(1));
        }
        self.entries = entries;
        self
    }

    /// Checks that no position exceeds [`limits::LAST_POSITION`].
    ///
    /// # Errors
    /// `LimitExceeded` if a position is higher.
    pub fn check(&self) -> Result<()> {
        if let Some(thread) = &self.thread {
            limits::check_positions(thread.positions)?;
        }
        let seq = self.entries.iter().map(DumpEntry::last_seq).max().unwrap_or(0);
        let change = self.commits.iter().map(|commit| commit.change).max().unwrap_or(0);
        limits::check_positions(Positions { seq, change, ..Positions::BEGINNING })
    }

    /// Describes the damaged and lost data of this chunk, without message content.
    pub fn damage(&self) -> impl Iterator<Item = String> {
        self.unreadable.iter().cloned().chain(self.entries.iter().filter_map(DumpEntry::damage))
    }
}

/// A thread without its messages, in a dump.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DumpedThread {
    /// Its owner.
    pub owner: Owner,
    /// Its key.
    pub key: Option<ThreadKey>,
    /// Title, metadata and state as stored ([`crate::codec::encode_thread`]).
    pub body: String,
    /// Its positions.
    pub positions: Positions,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// A commit in the change log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpedCommit {
    /// The change number of the commit.
    pub change: u64,
    /// The `now` of the commit.
    pub at: Timestamp,
    /// Its idempotency key.
    pub key: IdempotencyKey,
    /// The fingerprint of its request.
    pub fingerprint: Fingerprint,
    /// The position of the first message that the commit appended; the next free position at the time if it appended none.
    pub first_seq: u64,
    /// The number of appended messages.
    pub count: u64,
    /// Its effects, except [`Effect::Appended`], which `first_seq` and `count` describe.
    pub effects: Vec<Effect>,
}

impl DumpedCommit {
    /// Returns the tag of the commit, computed from its key.
    #[must_use]
    pub fn tag(&self) -> ChangeTag {
        ChangeTag::of(&self.key)
    }
}

/// A message, or what remains of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DumpEntry {
    /// A message.
    Message {
        /// Its position.
        seq: u64,
        /// Its id.
        id: MessageId,
        /// Its external id.
        external_id: Option<String>,
        /// How often its content was replaced.
        revision: u32,
        /// When it was created.
        created_at: Timestamp,
        /// Its content as stored ([`crate::codec::encode_content`]).
        body: String,
        /// The checksum that was computed when the message was written; `None` if an earlier release of Threadkeep, which had no
        /// checksums, wrote the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        checksum: Option<Checksum>,
    },
    /// An erased message.
    Tombstone {
        /// Its position.
        seq: u64,
        /// Its id.
        id: MessageId,
        /// When it was erased.
        erased_at: Timestamp,
    },
    /// Consecutive positions whose rows are missing or cannot be read. Restoring leaves them empty.
    Lost {
        /// The first position.
        seq: u64,
        /// The number of positions.
        count: u64,
    },
}

impl DumpEntry {
    /// Returns the position of the entry; for lost positions, the first of them.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        match self {
            Self::Message { seq, .. } | Self::Tombstone { seq, .. } | Self::Lost { seq, .. } => *seq,
        }
    }

    /// Returns the position of the entry; for lost positions, the last of them.
    #[must_use]
    pub const fn last_seq(&self) -> u64 {
        match self {
            Self::Message { seq, .. } | Self::Tombstone { seq, .. } => *seq,
            Self::Lost { seq, count } => seq.saturating_add(*count).saturating_sub(1),
        }
    }

    /// Describes the damage, without message content: a message that cannot be decoded or does not match its checksum, or lost
    /// positions. `None` if there is none.
    #[must_use]
    pub fn damage(&self) -> Option<String> {
        match self {
            Self::Tombstone { .. } => None,
            Self::Lost { seq, count: 1 } => Some(format!("position {seq} is missing or cannot be read")),
            Self::Lost { seq, .. } => {
                Some(format!("positions {seq} to {} are missing or cannot be read", self.last_seq()))
            }
            Self::Message { seq, id, external_id, created_at, body, checksum, .. } => {
                let role = codec::stored_role(body);
                let compute = || Checksum::of(*id, role, *created_at, external_id.as_deref(), body);
                message_damage(*seq, *id, body, *checksum, compute)
            }
        }
    }
}

/// Describes the damage to a stored message, without its content; `None` if there is none. `compute` returns the checksum of the
/// data as it is stored now.
#[must_use]
pub fn message_damage(
    seq: u64,
    id: MessageId,
    body: &str,
    checksum: Option<Checksum>,
    compute: impl FnOnce() -> Checksum,
) -> Option<String> {
    match (codec::decode_content(body), checksum) {
        (Err(error), _) => Some(format!("position {seq}, message {id}: {error}")),
        (Ok(_), Some(checksum)) if checksum != compute() => {
            Some(format!("position {seq}, message {id}: checksum mismatch"))
        }
        _ => None,
    }
}

/// The numbers of items that a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SweepReport {
    /// Expired threads.
    pub expired_threads: u64,
    /// Expired records, except those of expired threads.
    #[serde(rename = "expired_documents")]
    pub expired_records: u64,
    /// Idempotency records outside the window.
    pub commit_records: u64,
    /// Deleted ids outside the window.
    pub deleted_ids: u64,
    /// Messages of trimmed and deleted threads whose bytes were still stored.
    pub leftover_messages: u64,
}

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Verified tenants.
    pub tenants: u64,
    /// Verified threads.
    pub threads: u64,
    /// Verified messages.
    pub messages: u64,
    /// Verified messages without a checksum, because an earlier version wrote them. Changed bytes in them are not detected.
    pub unchecked: u64,
    /// Verified records.
    #[serde(rename = "documents")]
    pub records: u64,
    /// The inconsistencies.
    pub findings: Vec<Finding>,
}

/// An inconsistency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The affected thread; `None` if the finding does not concern a thread.
    pub thread: Option<ThreadId>,
    /// A description, without message content.
    pub detail: String,
}

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Primary data is damaged: restore a backup.
    Damage,
    /// Derived data is wrong: `repair` rebuilds it.
    Derived,
}
