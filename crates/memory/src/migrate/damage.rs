use serde::Serialize;
use threadkeep_core::{Dump, Finding, Severity, Snapshot, TenantId, ThreadId};

use super::TOLD;

/// What of the source is damaged or lost. What can be read moves as it is, and with the checksums that it was written with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// How much there is.
    pub count: u64,
    /// The first 1,000, without anybody's words.
    pub told: Vec<DamagedItem>,
}

/// Something that is damaged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedItem {
    /// In which tenant, where that can be told.
    pub tenant: Option<TenantId>,
    /// In which thread, where it is in one.
    pub thread: Option<ThreadId>,
    /// What is wrong.
    pub detail: String,
}

impl Damage {
    /// Whether everything could be read, and was what had been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn add(&mut self, tenant: Option<&TenantId>, thread: Option<ThreadId>, detail: String) {
        self.count += 1;
        if self.told.len() < TOLD {
            self.told.push(DamagedItem { tenant: tenant.cloned(), thread, detail });
        }
    }

    pub(super) fn add_chunk(&mut self, tenant: &TenantId, thread: ThreadId, chunk: &Dump) {
        for detail in chunk.damage() {
            self.add(Some(tenant), Some(thread), detail);
        }
    }

    /// Adds what the snapshot's lists left out.
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
