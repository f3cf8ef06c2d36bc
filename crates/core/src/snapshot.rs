//! Reading a whole store as of one instant.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{Dump, Finding, Portable, Record, RecordOwner, Result, TenantId, Thread};

/// The contents of a store when the snapshot was taken ([`crate::Maintenance::snapshot`]).
///
/// It does not block writers, and later writes, erasures and deletions do not affect it. Access is not limited to a tenant. It
/// occupies one connection until it is dropped, and prevents the store from reclaiming space, so drop it soon. Calls may be
/// concurrent and repeated. After the connection is lost, all calls return `Unavailable` with a reason that is not retryable: take
/// another snapshot and start again.
#[async_trait]
pub trait Snapshot: Portable + std::fmt::Debug {
    /// Returns what is consistent as of one instant: the whole store, or each thread by itself.
    fn consistency(&self) -> Consistency;

    /// Returns by how many bytes the write-ahead log has grown since the snapshot was taken; `None` if the store has no log that
    /// grows while snapshots exist.
    fn log_growth_bytes(&self) -> Option<u64>;

    /// Returns a finding for each thread or record that the lists have omitted so far because its row cannot be read. A damaged row
    /// does not end a list.
    fn unreadable(&self) -> Vec<Finding>;

    /// Counts the readable threads and messages. Cheaper than listing them.
    async fn totals(&self) -> Result<SnapshotTotals>;

    /// Lists at most `limit` ([`crate::limits::PAGE`]) threads of all tenants, in the order of their creation, after the thread with
    /// the number `after` (`None` for the first page). Expired threads are omitted.
    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>>;

    /// Reads threads verbatim, as [`crate::Maintenance::dump_thread`] does, including damaged ones. Returns one chunk for each.
    ///
    /// `numbers` are the [`ListedThread::number`]s, in any order; an unknown number is `NotFound`. `after` applies to the first thread:
    /// its chunk after this position is read instead of its first chunk. The result ends early when `size` is reached. It has at least
    /// one chunk, and only the last chunk can have a `next`. To continue, request the rest of that thread, then the remaining threads.
    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>>;

    /// Lists at most `limit` ([`crate::limits::PAGE`]) records of all users and tenants after the record `after` (`None` for the first
    /// page), in an order that depends on the store. Expired records are omitted. Records of threads are part of the threads' dumps.
    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>>;
}

/// What a snapshot contains consistently as of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// The whole store.
    Store,
    /// Each thread and each record by itself, but different ones as of different instants.
    Thread,
}

/// The size of a snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotTotals {
    /// Threads that have not expired.
    pub threads: u64,
    /// Their messages.
    pub messages: u64,
}

/// A thread in a snapshot.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedThread {
    /// Identifies the thread in this snapshot. Increases in the order of creation.
    pub number: u64,
    /// Its tenant.
    pub tenant: TenantId,
    /// The thread.
    pub thread: Thread,
}

/// The maximum size of one result of [`Snapshot::dump_threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    /// The maximum number of messages and tombstones of all threads together, at most [`crate::limits::PAGE`].
    pub entries: usize,
    /// The number of bytes of text after which no further entry or thread is added.
    pub bytes: usize,
}

/// A record of a user or of a tenant, with its owner.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedRecord {
    /// The tenant.
    pub tenant: TenantId,
    /// The owner in the tenant.
    pub owner: RecordOwner,
    /// The record.
    pub record: Record,
}

/// Collects the findings of a reader that skips damaged data: the first 1,000, without duplicates.
#[derive(Debug, Default)]
pub struct Unreadable(std::sync::Mutex<Vec<Finding>>);

impl Unreadable {
    /// Adds a finding of damage.
    pub fn add(&self, thread: Option<crate::ThreadId>, detail: impl Into<String>) {
        let finding = Finding { severity: crate::Severity::Damage, thread, detail: detail.into() };
        let mut findings = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if findings.len() < 1_000 && !findings.contains(&finding) {
            findings.push(finding);
        }
    }

    /// Returns the findings.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
