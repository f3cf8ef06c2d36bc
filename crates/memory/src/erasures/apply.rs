//! Applying recorded erasures to a restored store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use threadkeep_core::{
    Clock, JsonText, Message, MessageId, Namespace, Owner, Record, RecordName, RecordOwner, RecordQuery, RecordWrite,
    Scope, StoreError, TenantId, Thread, ThreadId, Timestamp, UserId, limits,
};

use super::{ErasureBound, KnownErasures, walk};
use crate::messages::READ_PAGE;
use crate::retry::retry;
use crate::{EraseOptions, Memory, MemoryError, Platform, Result};

/// Allowed clock difference between the processes that change and that erase a thread. A deleted id cannot be opened again for
/// seven days, so a thread with a reused id is never mistaken for the erased one.
const THREAD_SLACK_MS: i64 = 24 * 60 * 60 * 1000;
/// Allowed clock difference between the machine that made a backup and the one that erased.
const BACKUP_SLACK_MS: i64 = 5 * 60 * 1000;

/// Counts of what was removed from a restored store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct AppliedErasures {
    /// Erased users of whom data was removed.
    pub users: u64,
    /// Threads, including those of such users.
    pub threads: u64,
    /// Messages, including those of removed threads.
    pub messages: u64,
    /// Records of threads, users and tenants.
    #[serde(rename = "documents")]
    pub records: u64,
}

impl Memory {
    /// Removes from the store what was erased according to `known`. `made_at` is the time of the backup that the store was
    /// restored from, if it is known.
    ///
    /// Newer data stays: a thread that changed after its user was erased, a record with a higher version than the erased one.
    /// The bytes are gone after the next sweep. The call is idempotent and deterministic: applied to two copies of one backup, it
    /// gives the same result.
    ///
    /// # Errors
    /// Those of the store. Removals before the error remain in effect.
    pub async fn apply_erasures(
        &self,
        known: &mut dyn KnownErasures,
        made_at: Option<Timestamp>,
    ) -> Result<AppliedErasures> {
        let tenants = walk::tenants(self).await?;
        for tenant in &tenants {
            let mut threads = walk::Threads::of(self, tenant, self.now());
            while let Some(page) = threads.next_page().await? {
                page.iter().for_each(|thread| known.note_thread(tenant, thread.id));
            }
        }
        let mut applied = AppliedErasures::default();
        for tenant in &tenants {
            let known = &*known;
            let scope = Scope::Tenant(tenant.clone());
            let mut pass = Pass { memory: self, known, made_at, tenant, scope, applied: &mut applied };
            pass.users().await?;
            pass.threads().await?;
            pass.records().await?;
        }
        Ok(applied)
    }

    /// Makes records that are written from now on get higher versions than `version`, so that no earlier erasure applies to
    /// them. Does nothing in an empty store.
    ///
    /// # Errors
    /// Those of the store.
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

/// The application of erasures to one tenant.
struct Pass<'a> {
    memory: &'a Memory,
    known: &'a dyn KnownErasures,
    made_at: Option<Timestamp>,
    tenant: &'a TenantId,
    scope: Scope,
    applied: &'a mut AppliedErasures,
}

impl Pass<'_> {
    /// Erases users who have no newer data. For the others, the later steps remove the older data.
    async fn users(&mut self) -> Result<()> {
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
        let mut threads = walk::Threads::of_scope(self.memory, own.clone(), self.memory.now());
        while let Some(page) = threads.next_page().await? {
            if page.iter().any(|thread| !self.is_thread_erased(thread)) {
                return Ok(true);
            }
        }
        let query = RecordQuery::of(RecordOwner::User(user.clone()));
        let records = self.memory.all_records(&own, query.clone()).await?;
        Ok(records.iter().any(|record| !self.is_record_erased(&query.owner, record)))
    }

    async fn threads(&mut self) -> Result<()> {
        let mut threads = walk::Threads::of(self.memory, self.tenant, self.memory.now());
        while let Some(page) = threads.next_page().await? {
            for thread in page {
                if self.is_thread_erased(&thread) {
                    self.memory.delete_thread(&self.scope, thread.id).await?;
                    self.applied.threads += 1;
                    self.applied.messages += thread.message_count;
                } else {
                    self.erase_inside(&thread).await?;
                }
            }
        }
        Ok(())
    }

    fn is_thread_erased(&self, thread: &Thread) -> bool {
        let own = self.known.thread(self.tenant, thread.id);
        if own.is_some_and(|bound| is_not_newer(thread, bound)) {
            return true;
        }
        let Owner::User(user) = &thread.owner else { return false };
        self.known.user(self.tenant, user).is_some_and(|erased| match self.made_at {
            Some(made_at) if made_at <= erased.bound.at => true,
            _ => thread.updated_at < erased.bound.at,
        })
    }

    /// Erases messages and records of a thread that is not erased itself.
    async fn erase_inside(&mut self, thread: &Thread) -> Result<()> {
        let is_named = self.known.is_in_thread(self.tenant, thread.id);
        if is_named || (thread.owner == Owner::Tenant && self.known.has_shared_messages()) {
            let (ids, at) = self.messages_to_erase(thread).await?;
            // With the time of the erasure, so that the result is deterministic.
            let memory = self.as_of(thread, at);
            for ids in ids.chunks(limits::COMMIT_MESSAGES) {
                memory.erase_messages(&self.scope, thread.id, ids).await?;
                self.applied.messages += ids.len() as u64;
            }
        }
        if is_named { self.erase_records_inside(thread).await } else { Ok(()) }
    }

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

    /// When a message was erased; `None` if it was not.
    fn erased_at(&self, thread: &Thread, message: &Message) -> Option<Timestamp> {
        let own = self.known.message(self.tenant, thread.id, message.id);
        let own = own.filter(|bound| thread.positions.change < bound.number && is_not_newer(thread, *bound));
        let of_author = || {
            let author = UserId::new(message.content.author.as_deref()?).ok()?;
            let at = self.known.user(self.tenant, &author)?.shared_messages_at?;
            (thread.owner == Owner::Tenant && message.created_at < at).then_some(at)
        };
        own.map(|bound| bound.at).or_else(of_author)
    }

    async fn erase_records_inside(&mut self, thread: &Thread) -> Result<()> {
        let owner = RecordOwner::Thread(thread.id);
        let records = self.memory.all_records(&self.scope, RecordQuery::of(owner.clone())).await?;
        for Record { namespace, key, version, .. } in records {
            let Some(bound) = self.known.record(self.tenant, &owner, &namespace, &key) else { continue };
            if version < bound.number && is_not_newer(thread, bound) {
                let at = thread.updated_at.max(bound.at);
                let batch = self.as_of(thread, at).batch().delete(RecordName { namespace, key });
                batch.commit(&self.scope, thread.id).await?;
                self.applied.records += 1;
            }
        }
        Ok(())
    }

    /// Erases records of the tenant and of its users.
    async fn records(&mut self) -> Result<()> {
        let mut records = walk::Records::of(self.memory, self.tenant, self.memory.now());
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
        let own = self.known.record(self.tenant, owner, &record.namespace, &record.key);
        let of_user = || match owner {
            RecordOwner::User(user) => self.known.user(self.tenant, user).map(|erased| erased.bound),
            _ => None,
        };
        let mut bounds = own.into_iter().chain(of_user());
        bounds.any(|bound| self.is_older_record(bound, record.version))
    }

    /// Whether a record is not newer than its erasure. A backup from before the erasure contains only such records, one from
    /// after it none. If their order is uncertain, the version decides.
    fn is_older_record(&self, bound: ErasureBound, version: u64) -> bool {
        match self.made_at {
            Some(made_at) if made_at <= bound.at => true,
            Some(made_at) if made_at > bound.at.plus_ms(BACKUP_SLACK_MS) => false,
            _ => version <= bound.number,
        }
    }

    /// Removes a record. If it is the entry of a library document, removes its passages too.
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
                // Not a valid entry, so it is removed like any other record.
                Ok(_) | Err(MemoryError::Store(StoreError::Corrupt { .. } | StoreError::Invalid { .. })) => {}
                Err(error) => return Err(error),
            }
        }
        self.memory.delete_record(&scope, owner.clone(), namespace, key).await
    }

    fn as_of(&self, thread: &Thread, at: Timestamp) -> Memory {
        let clock = ErasureClock { at, thread: thread.id, counter: AtomicU64::new(thread.positions.change) };
        let platform = Platform { clock: Arc::new(clock), ..self.memory.platform().clone() };
        Memory::with_platform(self.memory.backend().clone(), platform)
    }
}

/// Whether a thread's last change is not later than an erasure.
fn is_not_newer(thread: &Thread, bound: ErasureBound) -> bool {
    thread.updated_at <= bound.at.plus_ms(THREAD_SLACK_MS)
}

/// A fixed clock with deterministic randomness, so that the same ids are generated each time that a backup is restored.
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
