use async_trait::async_trait;
use futures_core::stream::BoxStream;
use threadkeep_core::{
    Batch, CatchUp, ChangePage, ChangedThreads, ChangesWithMessages, Collection, CommitOutcome, DerivedWrite,
    IndexEntry, Message, MessagePage, MessageQuery, MessageRef, Namespace, OpenOutcome, OpenThread, Record,
    RecordOwner, RecordQuery, RecordWrite, Result, Scope, SearchAnswer, SearchIndex, SearchQuery, Store, TaggedNumber,
    ThreadId, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView, Timestamp, UserCursor, WakeUp, WakeUps,
    WriteOutcome,
};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::{SqliteStore, changes, collections, commit, derived, index, maintenance, messages, records, threads, view};

#[async_trait]
impl Store for SqliteStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        commit::commit(&self.shared, scope, thread, batch, now).await
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        threads::open(&self.shared, scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        Ok(view::read_thread(&self.shared, scope, thread, read, now)?)
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        Ok(threads::list(&self.shared, scope, query, now)?)
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        Ok(changes::list_threads(&self.shared, scope, after, limit, now)?)
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        threads::delete(&self.shared, scope, thread, now).await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        Ok(messages::list(&self.shared, scope, thread, query, now)?)
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        Ok(messages::find(&self.shared, scope, thread, messages, now)?)
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        Ok(changes::list(&self.shared, scope, thread, after, limit, now)?)
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        Ok(changes::list_with_messages(&self.shared, scope, thread, after, limit, now)?)
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        Ok(records::find(&self.shared, scope, owner, namespace, key, now)?)
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        Ok(records::list(&self.shared, scope, query, now)?)
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        records::write(&self.shared, scope, write, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        derived::write(&self.shared, scope, thread, write, now).await
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        Ok(stream(self.shared.wake_ups.subscribe()))
    }

    fn stamp(&self) -> Option<u64> {
        self.shared.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.shared.records_stamp()
    }
}

#[async_trait]
impl SearchIndex for SqliteStore {
    async fn search(&self, scope: &Scope, query: &SearchQuery, now: Timestamp) -> Result<SearchAnswer> {
        if query.collection != Collection::Messages {
            return Ok(collections::search(&self.shared, scope, query)?);
        }
        let outcome = index::search(&self.shared, scope, query, now)?;
        if !outcome.is_far_behind || self.shared.options.read_only {
            return Ok(outcome.answer);
        }
        self.catch_up(usize::MAX).await?;
        Ok(index::search(&self.shared, scope, query, now)?.answer)
    }

    async fn upsert(&self, scope: &Scope, collection: &Collection, entries: Vec<IndexEntry>) -> Result<()> {
        collections::upsert(&self.shared, scope, collection, entries).await
    }

    async fn remove(&self, scope: &Scope, collection: &Collection, ids: &[String]) -> Result<u64> {
        collections::remove(&self.shared, scope, collection, ids).await
    }

    async fn remove_collections(&self, scope: &Scope) -> Result<u64> {
        collections::remove_all(&self.shared, scope).await
    }

    async fn catch_up(&self, limit: usize) -> Result<CatchUp> {
        maintenance::blocking(&self.shared, move |shared| index::catch_up(shared, limit)).await
    }
}

fn stream(receiver: Receiver<WakeUp>) -> BoxStream<'static, WakeUp> {
    Box::pin(futures::stream::unfold(receiver, |mut receiver| async move {
        match receiver.recv().await {
            Ok(wake_up) => Some((wake_up, receiver)),
            Err(RecvError::Lagged(_)) => Some((WakeUp::Unspecified, receiver)),
            Err(RecvError::Closed) => None,
        }
    }))
}
