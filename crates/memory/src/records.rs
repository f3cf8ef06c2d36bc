//! Records as an agent needs them: read here, written by batches.

use threadkeep_core::{Record, RecordName, RecordOwner, RecordQuery, Scope, ThreadId};

use crate::retry::repeat_simply;
use crate::{Memory, Result};

impl Memory {
    /// Finds a record of a thread.
    ///
    /// # Errors
    /// Those of the store. An unknown thread has no records.
    pub async fn find_thread_record(
        &self,
        scope: &Scope,
        thread: ThreadId,
        name: &RecordName,
    ) -> Result<Option<Record>> {
        let (owner, now) = (RecordOwner::Thread(thread), self.now());
        let RecordName { namespace, key } = name;
        Ok(repeat_simply(self.runtime(), || self.store().find_record(scope, &owner, namespace, key, now)).await?)
    }

    /// Lists all records that a query names, reading as many pages as there are.
    ///
    /// # Errors
    /// Those of the store. An unknown owner has no records.
    pub async fn list_records(&self, scope: &Scope, query: RecordQuery) -> Result<Vec<Record>> {
        self.all_records(scope, query).await
    }
}
