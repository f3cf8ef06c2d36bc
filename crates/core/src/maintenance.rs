use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    ChangeTag, Checksum, Effect, Fingerprint, IdempotencyKey, MessageId, Owner, Portable, Positions, Record,
    RecordOwner, Result, Snapshot, TenantId, ThreadId, ThreadKey, Timestamp, codec, limits,
};

/// Administration of a store: moving, checking and cleaning. Never behind a door but an administrator's.
///
/// It sees every tenant. Moving between stores, `check`, backup and the suite stand on it.
#[async_trait]
pub trait Maintenance: Portable + std::fmt::Debug {
    /// Lists tenants in byte order, after a name, at most `limit`.
    async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>>;

    /// Lists everyone in a tenant who owns or owned something, in byte order of the names. The tenant itself is always the
    /// first; an unknown tenant has nobody. How long it is remembered who owned something is the store's own affair.
    async fn list_owners(&self, tenant: &TenantId, after: Option<&Owner>, limit: usize) -> Result<Vec<Owner>>;

    /// Lists the threads that somebody drives, or drove when it ended: those with the record [`crate::RecordName::driver`], by
    /// tenant and id in byte order, after one of them, at most `limit`. Expired threads are left out. It costs what it finds,
    /// however many other threads there are.
    async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>>;

    /// Reads a thread verbatim, expired or not, in chunks: positions, tombstones, revisions, change log, idempotency
    /// records, and content as stored text. Without `after` the chunk holds everything but the entries' rest.
    /// Unknown: `NotFound`.
    ///
    /// One damaged row does not stop it. Stored text and checksums are given as they are, sound or not; positions without a
    /// readable row are [`DumpEntry::Lost`], and what else cannot be read is left out and named in [`Dump::unreadable`].
    /// `Corrupt` only when nothing of the thread can be read.
    async fn dump_thread(&self, tenant: &TenantId, thread: ThreadId, after: Option<u64>, limit: usize) -> Result<Dump>;

    /// Takes a snapshot: a reader of the whole store as it is now, which later writes leave alone. What has expired at `now`
    /// is left out of its lists.
    async fn snapshot(&self, now: Timestamp) -> Result<Box<dyn Snapshot>>;

    /// Writes a thread verbatim, chunk by chunk in the order of dumping.
    ///
    /// The thread is seen by nobody until its last chunk (`next` is `None`) is written; a first chunk discards what an
    /// earlier, unfinished restoration left. A thread that is there already, also by its key, is `Conflict::Thread`; a
    /// later chunk without a first one is `Invalid`. Stored text is taken as it is, decodable or not, and so are checksums: a
    /// damaged thread is moved, and `verify` names the damage. Lost positions stay empty. A position beyond
    /// [`limits::LAST_POSITION`] is `LimitExceeded` ([`Dump::check`]). A deleted id may be restored at any time.
    async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()>;

    /// Writes a record of a user or the tenant verbatim, over what is there. Versions given later are greater than its
    /// version. A thread as owner is `Invalid`.
    async fn restore_record(&self, tenant: &TenantId, owner: &RecordOwner, record: Record) -> Result<()>;

    /// Removes what `now` says is over: expired threads and records, idempotency records, change logs and deleted ids
    /// beyond the window, and every byte that erasing, trimming, deleting or replacing left behind. Bounded steps; other
    /// callers go on meanwhile.
    async fn sweep(&self, now: Timestamp) -> Result<SweepReport>;

    /// Reads everything and says what does not hold together: what cannot be read, messages that are not what was written
    /// ([`Checksum`]), an index that differs from the text. Changes nothing.
    async fn verify(&self) -> Result<VerifyReport>;

    /// Rebuilds whatever is derived (indexes, counts) from the log.
    async fn repair(&self, now: Timestamp) -> Result<()>;

    /// Gives unused space back to the system. `Unsupported` where there is none to give.
    async fn compact(&self) -> Result<()>;
}

/// A thread that somebody drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrivenThread {
    /// Its tenant.
    pub tenant: TenantId,
    /// Its id.
    pub thread: ThreadId,
    /// Whom it belongs to.
    pub owner: Owner,
    /// The record that says so.
    pub record: Record,
}

/// A chunk of a dumped thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Dump {
    /// The thread itself, in the first chunk.
    pub thread: Option<DumpedThread>,
    /// Its records, all in the first chunk.
    #[serde(rename = "documents")]
    pub records: Vec<Record>,
    /// Its change log and idempotency records, oldest first, all in the first chunk.
    pub commits: Vec<DumpedCommit>,
    /// Its messages and tombstones by position.
    pub entries: Vec<DumpEntry>,
    /// What to pass as `after` for the next chunk; `None` in the last.
    pub next: Option<u64>,
    /// What could not be read and is left out, beside lost positions: without any message's text. It does not travel.
    #[serde(skip)]
    pub unreadable: Vec<String>,
}

impl Dump {
    /// Names the positions between the entries that have none as [`DumpEntry::Lost`]: those after `after`, and in the last
    /// chunk those up to the thread's end.
    #[must_use]
    pub fn with_lost(mut self, after: u64, positions: Positions) -> Self {
        let mut expected = after.saturating_add(1).max(positions.first_seq);
        let mut entries = Vec::with_capacity(self.entries.len());
        let mut lose = |entries: &mut Vec<DumpEntry>, upto: u64| {
            let count = upto.saturating_sub(expected);
            if count > 0 {
                entries.push(DumpEntry::Lost { seq: expected, count });
            }
            expected = expected.max(upto.saturating_add(1));
        };
        for entry in self.entries {
            lose(&mut entries, entry.seq());
            entries.push(entry);
        }
        if self.next.is_none() {
            lose(&mut entries, positions.seq.saturating_add(1));
        }
        self.entries = entries;
        self
    }

    /// Checks that no position goes beyond [`limits::LAST_POSITION`].
    ///
    /// # Errors
    /// `LimitExceeded`.
    pub fn check(&self) -> Result<()> {
        if let Some(thread) = &self.thread {
            limits::check_positions(thread.positions)?;
        }
        let seq = self.entries.iter().map(DumpEntry::last_seq).max().unwrap_or(0);
        let change = self.commits.iter().map(|commit| commit.change).max().unwrap_or(0);
        limits::check_positions(Positions { seq, change, ..Positions::BEGINNING })
    }

    /// What is damaged or lost in this chunk, without any message's text.
    pub fn damage(&self) -> impl Iterator<Item = String> {
        self.unreadable.iter().cloned().chain(self.entries.iter().filter_map(DumpEntry::damage))
    }
}

/// A thread's own row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DumpedThread {
    /// Whom it belongs to.
    pub owner: Owner,
    /// What a channel calls it.
    pub key: Option<ThreadKey>,
    /// Title, metadata and state as stored ([`crate::codec::encode_thread`]).
    pub body: String,
    /// Where it stands.
    pub positions: Positions,
    /// When it was opened first.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// One commit as the change log keeps it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpedCommit {
    /// The change position that it made.
    pub change: u64,
    /// When.
    pub at: Timestamp,
    /// What makes its repetition count once.
    pub key: IdempotencyKey,
    /// What that key stands for.
    pub fingerprint: Fingerprint,
    /// The position of the first message that it appended.
    pub first_seq: u64,
    /// How many it appended.
    pub count: u64,
    /// What else it did: its effects without [`Effect::Appended`], which the two members above tell.
    pub effects: Vec<Effect>,
}

impl DumpedCommit {
    /// The commit's tag. Its key tells it, so that it is not stored.
    #[must_use]
    pub fn tag(&self) -> ChangeTag {
        ChangeTag::of(&self.key)
    }
}

/// A message or what is left of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DumpEntry {
    /// A message.
    Message {
        /// Its position.
        seq: u64,
        /// Its id.
        id: MessageId,
        /// What its source calls it.
        external_id: Option<String>,
        /// How often it was replaced.
        revision: u32,
        /// When it was said.
        created_at: Timestamp,
        /// Its content as stored ([`crate::codec::encode_content`]).
        body: String,
        /// The checksum that it was written with; `None` for one from before there were any.
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
    /// Positions whose rows are missing or cannot be read, as many as follow each other. Restoring leaves them empty.
    Lost {
        /// The first of them.
        seq: u64,
        /// How many.
        count: u64,
    },
}

impl DumpEntry {
    /// The position, of several the first.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        match self {
            Self::Message { seq, .. } | Self::Tombstone { seq, .. } | Self::Lost { seq, .. } => *seq,
        }
    }

    /// The position, of several the last.
    #[must_use]
    pub const fn last_seq(&self) -> u64 {
        match self {
            Self::Message { seq, .. } | Self::Tombstone { seq, .. } => *seq,
            Self::Lost { seq, count } => seq.saturating_add(*count).saturating_sub(1),
        }
    }

    /// What is wrong with it, without its text: a message that does not decode or is not what was written, lost positions.
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
                let computed = || Checksum::of(*id, role, *created_at, external_id.as_deref(), body);
                message_damage(*seq, *id, body, *checksum, computed)
            }
        }
    }
}

/// What is wrong with a stored message, without its text. `computed` is the checksum of what is stored.
#[must_use]
pub fn message_damage(
    seq: u64,
    id: MessageId,
    body: &str,
    checksum: Option<Checksum>,
    computed: impl FnOnce() -> Checksum,
) -> Option<String> {
    match (codec::decode_content(body), checksum) {
        (Err(error), _) => Some(format!("position {seq}, message {id}: {error}")),
        (Ok(_), Some(checksum)) if checksum != computed() => {
            Some(format!("position {seq}, message {id}: it is not what was written (the checksum differs)"))
        }
        _ => None,
    }
}

/// What a sweep removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SweepReport {
    /// Threads that had expired.
    pub expired_threads: u64,
    /// Records that had expired, those of expired threads left out.
    #[serde(rename = "expired_documents")]
    pub expired_records: u64,
    /// Records of commits beyond the window.
    pub commit_records: u64,
    /// Deleted ids beyond the window.
    pub deleted_ids: u64,
    /// Messages of trimmed and deleted threads whose bytes were still there.
    pub leftover_messages: u64,
}

/// What a verification saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VerifyReport {
    /// Tenants seen.
    pub tenants: u64,
    /// Threads seen.
    pub threads: u64,
    /// Messages seen.
    pub messages: u64,
    /// How many of them have no checksum: they were written before there were any, so changed bytes would not be found.
    pub unchecked: u64,
    /// Records seen.
    #[serde(rename = "documents")]
    pub records: u64,
    /// What does not hold together.
    pub findings: Vec<Finding>,
}

/// Something that does not hold together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad.
    pub severity: Severity,
    /// The thread that it belongs to, where it belongs to one.
    pub thread: Option<ThreadId>,
    /// What is wrong, without any message's text.
    pub detail: String,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Truth is damaged: restore from a backup.
    Damage,
    /// Something derived is wrong: `repair` rebuilds it.
    Derived,
}
