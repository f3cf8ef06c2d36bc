//! Reading records, and updating those of users and tenants. Batches write those of threads.

use std::time::Duration;

use threadkeep_core::{
    Conflict, JsonText, Record, RecordName, RecordOwner, RecordQuery, RecordWrite, Scope, StoreError, ThreadId,
};

use crate::retry::{retry, retry_with_outcome};
use crate::{Memory, MemoryError, Result};

/// Maximum number of attempts to update a record while others change it.
const ATTEMPTS: usize = 16;

/// What [`Memory::update_record`] does to a record.
#[derive(Clone, Debug)]
pub enum RecordUpdate {
    /// Leaves it unchanged.
    Keep,
    /// Creates it or replaces its value.
    Write(JsonText),
    /// Deletes it. Does nothing if it does not exist.
    Delete,
}

impl Memory {
    /// Finds a record; `None` if it does not exist, or if the scope cannot access its owner.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn find_record(&self, scope: &Scope, owner: &RecordOwner, name: &RecordName) -> Result<Option<Record>> {
        let (RecordName { namespace, key }, now) = (name, self.now());
        Ok(retry(self.runtime(), || self.store().find_record(scope, owner, namespace, key, now)).await?)
    }

    /// Finds a record of a thread; `None` if the thread or the record does not exist.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn find_thread_record(
        &self,
        scope: &Scope,
        thread: ThreadId,
        name: &RecordName,
    ) -> Result<Option<Record>> {
        self.find_record(scope, &RecordOwner::Thread(thread), name).await
    }

    /// Lists all records that match a query, reading as many pages as necessary. Empty if the owner does not exist.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn list_records(&self, scope: &Scope, query: RecordQuery) -> Result<Vec<Record>> {
        self.all_records(scope, query).await
    }

    /// Updates a record of a user or of the tenant as `update` decides, by compare-and-set. `update` gets the current record, `None` if
    /// there is none, and is called again if others have changed the record meanwhile. A written record does not expire.
    ///
    /// # Errors
    /// Errors from `update` and from the store; `Contended` if others change the record during each attempt.
    pub async fn update_record<E: From<MemoryError>>(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        name: &RecordName,
        mut update: impl FnMut(Option<&Record>) -> Result<RecordUpdate, E>,
    ) -> Result<(), E> {
        for attempt in 1..=ATTEMPTS {
            let record = self.find_record(scope, owner, name).await?;
            let value = match update(record.as_ref())? {
                RecordUpdate::Keep => return Ok(()),
                RecordUpdate::Write(value) => Some(value),
                RecordUpdate::Delete => None,
            };
            let (owner, RecordName { namespace, key }) = (owner.clone(), name.clone());
            let expected = Some(record.map_or(0, |record| record.version));
            let write = RecordWrite { owner, namespace, key, expected, value, expires_at: None };
            if self.try_update(scope, name, write).await? {
                return Ok(());
            }
            // Writers that started together get out of step.
            self.runtime().sleep(Duration::from_millis(attempt as u64)).await;
        }
        Err(MemoryError::Contended { what: "the record", attempts: ATTEMPTS }.into())
    }

    /// Makes a conditional write. Returns whether the record has the new value; otherwise others have changed it.
    async fn try_update(&self, scope: &Scope, name: &RecordName, write: RecordWrite) -> Result<bool> {
        let now = self.now();
        let written = retry_with_outcome(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await;
        match written.result {
            Ok(_) => Ok(true),
            // The conflict may be with an earlier attempt whose reply was lost.
            Err(StoreError::Conflict(Conflict::Record { .. })) if written.may_have_applied_before => {
                let record = self.find_record(scope, &write.owner, name).await?;
                Ok(record.map(|record| record.value) == write.value)
            }
            Err(StoreError::Conflict(Conflict::Record { .. })) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}
