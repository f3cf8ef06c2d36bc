use async_trait::async_trait;
use futures::{StreamExt, stream};
use threadkeep_core::{
    Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, Message, MessagePage,
    MessageQuery, MessageRef, Namespace, OpenOutcome, OpenThread, Record, RecordOwner, RecordQuery, RecordWrite,
    Result, Scope, Store, TaggedNumber, ThreadId, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView,
    Timestamp, UserCursor, WakeUps, WriteOutcome,
};

use super::split_mix::SplitMix64;
use super::{FaultyStore, unknown_outcome};

#[async_trait]
impl Store for FaultyStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        let fault = self.random_below(6);
        if fault == 0 {
            return Err(unknown_outcome());
        }
        let outcome = self.inner.store.commit(scope, thread, batch, now).await?;
        if fault == 1 { Err(unknown_outcome()) } else { Ok(outcome) }
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        self.maybe_fail()?;
        self.inner.store.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.maybe_fail()?;
        self.inner.store.read_thread(scope, thread, read, now).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.maybe_fail()?;
        self.inner.store.list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.maybe_fail()?;
        self.inner.store.list_changed_threads(scope, after, limit, now).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        self.maybe_fail()?;
        self.inner.store.delete_thread(scope, thread, now).await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        self.maybe_fail()?;
        self.inner.store.list_messages(scope, thread, query, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.maybe_fail()?;
        self.inner.store.find_messages(scope, thread, messages, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        self.maybe_fail()?;
        self.inner.store.list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        self.maybe_fail()?;
        self.inner.store.list_changes_with_messages(scope, thread, after, limit, now).await
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        self.maybe_fail()?;
        self.inner.store.find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.maybe_fail()?;
        self.inner.store.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.maybe_fail()?;
        self.inner.store.write_record(scope, write, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        let fault = self.random_below(6);
        if fault == 0 {
            return Err(unknown_outcome());
        }
        let written = self.inner.store.write_derived(scope, thread, write, now).await?;
        if fault == 1 { Err(unknown_outcome()) } else { Ok(written) }
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.maybe_fail()?;
        let mut random = SplitMix64::new(self.random_below(u64::MAX));
        let wake_ups = self.inner.store.wake_ups().await?.flat_map(move |wake_up| {
            let times = usize::try_from(random.below(3)).unwrap_or(1);
            stream::iter(std::iter::repeat_n(wake_up, times))
        });
        Ok(wake_ups.boxed())
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.store.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.inner.store.records_stamp()
    }
}
