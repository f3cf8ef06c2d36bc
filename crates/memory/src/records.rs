//! Reading records. Batches write them.

use threadkeep_core::{Record, RecordName, RecordOwner, RecordQuery, Scope, ThreadId};

use crate::retry::retry;
use crate::{Memory, Result};

impl Memory {
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
        let (owner, now) = (RecordOwner::Thread(thread), self.now());
        let RecordName { namespace, key } = name;
        Ok(retry(self.runtime(), || self.store().find_record(scope, &owner, namespace, key, now)).await?)
    }

    /// Lists all records that match a query, reading as many pages as necessary. Empty if the owner does not exist.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn list_records(&self, scope: &Scope, query: RecordQuery) -> Result<Vec<Record>> {
        self.all_records(scope, query).await
    }
}
