use async_trait::async_trait;
use futures::{StreamExt, stream};
use threadkeep_core::{
    Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, Message, MessagePage,
    MessageQuery, MessageRef, Namespace, OpenOutcome, OpenThread, Record, RecordOwner, RecordQuery, RecordWrite,
    Result, Scope, Store, TaggedNumber, ThreadId, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView,
    Timestamp, UserCursor, WakeUps, WriteOutcome,
};

use super::FailoverStore;

#[async_trait]
impl Store for FailoverStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        self.inner().store.commit(scope, thread, batch, now).await
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        self.inner().store.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.inner().store.read_thread(scope, thread, read, now).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.inner().store.list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.inner().store.list_changed_threads(scope, after, limit, now).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        self.inner().store.delete_thread(scope, thread, now).await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        self.inner().store.list_messages(scope, thread, query, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.inner().store.find_messages(scope, thread, messages, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        self.inner().store.list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        self.inner().store.list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        self.inner().store.find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.inner().store.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.inner().store.write_record(scope, write, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.inner().store.write_derived(scope, thread, write, now).await
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        let own = stream::unfold(self.wake_ups.subscribe(), |mut receiver| async move {
            receiver.recv().await.ok().map(|wake_up| (wake_up, receiver))
        });
        let (primary, replica) = (self.primary.store.wake_ups().await?, self.replica.store.wake_ups().await?);
        Ok(stream::select(own.boxed(), stream::select(primary, replica)).boxed())
    }

    fn stamp(&self) -> Option<u64> {
        // Stamps of the primary and of the replica cannot be compared.
        None
    }

    fn records_stamp(&self) -> Option<u64> {
        None
    }
}
