//! Reading a whole store as of one instant.

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{Dump, Finding, Portable, Record, RecordOwner, Result, TenantId, Thread};

/// Everything that a store holds, as it was when the snapshot was taken ([`crate::Maintenance::snapshot`]).
///
/// Writers neither wait for it nor show in it: what is written, erased or deleted later leaves it alone. It sees every tenant.
/// It holds one connection until it is dropped, and keeps the store from reclaiming what it still shows, so drop it soon.
/// Calls may be made at once and repeated. One that lost its connection answers `Unavailable` with a reason that is not
/// retryable: take another snapshot and begin again.
#[async_trait]
pub trait Snapshot: Portable + std::fmt::Debug {
    /// What is as of one instant: the whole store, or each thread by itself.
    fn consistency(&self) -> Consistency;

    /// By how many bytes the log beside the store has grown since the snapshot was taken; `None` where there is no log that
    /// waits for readers.
    fn log_growth_bytes(&self) -> Option<u64>;

    /// What its lists have left out so far because it cannot be read, each of it once: rows of threads and of records. One
    /// damaged row ends no list.
    fn unreadable(&self) -> Vec<Finding>;

    /// Counts what the snapshot holds, as far as it can be read. Cheaper than listing it.
    async fn totals(&self) -> Result<SnapshotTotals>;

    /// Lists the threads of all tenants that have not expired, in the order of their creation, after the place of one of
    /// them, at most `limit` ([`crate::limits::PAGE`]).
    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>>;

    /// Reads threads verbatim, as [`crate::Maintenance::dump_thread`] does, damaged ones too, with a chunk for each.
    ///
    /// `places` are those of [`Snapshot::list_threads`], in the order wanted; an unknown one is `NotFound`. `after` goes with
    /// the first of them: its next chunk is read instead of its first. The answer begins with the first place and ends as
    /// soon as `size` is reached: it holds at least one chunk, and only its last one can have a `next`. So what to ask for
    /// next is the rest of that thread, if there is one, and then the places that were not answered.
    async fn dump_threads(&self, places: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>>;

    /// Lists the records of all users and tenants that have not expired, in an order of the store's own, after one of
    /// them, at most `limit` ([`crate::limits::PAGE`]). Those of threads are in their dumps.
    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>>;
}

/// What of a snapshot is as of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Consistency {
    /// All of the store.
    Store,
    /// Each thread, and each record, but not all at the same instant.
    Thread,
}

/// What a snapshot holds.
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
    /// By what this snapshot knows it. Grows with every thread that is created.
    pub number: u64,
    /// Its tenant.
    pub tenant: TenantId,
    /// The thread.
    pub thread: Thread,
}

/// How much one call of [`Snapshot::dump_threads`] reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkSize {
    /// Messages and tombstones at most, of all threads together ([`crate::limits::PAGE`] at most).
    pub entries: usize,
    /// Bytes of text after which no further entry and no further thread is begun.
    pub bytes: usize,
}

/// A record of a user or of a tenant, with its owner.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedRecord {
    /// The tenant.
    pub tenant: TenantId,
    /// Whose in it.
    pub owner: RecordOwner,
    /// The record.
    pub record: Record,
}

/// Findings of a reader that goes on past them, each kept once and the first 1,000 of them.
#[derive(Debug, Default)]
pub struct Unreadable(std::sync::Mutex<Vec<Finding>>);

impl Unreadable {
    /// Keeps a finding of damage.
    pub fn add(&self, thread: Option<crate::ThreadId>, detail: impl Into<String>) {
        let finding = Finding { severity: crate::Severity::Damage, thread, detail: detail.into() };
        let mut kept = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if kept.len() < 1_000 && !kept.contains(&finding) {
            kept.push(finding);
        }
    }

    /// What was kept.
    #[must_use]
    pub fn found(&self) -> Vec<Finding> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}
