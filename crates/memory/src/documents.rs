//! Documents as an agent needs them: read here, written by batches.

use threadkeep_core::{Document, DocumentName, DocumentOwner, DocumentQuery, Scope, ThreadId};

use crate::retry::repeat_simply;
use crate::{Memory, Result};

impl Memory {
    /// Finds a document of a thread.
    ///
    /// # Errors
    /// Those of the store. An unknown thread has no documents.
    pub async fn find_thread_document(
        &self,
        scope: &Scope,
        thread: ThreadId,
        name: &DocumentName,
    ) -> Result<Option<Document>> {
        let (owner, now) = (DocumentOwner::Thread(thread), self.now());
        let DocumentName { namespace, key } = name;
        Ok(repeat_simply(self.runtime(), || self.store().find_document(scope, &owner, namespace, key, now)).await?)
    }

    /// Lists all documents that a query names, reading as many pages as there are.
    ///
    /// # Errors
    /// Those of the store. An unknown owner has no documents.
    pub async fn list_documents(&self, scope: &Scope, query: DocumentQuery) -> Result<Vec<Document>> {
        self.all_documents(scope, query).await
    }
}
