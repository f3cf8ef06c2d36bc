//! Opening, finding, listing, changing and deleting threads.

use futures::{StreamExt, TryStreamExt};
use threadkeep_core::{
    Expected, Map, MessageQuery, MetadataFilter, OnCorrupt, OpenOutcome, OpenThread, Scope, StoreError, StoreExt,
    TaggedNumber, Thread, ThreadId, ThreadKey, ThreadOrder, ThreadPage, ThreadPatch, ThreadQuery, ThreadRef, Timestamp,
    limits,
};

use crate::retry::{retry, retry_with_outcome};
use crate::{Memory, Result};

/// The maximum number of threads that are sorted by their last messages.
const SORTED_THREADS: usize = 10_000;
/// The number of threads that are read concurrently.
const CONCURRENT_THREADS: usize = 16;

impl Memory {
    /// Creates a thread with a new id. The scope's default owner owns the thread.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn open(&self, scope: &Scope) -> Result<OpenOutcome> {
        self.open_with_new_id(scope, OpenThread::new(scope, self.generate_thread_id())).await
    }

    /// Finds the thread with the given id, or creates it.
    ///
    /// # Errors
    /// `NotFound` if the id belongs to another owner, or to a thread that was deleted recently.
    pub async fn open_by_id(&self, scope: &Scope, thread: ThreadId) -> Result<OpenOutcome> {
        self.open_thread(scope, OpenThread::new(scope, thread)).await
    }

    /// Finds the thread with the given key among the threads of the scope's default owner, or creates it.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid key; errors from the store.
    pub async fn open_by_key(&self, scope: &Scope, key: impl Into<String>) -> Result<OpenOutcome> {
        let open = OpenThread::new(scope, self.generate_thread_id()).with_key(ThreadKey::new(key)?);
        self.open_with_new_id(scope, open).await
    }

    /// Finds the thread with the id or key in `open`, or creates it from `open`.
    ///
    /// # Errors
    /// `NotFound` as in [`Memory::open_by_id`], `Conflict` if the thread with this id has another key.
    pub async fn open_thread(&self, scope: &Scope, open: OpenThread) -> Result<OpenOutcome> {
        let now = self.now();
        Ok(retry(self.runtime(), || self.store().open_thread(scope, open.clone(), now)).await?)
    }

    /// Opens a thread with a new id. If the returned thread has that id, this call created it, even if the reply to the attempt
    /// that created it was lost.
    async fn open_with_new_id(&self, scope: &Scope, open: OpenThread) -> Result<OpenOutcome> {
        let id = open.id;
        let opened = self.open_thread(scope, open).await?;
        Ok(OpenOutcome { created: opened.thread.id == id, ..opened })
    }

    /// Lists the threads in the order of their last messages, newest first, each with the time of that message. This is the time when
    /// the message was created, not imported, so imported threads are in chronological order. Ephemeral threads are omitted. If there
    /// are more than 10,000 threads, only those that changed last are listed.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid filter; errors from the store.
    pub async fn list_by_last_message(
        &self,
        scope: &Scope,
        metadata: &MetadataFilter,
    ) -> Result<Vec<(Thread, Timestamp)>> {
        let mut threads = Vec::new();
        let mut query =
            ThreadQuery { metadata: metadata.clone(), ..ThreadQuery::new(ThreadOrder::Recent, limits::PAGE) };
        while threads.len() < SORTED_THREADS {
            let page = self.list_threads(scope, &query).await?;
            threads.extend(page.threads.into_iter().filter(|thread| !thread.is_ephemeral()));
            match page.next {
                Some(next) => query.after = Some(next),
                None => break,
            }
        }
        let newest = MessageQuery { on_corrupt: OnCorrupt::Report, ..MessageQuery::newest(1) };
        let newest = &newest;
        let reads = threads.into_iter().map(|thread| async move {
            let at = match self.messages(scope, thread.id, newest).await {
                Err(error) if error.is_thread_not_found() => None,
                page => page?.messages.first().map(|message| message.created_at),
            };
            let at = at.unwrap_or(thread.created_at);
            Ok::<_, crate::MemoryError>((thread, at))
        });
        let mut dated: Vec<_> = futures::stream::iter(reads).buffer_unordered(CONCURRENT_THREADS).try_collect().await?;
        dated.sort_by_key(|(thread, at)| (std::cmp::Reverse(*at), thread.id));
        Ok(dated)
    }

    /// Finds a thread by its id; `None` if it does not exist or the scope cannot read it.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn find_thread(&self, scope: &Scope, thread: ThreadId) -> Result<Option<Thread>> {
        let (thread, now) = (ThreadRef::Id(thread), self.now());
        Ok(retry(self.runtime(), || self.store().find_thread(scope, &thread, now)).await?)
    }

    /// Finds a thread by its key among the threads of the scope's default owner; `None` if there is none.
    ///
    /// # Errors
    /// `Invalid` or `LimitExceeded` for an invalid key; errors from the store.
    pub async fn find_thread_by_key(&self, scope: &Scope, key: impl Into<String>) -> Result<Option<Thread>> {
        let (thread, now) = (ThreadRef::Key(scope.default_owner(), ThreadKey::new(key)?), self.now());
        Ok(retry(self.runtime(), || self.store().find_thread(scope, &thread, now)).await?)
    }

    /// Reads a thread that must exist.
    ///
    /// # Errors
    /// `NotFound` if the thread does not exist or the scope cannot read it.
    pub async fn get_thread(&self, scope: &Scope, thread: ThreadId) -> Result<Thread> {
        let found = self.find_thread(scope, thread).await?;
        Ok(found.ok_or(StoreError::NotFound(threadkeep_core::Kind::Thread))?)
    }

    /// Lists a page of threads, ordered by creation or by last update.
    ///
    /// # Errors
    /// `Invalid` for a limit of 0 or an `after` from another query, `LimitExceeded` for a limit that is too large.
    pub async fn list_threads(&self, scope: &Scope, query: &ThreadQuery) -> Result<ThreadPage> {
        let now = self.now();
        Ok(retry(self.runtime(), || self.store().list_threads(scope, query, now)).await?)
    }

    /// Deletes a thread with its messages and records. If the thread was imported, a digest of its key remains, so that a later import
    /// does not bring it back.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Denied` if the thread is shared and `scope` is a user's.
    pub async fn delete_thread(&self, scope: &Scope, thread: ThreadId) -> Result<()> {
        self.note_erased_import(scope, thread).await?;
        let now = self.now();
        self.threads_with_final_title().remove(thread);
        self.evict_thread(scope, thread);
        self.feeds().invalidate(scope, thread);
        let outcome = retry_with_outcome(self.runtime(), || self.store().delete_thread(scope, thread, now)).await;
        self.evict_thread(scope, thread);
        self.feeds().invalidate(scope, thread);
        match outcome.result {
            // An earlier attempt may have deleted the thread, although its reply was lost.
            Err(StoreError::NotFound(_)) if outcome.may_have_applied_before => Ok(()),
            result => Ok(result?),
        }
    }

    /// Changes a thread's title, metadata, state or expiry, if the thread is at the `expected` position or change. Returns the new
    /// change.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread, `Denied` if the thread is shared and `scope` is a user's, `Conflict` with the actual
    /// position or change if the thread is not at the `expected` one.
    pub async fn patch_thread(
        &self,
        scope: &Scope,
        thread: ThreadId,
        patch: ThreadPatch,
        expected: Option<Expected>,
    ) -> Result<TaggedNumber> {
        if patch.title.is_some() {
            self.threads_with_final_title().remove(thread);
        }
        let now = self.now();
        let mut batch = self.new_batch(now);
        batch.patch = patch;
        batch.expected = expected;
        Ok(self.commit_with_retries(scope, thread, &batch, now).await?.tagged())
    }

    /// Reads the state that an agent stores with a thread, and the thread's change when it was read.
    ///
    /// # Errors
    /// `NotFound` for an unknown thread.
    pub async fn state(&self, scope: &Scope, thread: ThreadId) -> Result<(Map, TaggedNumber)> {
        let thread = self.get_thread(scope, thread).await?;
        Ok((thread.state, thread.positions.tagged()))
    }

    /// Replaces the state of a thread if `expected_change` is `None` or equals the thread's change. Returns the thread's new change.
    ///
    /// # Errors
    /// The same as for [`Memory::patch_thread`].
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
