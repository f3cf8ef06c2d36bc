use serde::Serialize;
use threadkeep_core::{Dump, Finding, Severity, Snapshot, TenantId, ThreadId};

use super::MAX_LISTED;

/// Damaged or lost data in the source. Damaged data that can be read is copied unchanged, with its original checksums.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// The number of damaged items.
    pub count: u64,
    /// The first 1,000 damaged items, without content of messages or records.
    #[serde(rename = "told")]
    pub listed: Vec<DamagedItem>,
}

/// A damaged item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedItem {
    /// The tenant, if it is known.
    pub tenant: Option<TenantId>,
    /// The thread, if the item is in one.
    pub thread: Option<ThreadId>,
    /// A description of the damage.
    pub detail: String,
}

impl Damage {
    /// Whether nothing is damaged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn add(&mut self, tenant: Option<&TenantId>, thread: Option<ThreadId>, detail: String) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(DamagedItem { tenant: tenant.cloned(), thread, detail });
        }
    }

    pub(super) fn add_chunk(&mut self, tenant: &TenantId, thread: ThreadId, chunk: &Dump) {
        for detail in chunk.damage() {
            self.add(Some(tenant), Some(thread), detail);
        }
    }

    /// Adds the items that the snapshot could not list.
    pub(super) fn add_unreadable(&mut self, snapshot: &dyn Snapshot) {
        for Finding { severity, thread, detail } in snapshot.unreadable() {
            if severity == Severity::Damage {
                self.add(None, thread, detail);
            }
        }
    }
}

impl std::fmt::Display for DamagedItem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("damage")?;
        if let Some(tenant) = &self.tenant {
            write!(f, " in tenant {tenant}")?;
        }
        if let Some(thread) = &self.thread {
            write!(f, " in thread {thread}")?;
        }
        write!(f, ": {}", self.detail)
    }
}
