use std::fmt;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use threadkeep_core::{
    ChunkSize, Consistency, Dump, Finding, ListedThread, OwnedRecord, Result, Snapshot, SnapshotTotals,
};

use super::dice::Dice;
use super::may_refuse;

/// A snapshot over another that refuses calls for the moment.
pub(super) struct WeakSnapshot {
    pub(super) inner: Box<dyn Snapshot>,
    pub(super) dice: Arc<Mutex<Dice>>,
}

impl fmt::Debug for WeakSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakSnapshot").field("inner", &self.inner).finish_non_exhaustive()
    }
}

#[async_trait]
impl Snapshot for WeakSnapshot {
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
        may_refuse(&self.dice)?;
        self.inner.totals().await
    }

    async fn list_threads(&self, after: Option<u64>, limit: usize) -> Result<Vec<ListedThread>> {
        may_refuse(&self.dice)?;
        self.inner.list_threads(after, limit).await
    }

    async fn dump_threads(&self, places: &[u64], after: Option<u64>, size: ChunkSize) -> Result<Vec<Dump>> {
        may_refuse(&self.dice)?;
        self.inner.dump_threads(places, after, size).await
    }

    async fn list_records(&self, after: Option<&OwnedRecord>, limit: usize) -> Result<Vec<OwnedRecord>> {
        may_refuse(&self.dice)?;
        self.inner.list_records(after, limit).await
    }
}
