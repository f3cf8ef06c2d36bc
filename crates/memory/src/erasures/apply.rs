//! Applying recorded erasures to a restored store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use threadkeep_core::{
    Clock, JsonText, Message, MessageId, Namespace, Owner, Record, RecordName, RecordOwner, RecordQuery, RecordWrite,
    Scope, StoreError, TenantId, Thread, ThreadId, Timestamp, UserId, limits,
};

use super::{ErasureBound, ErasureEntries, walk};
use crate::messages::READ_PAGE;
use crate::retry::retry;
use crate::{EraseOptions, Memory, MemoryError, Platform, Result};

/// Maximum clock difference in milliseconds between the process that changed a thread and the process that erased it. The id of
/// a deleted thread cannot be used again for seven days, so a new thread with the same id is never mistaken for the erased one.
const THREAD_SLACK_MS: i64 = 24 * 60 * 60 * 1000;
/// Maximum clock difference in milliseconds between the machine that made a backup and the machine that erased data.
const BACKUP_SLACK_MS: i64 = 5 * 60 * 1000;

/// The numbers of items that were removed from a restored store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AppliedErasures {
    /// Number of users whose data was removed.
    pub users: u64,
    /// Number of threads, including those of the removed users.
    pub threads: u64,
    /// Number of messages, including those in removed threads.
    pub messages: u64,
    /// Number of records of threads, users and tenants.
    #[serde(rename = "documents")]
    pub records: u64,
}

impl Memory {
    /// Removes from the store the data that was erased according to `known`. `made_at` is the time of the backup from which the
    /// store was restored; `None` if the time is not known.
    ///
    /// Does not remove data that is newer than the erasure, such as a thread that changed after its user was erased, or a record
    /// with a higher version than the erased one. The removed bytes are overwritten by the next sweep. The call is idempotent
    /// and deterministic: two copies of one backup result in the same data.
    ///
    /// # Errors
    /// Errors from the store. Removals before the error remain in effect.
    pub async fn apply_erasures(
        &self,
        known: &mut dyn ErasureEntries,
        made_at: Option<Timestamp>,
    ) -> Result<AppliedErasures> {
        let tenants = walk::list_tenants(self).await?;
        for tenant in &tenants {
            let mut threads = walk::Threads::in_tenant(self, tenant, self.now());
            while let Some(page) = threads.next_page().await? {
                page.iter().for_each(|thread| known.note_thread(tenant, thread.id));
            }
        }
        let mut applied = AppliedErasures::default();
        for tenant in &tenants {
            let known = &*known;
            let scope = Scope::Tenant(tenant.clone());
            let mut tenant_erasures =
                TenantErasures { memory: self, known, made_at, tenant, scope, applied: &mut applied };
            tenant_erasures.apply_to_users().await?;
            tenant_erasures.apply_to_threads().await?;
            tenant_erasures.apply_to_records().await?;
        }
        Ok(applied)
    }

    /// Ensures that records written from now on get higher versions than `version`, so that no earlier erasure applies to them.
    /// Does nothing in an empty store.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn raise_record_versions(&self, version: u64) -> Result<()> {
        let tenants = retry(self.runtime(), || self.maintenance().list_tenants(None, 1)).await?;
        let Some(tenant) = tenants.first().filter(|_| version > 0) else { return Ok(()) };
        let (namespace, key) = (Namespace::System("erasures".to_owned()), "version".to_owned());
        let value = JsonText::of(&version)?;
        let raised =
            Record { namespace: namespace.clone(), key: key.clone(), value, version, tag: None, expires_at: None };
        let owner = RecordOwner::Tenant;
        retry(self.runtime(), || self.maintenance().restore_record(tenant, &owner, raised.clone())).await?;
        self.delete_record(&Scope::Tenant(tenant.clone()), owner, namespace, key).await
    }

    async fn delete_record(&self, scope: &Scope, owner: RecordOwner, namespace: Namespace, key: String) -> Result<()> {
        let write = RecordWrite { owner, namespace, key, expected: None, value: None, expires_at: None };
        let now = self.now();
        match retry(self.runtime(), || self.store().write_record(scope, write.clone(), now)).await {
            Ok(_) | Err(StoreError::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Applies erasures to one tenant.
struct TenantErasures<'a> {
    memory: &'a Memory,
    known: &'a dyn ErasureEntries,
    made_at: Option<Timestamp>,
    tenant: &'a TenantId,
    scope: Scope,
    applied: &'a mut AppliedErasures,
}

impl TenantErasures<'_> {
    /// Erases users who have no data newer than their erasure. The older data of other users is removed by the next steps.
    async fn apply_to_users(&mut self) -> Result<()> {
        let mut after: Option<Owner> = None;
        loop {
            let list = || self.memory.maintenance().list_owners(self.tenant, after.as_ref(), limits::PAGE);
            let owners = retry(self.memory.runtime(), list).await?;
            let Some(last) = owners.last().cloned() else { return Ok(()) };
            for owner in owners {
                if let Owner::User(user) = owner
                    && self.known.user(self.tenant, &user).is_some()
                    && !self.has_newer_data(&user).await?
                {
                    let erased = self.memory.erase_user(&self.scope, &user, EraseOptions::default()).await?;
                    let count = erased.threads + erased.records;
                    self.applied.users += u64::from(count > 0);
                    self.applied.threads += erased.threads;
                    self.applied.messages += erased.messages;
                    self.applied.records += erased.records;
                }
            }
            after = Some(last);
        }
    }

    async fn has_newer_data(&self, user: &UserId) -> Result<bool> {
        let own = Scope::User(self.tenant.clone(), user.clone());
        let mut threads = walk::Threads::in_scope(self.memory, own.clone(), self.memory.now());
        while let Some(page) = threads.next_page().await? {
            if page.iter().any(|thread| !self.is_thread_erased(thread)) {
                return Ok(true);
            }
        }
        let query = RecordQuery::of(RecordOwner::User(user.clone()));
        let records = self.memory.all_records(&own, query.clone()).await?;
        Ok(records.iter().any(|record| !self.is_record_erased(&query.owner, record)))
    }

    /// Deletes erased threads, and removes erased messages and records from other threads.
    async fn apply_to_threads(&mut self) -> Result<()> {
        let mut threads = walk::Threads::in_tenant(self.memory, self.tenant, self.memory.now());
        while let Some(page) = threads.next_page().await? {
            for thread in page {
                if self.is_thread_erased(&thread) {
                    self.memory.delete_thread(&self.scope, thread.id).await?;
                    self.applied.threads += 1;
                    self.applied.messages += thread.message_count;
                } else {
                    self.erase_contents(&thread).await?;
                }
            }
        }
        Ok(())
    }

    fn is_thread_erased(&self, thread: &Thread) -> bool {
        let thread_bound = self.known.thread(self.tenant, thread.id);
        if thread_bound.is_some_and(|bound| is_not_newer(thread, bound)) {
            return true;
        }
        let Owner::User(user) = &thread.owner else { return false };
        self.known.user(self.tenant, user).is_some_and(|erased| match self.made_at {
            Some(made_at) if made_at <= erased.bound.at => true,
            _ => thread.updated_at < erased.bound.at,
        })
    }

    /// Erases messages and records of a thread that is not itself erased.
    async fn erase_contents(&mut self, thread: &Thread) -> Result<()> {
        let has_entries = self.known.has_entries_in_thread(self.tenant, thread.id);
        if has_entries || (thread.owner == Owner::Tenant && self.known.has_erased_shared_messages()) {
            let (ids, at) = self.messages_to_erase(thread).await?;
            // The clock returns the time of the erasure, so that the result is deterministic.
            let memory = self.memory_at(thread, at);
            for ids in ids.chunks(limits::COMMIT_MESSAGES) {
                memory.erase_messages(&self.scope, thread.id, ids).await?;
                self.applied.messages += ids.len() as u64;
            }
        }
        if has_entries { self.erase_thread_records(thread).await } else { Ok(()) }
    }

    /// Returns the erased messages that the thread contains, and the time of the latest erasure or change.
    async fn messages_to_erase(&self, thread: &Thread) -> Result<(Vec<MessageId>, Timestamp)> {
        let (mut ids, mut latest, mut after) = (Vec::new(), thread.updated_at, Some(0));
        while let Some(seq) = after {
            let step = self.memory.page_after(&self.scope, thread.id, seq, READ_PAGE).await?;
            for message in &step.page.messages {
                if let Some(at) = self.erased_at(thread, message) {
                    ids.push(message.id);
                    latest = latest.max(at);
                }
            }
            after = step.next;
        }
        Ok((ids, latest))
    }

    /// The time at which a message was erased; `None` if it was not erased.
    fn erased_at(&self, thread: &Thread, message: &Message) -> Option<Timestamp> {
        let bound = self.known.message(self.tenant, thread.id, message.id);
        let bound = bound.filter(|bound| thread.positions.change < bound.up_to && is_not_newer(thread, *bound));
        let author_erased_at = || {
            let author = UserId::new(message.content.author.as_deref()?).ok()?;
            let at = self.known.user(self.tenant, &author)?.shared_messages_at?;
            (thread.owner == Owner::Tenant && message.created_at < at).then_some(at)
        };
        bound.map(|bound| bound.at).or_else(author_erased_at)
    }

    async fn erase_thread_records(&mut self, thread: &Thread) -> Result<()> {
        let owner = RecordOwner::Thread(thread.id);
        let records = self.memory.all_records(&self.scope, RecordQuery::of(owner.clone())).await?;
        for Record { namespace, key, version, .. } in records {
            let Some(bound) = self.known.record(self.tenant, &owner, &namespace, &key) else { continue };
            if version < bound.up_to && is_not_newer(thread, bound) {
                let at = thread.updated_at.max(bound.at);
                let batch = self.memory_at(thread, at).batch().delete(RecordName { namespace, key });
                batch.commit(&self.scope, thread.id).await?;
                self.applied.records += 1;
            }
        }
        Ok(())
    }

    /// Removes erased records of the tenant and of its users.
    async fn apply_to_records(&mut self) -> Result<()> {
        let mut records = walk::Records::in_tenant(self.memory, self.tenant, self.memory.now());
        while let Some((owner, page)) = records.next_page().await? {
            for record in page {
                if self.is_record_erased(&owner, &record) {
                    self.remove_record(&owner, record).await?;
                    self.applied.records += 1;
                }
            }
        }
        Ok(())
    }

    fn is_record_erased(&self, owner: &RecordOwner, record: &Record) -> bool {
        let record_bound = self.known.record(self.tenant, owner, &record.namespace, &record.key);
        let user_bound = || match owner {
            RecordOwner::User(user) => self.known.user(self.tenant, user).map(|erased| erased.bound),
            _ => None,
        };
        let mut bounds = record_bound.into_iter().chain(user_bound());
        bounds.any(|bound| self.is_older_record(bound, record.version))
    }

    /// Whether a record is not newer than its erasure. That is true of every record in a backup made before the erasure, and of
    /// no record in a backup made after it. If it is uncertain which came first, the version decides.
    fn is_older_record(&self, bound: ErasureBound, version: u64) -> bool {
        match self.made_at {
            Some(made_at) if made_at <= bound.at => true,
            Some(made_at) if made_at > bound.at.plus_ms(BACKUP_SLACK_MS) => false,
            _ => version <= bound.up_to,
        }
    }

    /// Removes a record. If the record describes a library document, also removes the document's passages.
    async fn remove_record(&self, owner: &RecordOwner, record: Record) -> Result<()> {
        let scope = match owner {
            RecordOwner::User(user) => Scope::User(self.tenant.clone(), user.clone()),
            _ => self.scope.clone(),
        };
        let Record { namespace, key, .. } = record;
        if let Namespace::App(name) = &namespace
            && let Some(library) = name.strip_prefix("library:")
        {
            match self.memory.remove_library_document(&scope, library, &key).await {
                // The record does not describe a valid document, so it is removed like any other record.
                Ok(_) | Err(MemoryError::Store(StoreError::Corrupt { .. } | StoreError::Invalid { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        self.memory.delete_record(&scope, owner.clone(), namespace, key).await
    }

    /// A `Memory` whose clock always returns `at`, and whose generated ids are deterministic.
    fn memory_at(&self, thread: &Thread, at: Timestamp) -> Memory {
        let clock = ErasureClock { at, thread: thread.id, counter: AtomicU64::new(thread.positions.change) };
        let platform = Platform { clock: Arc::new(clock), ..self.memory.platform().clone() };
        Memory::with_platform(self.memory.backend().clone(), platform)
    }
}

/// Whether a thread's last change was not later than an erasure, within [`THREAD_SLACK_MS`].
fn is_not_newer(thread: &Thread, bound: ErasureBound) -> bool {
    thread.updated_at <= bound.at.plus_ms(THREAD_SLACK_MS)
}

/// A fixed clock with deterministic randomness, so that the same ids are generated whenever a backup is restored.
struct ErasureClock {
    at: Timestamp,
    thread: ThreadId,
    counter: AtomicU64,
}

impl Clock for ErasureClock {
    fn now(&self) -> Timestamp {
        self.at
    }

    fn random(&self) -> [u8; 10] {
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        let digest = Sha256::new().chain_update(self.thread.0.as_bytes()).chain_update(count.to_be_bytes()).finalize();
        let mut random = [0; 10];
        random.copy_from_slice(&digest[..10]);
        random
    }
}
