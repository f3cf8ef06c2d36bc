//! Opening, finding, listing, changing and deleting threads.

use threadkeep_core::{
    Expected, Map, OpenOutcome, OpenThread, Scope, StoreError, StoreExt, TaggedNumber, Thread, ThreadId, ThreadKey,
    ThreadPage, ThreadPatch, ThreadQuery, ThreadRef,
};

use crate::retry::{retry, retry_with_outcome};
use crate::{Memory, Result};

impl Memory {
    /// Creates a thread with a new id, owned by the scope's default owner.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn open(&self, scope: &Scope) -> Result<OpenOutcome> {
        self.open_minted(scope, OpenThread::new(scope, self.generate_thread_id())).await
    }

    /// Finds the thread with an id, or creates it.
    ///
    /// # Errors
    /// `NotFound` for an id that belongs to another owner, or whose thread was deleted within the last days.
    pub async fn open_by_id(&self, scope: &Scope, thread: ThreadId) -> Result<OpenOutcome> {
        self.open_thread(scope, OpenThread::new(scope, thread)).await
    }

    /// Finds the thread with a key, among those of the scope's default owner, or creates it.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid key; those of the store.
    pub async fn open_by_key(&self, scope: &Scope, key: impl Into<String>) -> Result<OpenOutcome> {
        let open = OpenThread::new(scope, self.generate_thread_id()).with_key(ThreadKey::new(key)?);
        self.open_minted(scope, open).await
    }

    /// Finds the thread that `open` names, or creates it with the data of `open`.
    ///
    /// # Errors
    /// `NotFound` as [`Memory::open_by_id`], `Conflict` for an id whose thread has another key.
    pub async fn open_thread(&self, scope: &Scope, open: OpenThread) -> Result<OpenOutcome> {
        let now = self.now();
        Ok(retry(self.runtime(), || self.store().open_thread(scope, open.clone(), now)).await?)
    }

    /// Opens a thread with a new id. If it is returned with that id, this call created it, even if the reply of the attempt
    /// that did so was lost.
    async fn open_minted(&self, scope: &Scope, open: OpenThread) -> Result<OpenOutcome> {
        let id = open.id;
        let opened = self.open_thread(scope, open).await?;
        Ok(OpenOutcome { created: opened.thread.id == id, ..opened })
    }

    /// Finds a thread by its id.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn find_thread(&self, scope: &Scope, thread: ThreadId) -> Result<Option<Thread>> {
        let (name, now) = (ThreadRef::Id(thread), self.now());
        Ok(retry(self.runtime(), || self.store().find_thread(scope, &name, now)).await?)
    }

    /// Finds a thread by its key, among those of the scope's default owner.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid key; those of the store.
    pub async fn find_thread_by_key(&self, scope: &Scope, key: impl Into<String>) -> Result<Option<Thread>> {
        let (name, now) = (ThreadRef::Key(scope.default_owner(), ThreadKey::new(key)?), self.now());
        Ok(retry(self.runtime(), || self.store().find_thread(scope, &name, now)).await?)
    }

    /// Gets a thread that must exist.
    ///
    /// # Errors
    /// `NotFound` if it does not.
    pub async fn get_thread(&self, scope: &Scope, thread: ThreadId) -> Result<Thread> {
        let found = self.find_thread(scope, thread).await?;
        Ok(found.ok_or(StoreError::NotFound(threadkeep_core::Kind::Thread))?)
    }

    /// Lists threads in pages, by creation or by recency.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or an `after` of another query, `LimitExceeded` for a page that is too large.
    pub async fn list_threads(&self, scope: &Scope, query: &ThreadQuery) -> Result<ThreadPage> {
        let now = self.now();
        Ok(retry(self.runtime(), || self.store().list_threads(scope, query, now)).await?)
    }

    /// Deletes a thread with its messages and records.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Denied` for a shared one in a user's scope.
    pub async fn delete_thread(&self, scope: &Scope, thread: ThreadId) -> Result<()> {
        let now = self.now();
        self.settled_titles().remove(thread);
        self.evict_thread(scope, thread);
        self.feeds().invalidate(scope, thread);
        let outcome = retry_with_outcome(self.runtime(), || self.store().delete_thread(scope, thread, now)).await;
        self.evict_thread(scope, thread);
        self.feeds().invalidate(scope, thread);
        match outcome.result {
            // Deleted by an earlier attempt, whose reply was lost.
            Err(StoreError::NotFound(_)) if outcome.may_have_applied_before => Ok(()),
            result => Ok(result?),
        }
    }

    /// Changes a thread's title, metadata, state or expiry, if the thread is where `expected` requires. Returns its new change
    /// position.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Denied` for a shared one in a user's scope, `Conflict` with the actual
    /// position.
    pub async fn patch_thread(
        &self,
        scope: &Scope,
        thread: ThreadId,
        patch: ThreadPatch,
        expected: Option<Expected>,
    ) -> Result<TaggedNumber> {
        if patch.title.is_some() {
            self.settled_titles().remove(thread);
        }
        let now = self.now();
        let mut batch = self.new_batch(now);
        batch.patch = patch;
        batch.expected = expected;
        Ok(self.commit_with_retries(scope, thread, &batch, now).await?.tagged())
    }

    /// Reads the state that an agent stores with a thread, and the change number at which it was read.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread.
    pub async fn state(&self, scope: &Scope, thread: ThreadId) -> Result<(Map, TaggedNumber)> {
        let thread = self.get_thread(scope, thread).await?;
        Ok((thread.state, thread.positions.tagged()))
    }

    /// Replaces the state of a thread. With `expected_change`, only if the thread has not changed since that position. Returns
    /// the thread's new change number.
    ///
    /// # Errors
    /// As [`Memory::patch_thread`].
    pub async fn set_state(
        &self,
        scope: &Scope,
        thread: ThreadId,
        state: Map,
        expected_change: Option<TaggedNumber>,
    ) -> Result<TaggedNumber> {
        let patch = ThreadPatch { state: Some(state), ..ThreadPatch::default() };
        self.patch_thread(scope, thread, patch, expected_change.map(Expected::Change)).await
    }
}
