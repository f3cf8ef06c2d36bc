//! Erasing all data of a user.

use serde::Serialize;
use threadkeep_core::{
    MessageId, Owner, Record, RecordOwner, RecordQuery, RecordWrite, Scope, StoreError, ThreadId, ThreadOrder,
    ThreadQuery, UserId, limits,
};

use crate::erasures::{ErasedItem, Erasure};
use crate::messages::READ_PAGE;
use crate::retry::retry;
use crate::{Memory, MemoryError, Result};

/// Options for erasing a user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EraseOptions {
    /// Whether to erase the user's messages in shared threads.
    pub shared_messages: SharedMessages,
}

/// Whether to erase a user's messages in threads that the users of a tenant share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedMessages {
    /// Keep the messages.
    #[default]
    Keep,
    /// Erase the messages whose author is the user. Requires the tenant's scope.
    Erase,
}

/// The numbers of erased items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EraseReport {
    /// Number of threads of the user.
    pub threads: u64,
    /// Number of messages in those threads.
    pub messages: u64,
    /// Number of records of the user.
    #[serde(rename = "documents")]
    pub records: u64,
    /// Number of entries in the user's named collections, such as passages in a library.
    pub passages: u64,
    /// Number of messages of the user in shared threads.
    pub shared_messages: u64,
}

impl EraseReport {
    /// The number of items that belonged to the user, not counting messages.
    fn count_owned(&self) -> u64 {
        self.threads + self.records + self.passages
    }
}

impl Memory {
    /// Erases all data of a user: threads, records, entries of named collections and, if requested, messages in shared threads.
    ///
    /// Repeats until nothing is left to erase, so that data written meanwhile is also erased. Does not erase data of others. The
    /// erased bytes are overwritten in the store's files by the next sweep at the latest. After a failure, the same call erases
    /// the rest.
    ///
    /// # Errors
    /// `Denied` in the scope of another user, and for shared messages in the user's own scope; errors from the store.
    pub async fn erase_user(&self, scope: &Scope, user: &UserId, options: EraseOptions) -> Result<EraseReport> {
        let is_allowed = match scope {
            Scope::Tenant(_) => true,
            Scope::User(_, caller) => caller == user && options.shared_messages == SharedMessages::Keep,
        };
        if !is_allowed {
            return Err(StoreError::Denied("erasing data of others").into());
        }
        // The user's own scope cannot reach data of others, even if there is a bug here.
        let own = Scope::User(scope.tenant_id().clone(), user.clone());
        self.record_user_erasure(&own, user, options).await?;
        let mut report = EraseReport::default();
        loop {
            let before = report.count_owned();
            self.erase_threads(&own, user, &mut report).await?;
            // The records of a library's documents are erased before the passages, because adding a document checks the
            // document's record before each step.
            self.erase_records(&own, user, &mut report).await?;
            report.passages += retry(self.runtime(), || self.search_index().remove_collections(&own)).await?;
            if report.count_owned() == before {
                break;
            }
        }
        if options.shared_messages == SharedMessages::Erase {
            report.shared_messages = self.erase_shared_messages(scope, user).await?;
        }
        Ok(report)
    }

    /// Records in the erasure log that all data of a user is erased, including data that exists only in a backup.
    async fn record_user_erasure(&self, own: &Scope, user: &UserId, options: EraseOptions) -> Result<()> {
        let Some(log) = self.erasure_log() else { return Ok(()) };
        let records = self.all_records(own, RecordQuery::of(RecordOwner::User(user.clone()))).await?;
        let item = ErasedItem::User {
            user: user.clone(),
            shared_messages: options.shared_messages == SharedMessages::Erase,
            record_version: records.iter().map(|record| record.version).max().unwrap_or(0),
        };
        log.record(vec![Erasure { tenant: own.tenant_id().clone(), item }], self.now()).await?;
        Ok(())
    }

    async fn erase_threads(&self, own: &Scope, user: &UserId, report: &mut EraseReport) -> Result<()> {
        let owner = Some(Owner::User(user.clone()));
        let mut query = ThreadQuery { owner, ..ThreadQuery::new(ThreadOrder::Created, limits::PAGE) };
        loop {
            let page = self.list_threads(own, &query).await?;
            for thread in &page.threads {
                match self.delete_thread(own, thread.id).await {
                    Ok(()) => {
                        report.threads += 1;
                        report.messages += thread.message_count;
                    }
                    Err(error) if error.is_not_found() => {}
                    Err(error) => return Err(error),
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn erase_records(&self, own: &Scope, user: &UserId, report: &mut EraseReport) -> Result<()> {
        let owner = RecordOwner::User(user.clone());
        for Record { namespace, key, .. } in self.all_records(own, RecordQuery::of(owner.clone())).await? {
            let owner = owner.clone();
            let write = RecordWrite { owner, namespace, key, expected: None, value: None, expires_at: None };
            let now = self.now();
            match retry(self.runtime(), || self.store().write_record(own, write.clone(), now)).await {
                Ok(_) => report.records += 1,
                Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    async fn erase_shared_messages(&self, tenant: &Scope, user: &UserId) -> Result<u64> {
        let mut erased = 0;
        let owner = Some(Owner::Tenant);
        let mut query = ThreadQuery { owner, ..ThreadQuery::new(ThreadOrder::Created, limits::PAGE) };
        loop {
            let page = self.list_threads(tenant, &query).await?;
            for thread in &page.threads {
                match self.erase_messages_by(tenant, thread.id, user).await {
                    Ok(count) => erased += count,
                    Err(error) if error.is_thread_not_found() => {}
                    Err(error) => return Err(error),
                }
            }
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(erased),
            }
        }
    }

    async fn erase_messages_by(&self, tenant: &Scope, thread: ThreadId, user: &UserId) -> Result<u64> {
        let (mut erased, mut after) = (0, Some(0));
        while let Some(seq) = after {
            let step = self.page_after(tenant, thread, seq, READ_PAGE).await?;
            let authored = step.page.messages.iter();
            let authored = authored.filter(|message| message.content.author.as_deref() == Some(user.as_str()));
            let ids: Vec<MessageId> = authored.map(|message| message.id).collect();
            if !ids.is_empty() {
                erased += self.erase_remaining(tenant, thread, ids).await?;
            }
            after = step.next;
        }
        Ok(erased)
    }

    /// Erases messages, even if others erase or trim some of them meanwhile. Returns the number of erased messages.
    async fn erase_remaining(&self, tenant: &Scope, thread: ThreadId, ids: Vec<MessageId>) -> Result<u64> {
        const ATTEMPTS: usize = 8;
        let mut ids = ids;
        for _ in 0..ATTEMPTS {
            match self.erase_messages(tenant, thread, &ids).await {
                Err(error) if error.is_not_found() && !error.is_thread_not_found() => {
                    let remaining = self.find_by_ids(tenant, thread, ids).await?;
                    ids = remaining.into_iter().map(|message| message.id).collect();
                    if ids.is_empty() {
                        return Ok(0);
                    }
                }
                result => return result.map(|_| ids.len() as u64),
            }
        }
        Err(MemoryError::Contended { what: "the thread", attempts: ATTEMPTS })
    }
}
