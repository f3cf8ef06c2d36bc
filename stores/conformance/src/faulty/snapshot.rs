use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use threadkeep_core::{
    ChunkSize, Consistency, Dump, Finding, ListedThread, OwnedRecord, Result, Snapshot, SnapshotTotals,
};

use super::maybe_fail;
use super::split_mix::SplitMix64;

/// A wrapper around a snapshot that rejects calls as temporarily unavailable.
pub(super) struct FaultySnapshot {
    pub(super) inner: Box<dyn Snapshot>,
    pub(super) random: Arc<Mutex<SplitMix64>>,
}

impl fmt::Debug for FaultySnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultySnapshot").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl Snapshot for FaultySnapshot {
    fn consistency(&self) -> Consistency {
        self.inner.consistency()
    }

    fn log_growth_bytes(&self) -> Option<u64> {
        self.inner.log_growth_bytes()
    }

    fn unreadable(&self) -> Vec<Finding> {
        self.inner.unreadable()
    }

    async fn totals(&self) -> Result<SnapshotTotals> {
        maybe_fail(&self.random)?;
        self.inner.totals().await
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        maybe_fail(&self.random)?;
        self.inner.list_threads(after, limit).await
    }

    async fn dump_threads(&self, numbers: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        maybe_fail(&self.random)?;
        self.inner.dump_threads(numbers, after, size).await
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        maybe_fail(&self.random)?;
        self.inner.list_records(after, limit).await
    }
}
