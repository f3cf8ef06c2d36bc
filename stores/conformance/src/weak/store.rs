use async_trait::async_trait;
use futures::{StreamExt, stream};
use threadkeep_core::{
    Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, Message, MessageName,
    MessagePage, MessageQuery, Namespace, OpenThread, Opened, Record, RecordOwner, RecordQuery, RecordWrite, Result,
    Scope, Store, Tagged, ThreadId, ThreadName, ThreadPage, ThreadQuery, ThreadRead, ThreadView, Timestamp, UserCursor,
    WakeUps, WriteOutcome,
};

use super::dice::Dice;
use super::{FaultyStore, lost_reply};

#[async_trait]
impl Store for FaultyStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        let fate = self.roll(6);
        if fate == 0 {
            return Err(lost_reply());
        }
        let outcome = self.inner.store.commit(scope, thread, batch, now).await?;
        if fate == 1 { Err(lost_reply()) } else { Ok(outcome) }
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<Opened> {
        self.may_refuse()?;
        self.inner.store.open_thread(scope, open, now).await
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.may_refuse()?;
        self.inner.store.read_thread(scope, name, read, now).await
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.may_refuse()?;
        self.inner.store.list_threads(scope, query, now).await
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.may_refuse()?;
        self.inner.store.list_changed_threads(scope, after, limit, now).await
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        self.may_refuse()?;
        self.inner.store.delete_thread(scope, thread, now).await
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        self.may_refuse()?;
        self.inner.store.list_messages(scope, thread, query, now).await
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        names: &[MessageName],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.may_refuse()?;
        self.inner.store.find_messages(scope, thread, names, now).await
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        self.may_refuse()?;
        self.inner.store.list_changes(scope, thread, after, limit, now).await
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        self.may_refuse()?;
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
        self.may_refuse()?;
        self.inner.store.find_record(scope, owner, namespace, key, now).await
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.may_refuse()?;
        self.inner.store.list_records(scope, query, now).await
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        self.may_refuse()?;
        self.inner.store.write_record(scope, write, now).await
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        let fate = self.roll(6);
        if fate == 0 {
            return Err(lost_reply());
        }
        let written = self.inner.store.write_derived(scope, thread, write, now).await?;
        if fate == 1 { Err(lost_reply()) } else { Ok(written) }
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        self.may_refuse()?;
        let mut dice = Dice::new(self.roll(u64::MAX));
        let heard = self.inner.store.wake_ups().await?.flat_map(move |wake_up| {
            let times = usize::try_from(dice.roll(3)).unwrap_or(1);
            stream::iter(std::iter::repeat_n(wake_up, times))
        });
        Ok(heard.boxed())
    }

    fn stamp(&self) -> Option<u64> {
        self.inner.store.stamp()
    }

    fn records_stamp(&self) -> Option<u64> {
        self.inner.store.records_stamp()
    }
}
