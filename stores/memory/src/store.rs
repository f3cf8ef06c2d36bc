use async_trait::async_trait;
use threadkeep_core::{
    Batch, ChangePage, ChangedThreads, ChangesWithMessages, CommitOutcome, DerivedWrite, Message, MessagePage,
    MessageQuery, MessageRef, Namespace, OpenOutcome, OpenThread, Record, RecordOwner, RecordQuery, RecordWrite,
    Result, Scope, Store, TaggedNumber, ThreadId, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView,
    Timestamp, UserCursor, WakeUp, WakeUps, WriteOutcome,
};

use crate::{MemoryStore, wake_ups};

#[async_trait]
impl Store for MemoryStore {
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome> {
        let (outcome, wake_up) = self.state().commit(scope, thread, batch, now)?;
        self.send_wake_up(wake_up);
        Ok(outcome)
    }

    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        let (opened, wake_up) = self.state().open_thread(scope, open, now)?;
        self.send_wake_up(wake_up);
        Ok(opened)
    }

    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        self.state().read_thread(scope, thread, read, now)
    }

    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        self.state().list_threads(scope, query, now)
    }

    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        self.state().list_changed_threads(scope, after, limit, now)
    }

    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        let wake_up = self.state().delete_thread(scope, thread, now)?;
        self.send_wake_up(Some(wake_up));
        Ok(())
    }

    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage> {
        self.state().list_messages(scope, thread, query, now)
    }

    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>> {
        self.state().find_messages(scope, thread, messages, now)
    }

    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage> {
        self.state().list_changes(scope, thread, after, limit, now)
    }

    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages> {
        let state = self.state();
        let page = state.list_changes(scope, thread, after, limit, now)?;
        let query = ChangesWithMessages::query(&page);
        let messages = query.map(|query| state.list_messages(scope, thread, &query, now)).transpose()?;
        Ok(ChangesWithMessages::new(page, messages))
    }

    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>> {
        Ok(self.state().find_record(scope, owner, namespace, key, now))
    }

    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>> {
        self.state().list_records(scope, query, now)
    }

    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
        let wake_up = WakeUp::of_record(scope, &write);
        let written = self.state().write_record(scope, write, now)?;
        self.send_wake_up(wake_up);
        Ok(written)
    }

    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome> {
        self.state().write_derived(scope, thread, write, now)
    }

    async fn wake_ups(&self) -> Result<WakeUps> {
        Ok(wake_ups::subscribe(&self.shared.wake_ups))
    }

    fn stamp(&self) -> Option<u64> {
        None
    }

    fn records_stamp(&self) -> Option<u64> {
        None
    }
}
