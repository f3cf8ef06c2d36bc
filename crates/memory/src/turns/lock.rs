//! The lock of a thread. The lock is the run record of the turn that holds it.
//!
//! The commit that acquires the lock requires that the record is absent. Commits that renew the lock require the version that
//! the previous commit wrote, and the last commit deletes the record. So only one of several concurrent attempts succeeds, and
//! after a takeover the next commit of the former holder fails.
//!
//! Servers of version 0.1 use another lock for completions, the legacy lock, and check only that one. Because instances of both
//! versions may share a store, each commit also writes the record of the legacy lock, and a thread is considered locked if only
//! that record exists.

use threadkeep_core::{Conflict, JsonText, Namespace, PutRecord, RecordName, RecordState};

use super::record::{self, RunRecord};
use super::{ThreadAccess, Versioned, is_driving};
use crate::{BatchBuilder, Memory, MemoryError, Result};

/// Makes a batch renew the lock. The caller must add the condition that the turn holds the lock.
///
/// # Errors
/// An encoding error, which is not expected.
pub fn renew(batch: BatchBuilder, record: &RunRecord) -> Result<BatchBuilder> {
    let own = PutRecord { name: record::active_name(), value: JsonText::of(record)?, expires_at: None };
    let value = JsonText::of(&record.driver)?;
    Ok(batch.put(own).put(PutRecord { name: legacy_name(), value, expires_at: Some(record.lease_until) }))
}

/// Makes a batch acquire the lock, on the condition that it is free.
///
/// # Errors
/// An encoding error, which is not expected.
pub fn acquire(batch: BatchBuilder, record: &RunRecord, legacy: &LegacyLock) -> Result<BatchBuilder> {
    let batch = batch.require(record::active_name(), RecordState::Absent);
    renew(batch.require(legacy_name(), legacy.state.unwrap_or(RecordState::Absent)), record)
}

/// Makes a batch release the lock.
#[must_use]
pub fn release(batch: BatchBuilder) -> BatchBuilder {
    batch.delete(record::active_name()).delete(legacy_name())
}

/// Releases the lock of a turn whose driver has ended. Does nothing if others have taken over the lock meanwhile.
///
/// # Errors
/// Errors from the store.
pub async fn release_abandoned(memory: &Memory, access: &ThreadAccess, abandoned: &Versioned<RunRecord>) -> Result<()> {
    let batch = memory.batch().require(record::active_name(), RecordState::Version(abandoned.version));
    match release(batch).commit(&access.writer, access.thread).await {
        Err(error) if record::is_run_conflict(&error) => Ok(()),
        result => result.map(drop),
    }
}

/// The state of the legacy lock of version 0.1. To save a read, it is assumed to be free. The commit that acquires the thread's
/// lock requires that, and the legacy lock is read only if that commit fails.
#[derive(Debug)]
pub struct LegacyLock {
    /// The state that the next commit requires; `None` if it has to be read first.
    state: Option<RecordState>,
}

impl Default for LegacyLock {
    fn default() -> Self {
        Self { state: Some(RecordState::Absent) }
    }
}

impl LegacyLock {
    /// Whether acquiring the thread's lock failed because of the legacy lock. If so, the next [`LegacyLock::is_free`] reads it.
    pub fn is_conflict(&mut self, error: &MemoryError) -> bool {
        let legacy = legacy_name();
        let is_conflict = matches!(error.conflict(), Some(Conflict::Record { namespace, key, .. })
            if *namespace == legacy.namespace && *key == legacy.key);
        if is_conflict {
            self.state = None;
        }
        is_conflict
    }

    /// Whether the legacy lock is free: no process holds it, or the process that does is known to have ended.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn is_free(&mut self, memory: &Memory, access: &ThreadAccess) -> Result<bool> {
        if self.state.is_some() {
            return Ok(true);
        }
        let found = memory.find_thread_record(&access.writer, access.thread, &legacy_name()).await?;
        self.state = match found {
            None => Some(RecordState::Absent),
            Some(record) => {
                let holder: Option<String> = record.value.read().ok();
                let has_ended = holder.is_some_and(|holder| is_driving(memory, &holder) == Some(false));
                has_ended.then_some(RecordState::Version(record.tagged()))
            }
        };
        Ok(self.state.is_some())
    }
}

fn legacy_name() -> RecordName {
    RecordName { namespace: Namespace::System("server".to_owned()), key: "lease".to_owned() }
}
