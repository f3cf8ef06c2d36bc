use async_trait::async_trait;
use threadkeep_core::{
    Batch, CatchUp, ChangePage, ChangedThreads, ChangesWithMessages, Collection, CommitOutcome, DerivedWrite,
    Embedding, FieldFilter, IndexEntry, Message, MessagePage, MessageQuery, MessageRef, Namespace, OpenOutcome,
    OpenThread, Record, RecordOwner, RecordQuery, RecordWrite, Result, Scope, SearchAnswer, SearchIndex, SearchQuery,
    Store, StoreError, SyncPolicy, TaggedNumber, ThreadId, ThreadOrder, ThreadPage, ThreadQuery, ThreadRead, ThreadRef,
    ThreadView, Timestamp, UserCursor, WakeUps, WriteOutcome, limits,
};

use crate::{IndexedDbStore, commit, messages, records, search, threads, wake_ups};

#[async_trait]
impl Store for IndexedDbStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        let (encoded, scope) = (batch.encode()?, scope.clone());
        self.write(batch.sync_policy, async move |transaction| {
            commit::commit(transaction, &scope, thread, batch, encoded, now).await
        })
        .await
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        open.check()?;
        let scope = scope.clone();
        self.write(SyncPolicy::Now, async move |transaction| threads::open_thread(transaction, &scope, open, now).await)
            .await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        let (scope, thread, read) = (scope.clone(), thread.clone(), read.clone());
        self.read(async move |transaction| threads::read_thread(transaction, &scope, &thread, &read, now).await).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        let (scope, query) = (scope.clone(), query.clone());
        self.read(async move |transaction| threads::list_threads(transaction, &scope, &query, now).await).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        let (scope, after) = (scope.clone(), after.cloned());
        self.read(async move |transaction| {
            threads::list_changed_threads(transaction, &scope, after.as_ref(), limit, now).await
        })
        .await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        let scope = scope.clone();
        self.write(SyncPolicy::Now, async move |transaction| {
            threads::delete_thread(transaction, &scope, thread, now).await
        })
        .await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        let (scope, query) = (scope.clone(), query.clone());
        self.read(async move |transaction| messages::list_messages(transaction, &scope, thread, &query, now).await)
            .await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        let (scope, references) = (scope.clone(), messages.to_vec());
        self.read(async move |transaction| messages::find_messages(transaction, &scope, thread, &references, now).await)
            .await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        let scope = scope.clone();
        self.read(async move |transaction| messages::list_changes(transaction, &scope, thread, after, limit, now).await)
            .await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        let scope = scope.clone();
        self.read(async move |transaction| {
            messages::list_changes_with_messages(transaction, &scope, thread, after, limit, now).await
        })
        .await
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        let (scope, owner, namespace, key) = (scope.clone(), owner.clone(), namespace.clone(), key.to_owned());
        self.read(async move |transaction| {
            records::find_record(transaction, &scope, &owner, &namespace, &key, now).await
        })
        .await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        let (scope, query) = (scope.clone(), query.clone());
        self.read(async move |transaction| records::list_records(transaction, &scope, &query, now).await).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        write.check()?;
        let scope = scope.clone();
        self.write(SyncPolicy::Now, async move |transaction| {
            records::write_record(transaction, &scope, write, now).await
        })
        .await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        write.check()?;
        let scope = scope.clone();
        self.write(SyncPolicy::Deferred, async move |transaction| {
            records::write_derived(transaction, &scope, thread, write, now).await
        })
        .await
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        Ok(wake_ups::subscribe(self.wake_ups.subscribe()))
    }

    /// `None`: other tabs write as well, and asking them takes as long as a read.
    fn stamp(&self) -> Option<u64> {
        None
    }

    fn records_stamp(&self) -> Option<u64> {
        None
    }
}

#[async_trait]
impl SearchIndex for IndexedDbStore {
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        ThreadQuery::new(ThreadOrder::Created, query.limit).check()?;
        query.vector.as_ref().map_or(Ok(()), Embedding::check)?;
        FieldFilter::check_all(&query.filters)?;
        query.metadata.check()?;
        let (scope, query) = (scope.clone(), query.clone());
        if query.collection != Collection::Messages {
            query.check_collection()?;
            let collection = query.collection.name()?.to_owned();
            return self
                .read(async move |transaction| search::search_entries(transaction, &scope, &collection, &query).await)
                .await;
        }
        if query.vector.is_some() {
            return Err(StoreError::Unsupported("vector search over messages"));
        }
        if !query.filters.is_empty() {
            return Err(StoreError::Unsupported("filters over messages"));
        }
        self.read(async move |transaction| search::search_messages(transaction, &scope, &query, now).await).await
    }

    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()> {
        let (scope, collection) = (scope.clone(), collection.name()?.to_owned());
        IndexEntry::check_all(&entries)?;
        self.write(SyncPolicy::Now, async move |transaction| {
            search::upsert_entries(transaction, &scope, &collection, entries)
        })
        .await
    }

    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        limits::check_at_most("ids per call", ids.len(), limits::COMMIT_MESSAGES)?;
        let (scope, collection, ids) = (scope.clone(), collection.name()?.to_owned(), ids.to_vec());
        self.write(SyncPolicy::Now, async move |transaction| {
            search::remove_entries(transaction, &scope, &collection, &ids).await
        })
        .await
    }

    async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        let scope = scope.clone();
        self.write(SyncPolicy::Now, async move |transaction| search::remove_collections(transaction, &scope).await)
            .await
    }

    async fn catch_up(&self, _limit: usize) -> Result<CatchUp> {
        Ok(CatchUp { indexed: 0, done: true })
    }
}
