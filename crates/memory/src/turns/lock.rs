//! The lock of a thread: the record of the turn that holds it.
//!
//! It is taken by a commit that demands its absence, held by commits that demand the version the one before gave it, and
//! let go by the last. So of many who try one gets it, and a holder that was taken over loses with its next commit.
//!
//! Servers of version 0.1 had a second lock for calls of a model, and looked at nothing else before such a call. While
//! instances of both versions share a store each commit writes that record too, and a thread counts as held where it alone
//! is there.

use threadkeep_core::{Conflict, JsonText, Namespace, PutRecord, RecordName, RecordState};

use super::record::{self, RunRecord};
use super::{ThreadAccess, Versioned, is_driving};
use crate::{BatchBuilder, Memory, MemoryError, Result};

/// Adds to a batch that a turn holds its thread until its lease is over. The batch demands what has to be so before that.
///
/// # Errors
/// Those of the codec; none is known.
pub fn renew(batch: BatchBuilder, record: &RunRecord) -> Result<BatchBuilder> {
    let own = PutRecord { name: record::active(), value: JsonText::of(record)?, expires_at: None };
    let value = JsonText::of(&record.driver)?;
    Ok(batch.put(own).put(PutRecord { name: older_name(), value, expires_at: Some(record.lease_until) }))
}

/// Adds to a batch that a turn takes a thread which nobody holds.
///
/// # Errors
/// Those of the codec; none is known.
pub fn acquire(batch: BatchBuilder, record: &RunRecord, older: &LegacyLock) -> Result<BatchBuilder> {
    let batch = batch.require(record::active(), RecordState::Absent);
    renew(batch.require(older_name(), older.state.unwrap_or(RecordState::Absent)), record)
}

/// Adds to a batch that a turn lets go of its thread.
#[must_use]
pub fn release(batch: BatchBuilder) -> BatchBuilder {
    batch.delete(record::active()).delete(older_name())
}

/// Frees a thread from a record that nobody drives, and keeps nothing of it. Whoever took it meanwhile keeps it.
///
/// # Errors
/// Those of the store.
pub async fn release_abandoned(memory: &Memory, access: &ThreadAccess, left: &Versioned<RunRecord>) -> Result<()> {
    let batch = memory.batch().require(record::active(), RecordState::Version(left.version));
    match release(batch).commit(&access.writer, access.thread).await {
        Err(error) if record::is_run_conflict(&error) => Ok(()),
        result => result.map(drop),
    }
}

/// What is known of the lock of the version before. It is taken to be free, which the commit that takes the thread demands,
/// and read only where that was wrong.
#[derive(Debug)]
pub struct LegacyLock {
    /// As it has to be; `None` where it has to be read first.
    state: Option<RecordState>,
}

impl Default for LegacyLock {
    fn default() -> Self {
        Self { state: Some(RecordState::Absent) }
    }
}

impl LegacyLock {
    /// Whether an attempt to take the thread failed because of this lock, which is read with the next look then.
    pub fn has_refused(&mut self, error: &MemoryError) -> bool {
        let older = older_name();
        let is_so = matches!(error.conflict(), Some(Conflict::Record { namespace, key, .. })
            if *namespace == older.namespace && *key == older.key);
        if is_so {
            self.state = None;
        }
        is_so
    }

    /// Whether the thread can be taken as far as this lock goes: nobody holds it, or a process that is known to be gone.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn is_free(&mut self, memory: &Memory, access: &ThreadAccess) -> Result<bool> {
        if self.state.is_some() {
            return Ok(true);
        }
        let found = memory.find_thread_record(&access.writer, access.thread, &older_name()).await?;
        self.state = match found {
            None => Some(RecordState::Absent),
            Some(record) => {
                let holder: Option<String> = record.value.read().ok();
                let is_gone = holder.is_some_and(|holder| is_driving(memory, &holder) == Some(false));
                is_gone.then_some(RecordState::Version(record.tagged()))
            }
        };
        Ok(self.state.is_some())
    }
}

fn older_name() -> RecordName {
    RecordName { namespace: Namespace::System("server".to_owned()), key: "lease".to_owned() }
}
