//! Makes a store usable again after a server has lost its data.
//!
//! The data on the other servers stays: threads, and the lists, thread keys and index parts stored there, including those of lost threads.
//! Lists and keys are completed from the remaining threads, and entries of lost threads are removed.

use std::collections::{BTreeMap, HashSet};

use threadkeep_core::{Owner, Result, TenantId, ThreadId};

use crate::keys::parse_owner;
use crate::marks::Touch;
use crate::shared::{Request, Shared, View, WriteEffects};

/// The maximum number of threads that are read or listed concurrently.
const THREADS: usize = 64;
/// Higher than the number of any write to a thread.
pub(crate) const AFTER_ALL_WRITES: u64 = (u32::MAX as u64) << 20;

impl Shared {
    /// Recovers from a loss, if there is one.
    pub(crate) async fn recover(&self) -> Result<()> {
        if self.connections.find_losses().await? == 0 {
            return Ok(());
        }
        let repair_guard = self.connections.loss_detector().begin_repair();
        self.connections.install().await?;
        self.forget_names();
        // Changes that feeds have already announced may be lost.
        self.begin_history().await?;
        for (tenant, owner) in self.scan_owners().await? {
            self.register_owner(&tenant, &owner).await?;
        }
        for (tenant, threads) in self.scan_threads().await? {
            self.register_tenant(&tenant).await?;
            self.recover_threads(&tenant, &threads).await?;
            self.remove_lost_threads(&tenant, &threads).await?;
        }
        self.connections.place_markers(&self.incarnation).await?;
        drop(repair_guard);
        self.connections.find_losses().await.map(|_| ())
    }

    /// Finds all threads, and what remains of deleted ones, in the order of their ids.
    async fn scan_threads(&self) -> Result<BTreeMap<TenantId, Vec<ThreadId>>> {
        let mut found: BTreeMap<TenantId, Vec<ThreadId>> = BTreeMap::new();
        for key in self.connections.scan(&self.keys.all(":t")).await? {
            let parsed = tag_of(&key).and_then(|tag| tag.split_once('/'));
            let Some((Ok(thread), tenant)) = parsed.map(|(thread, tenant)| (thread.parse::<ThreadId>(), tenant)) else {
                continue;
            };
            found.entry(TenantId::from_stored(tenant.to_owned())?).or_default().push(thread);
        }
        for threads in found.values_mut() {
            threads.sort();
            threads.dedup();
        }
        // Tenants whose threads are all lost may still have lists.
        let mut after = None;
        loop {
            let tenants = self.list_tenants(after.as_ref(), threadkeep_core::limits::PAGE).await?;
            after = tenants.last().cloned();
            let is_last = tenants.len() < threadkeep_core::limits::PAGE;
            for tenant in tenants {
                found.entry(tenant).or_default();
            }
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Finds the owners of records.
    async fn scan_owners(&self) -> Result<Vec<(TenantId, Owner)>> {
        let mut found = Vec::new();
        for key in self.connections.scan(&self.keys.all(":v")).await? {
            let name = tag_of(&key).and_then(|tag| tag.strip_prefix("owner/"));
            let parsed = name.and_then(|name| match name.strip_suffix("/t") {
                Some(tenant) => Some((tenant, Owner::Tenant)),
                None => name.find("/u/").and_then(|at| Some((&name[..at], parse_owner(&name[at + 1..])?))),
            });
            if let Some((tenant, owner)) = parsed {
                found.push((TenantId::from_stored(tenant.to_owned())?, owner));
            }
        }
        Ok(found)
    }

    /// Completes the lists and keys of a tenant from the stored threads.
    async fn recover_threads(&self, tenant: &TenantId, threads: &[ThreadId]) -> Result<()> {
        let mut updated = Vec::with_capacity(threads.len());
        for threads in threads.chunks(THREADS) {
            let mut touches = Vec::new();
            for (thread, view) in threads.iter().zip(self.read_rows(tenant, threads).await?) {
                let Some(view) = view else { continue };
                self.recover_key(tenant, *thread, &view).await?;
                updated.push((view.row.thread.as_ref().map(|stored| stored.updated_at), *thread));
                touches.push(listing(*thread, &view, false));
            }
            // In order of their ids, which is their creation order.
            self.touch(tenant, &touches, &[]).await?;
        }
        updated.sort();
        for part in updated.chunks(THREADS) {
            let threads: Vec<ThreadId> = part.iter().map(|(_, thread)| *thread).collect();
            let views = threads.iter().zip(self.read_rows(tenant, &threads).await?);
            let touches: Vec<Touch> = views.filter_map(|(thread, view)| Some(listing(*thread, &view?, true))).collect();
            self.touch(tenant, &touches, &[]).await?;
        }
        Ok(())
    }

    /// Gives a thread its key, unless another thread has it.
    async fn recover_key(&self, tenant: &TenantId, thread: ThreadId, view: &View) -> Result<()> {
        let Some(stored) = &view.row.thread else { return Ok(()) };
        let Some(key) = &stored.key else { return Ok(()) };
        let claimed = self.claim(&self.keys.claim(tenant, &stored.owner, key), thread).await?;
        if claimed != thread && self.read(tenant, claimed, &Request::row()).await?.is_none() {
            self.take_claim(tenant, &stored.owner, key, thread).await?;
        }
        Ok(())
    }

    /// Removes threads that are lost from the lists of a tenant.
    async fn remove_lost_threads(&self, tenant: &TenantId, threads: &[ThreadId]) -> Result<()> {
        let stored: HashSet<ThreadId> = threads.iter().copied().collect();
        let (mut after, mut lost) = (None, Vec::new());
        loop {
            let page = self.list_created(tenant, after.take()).await?;
            lost.extend(page.iter().map(|(thread, _)| *thread).filter(|thread| !stored.contains(thread)));
            match page.last() {
                Some((id, score)) if page.len() == threadkeep_core::limits::PAGE => after = Some((score.clone(), *id)),
                _ => break,
            }
        }
        for lost in lost.chunks(THREADS) {
            let effects = WriteEffects { last_write: AFTER_ALL_WRITES, ..WriteEffects::default() };
            let touches: Vec<Touch> = lost.iter().map(|thread| Touch::new(*thread, None, &effects)).collect();
            self.touch(tenant, &touches, &[]).await?;
        }
        Ok(())
    }
}

/// What the lists need to know about a thread: first as of the write before its last one, then as of its last one, so that it moves to the
/// end of the list of recent threads.
fn listing(thread: ThreadId, view: &View, is_last: bool) -> Touch {
    let mut row = view.row.clone();
    row.writes -= u64::from(!is_last && row.writes > 0);
    Touch::new(thread, Some(&row), &WriteEffects { has_unindexed: true, ..WriteEffects::default() })
}

/// Returns the part of a key in braces.
fn tag_of(key: &str) -> Option<&str> {
    let (_, rest) = key.split_once('{')?;
    rest.rsplit_once('}').map(|(tag, _)| tag)
}
