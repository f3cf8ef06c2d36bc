//! Migrating all data from one store into another, and verifying the result.
//!
//! This uses only the ports, so data can be migrated between any two stores. A thread is copied verbatim: positions, tombstones,
//! revisions, change log, idempotency records, key, and all records, including internal ones. Records of users and tenants keep
//! their versions. Data that belongs to the store itself is not copied: cursors across many threads (a subscriber with such a
//! cursor receives `reset`), deleted ids, and the record of the last sweep. Expired data is not copied either.
//!
//! [`Migration::begin`] takes a snapshot of the source, which all other methods read. [`Migration::survey`] compares source and
//! target before anything is written. [`Migration::copy`] skips data that exists in the target. After an interruption, run the
//! migration again; data that has changed in the source since is then reported as a conflict. [`Migration::verify`] reads and
//! compares all data in source and target.

mod backup;
mod copy;
mod damage;
mod digest;
mod survey;
mod verify;
pub(crate) mod walk;

use std::sync::Arc;

use serde::Serialize;
use threadkeep_core::{Backend, Namespace, RecordOwner, Result, Runtime, Snapshot, TenantId, ThreadId, Timestamp};

use crate::Platform;
use crate::retry::retry;

pub use backup::{BackupLines, BackupReader, BackupSummary};
pub use copy::CopySummary;
pub use damage::{Damage, DamagedItem};
pub use survey::Survey;
pub use verify::{Totals, Verification};

/// Maximum number of differences and damaged items that are listed. Any others are only counted.
const MAX_LISTED: usize = 1_000;

/// A migration of a snapshot of one store into another. Others may write to the source meanwhile, but their writes are not
/// migrated. No one should write to the target, because changes to copied data are reported as differences.
#[derive(Clone, Debug)]
pub struct Migration {
    source: Arc<dyn Snapshot>,
    to: Backend,
    /// The time of the snapshot. Data that has expired at this time is not migrated.
    now: Timestamp,
    platform: Platform,
}

/// The amount of data that a step has processed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Number of threads.
    pub threads: u64,
    /// Number of messages in these threads.
    pub messages: u64,
    /// Number of records of users and tenants.
    #[serde(rename = "documents")]
    pub records: u64,
}

/// An item that differs between source and target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The tenant to which the item belongs.
    pub tenant: TenantId,
    /// The item.
    #[serde(rename = "of")]
    pub item: Item,
    /// A description of the difference, without content of messages or records.
    pub detail: String,
}

/// A unit of migration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A thread with its messages and records.
    Thread(ThreadId),
    /// A record of a user or of the tenant.
    #[serde(rename = "document")]
    Record {
        /// The owner.
        owner: RecordOwner,
        /// The namespace.
        namespace: Namespace,
        /// The key.
        key: String,
    },
}

/// The number of differences, and a list of the first ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// The number of differences.
    pub count: u64,
    /// The first 1,000 differences.
    #[serde(rename = "told")]
    pub listed: Vec<Difference>,
}

impl Migration {
    /// Takes a snapshot of the source `from`, for a migration into `to`. The migration reads the source's data as of the current
    /// time of the platform's clock.
    ///
    /// # Errors
    /// Errors from the source.
    pub async fn begin(from: &Backend, to: Backend, platform: &Platform) -> Result<Self> {
        let now = platform.clock.now();
        let source = retry(&*platform.runtime, || from.maintenance.snapshot(now)).await?;
        Ok(Self { source: Arc::from(source), to, now, platform: platform.clone() })
    }

    fn runtime(&self) -> &dyn Runtime {
        &*self.platform.runtime
    }
}

impl Differences {
    /// Whether there are no differences.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, tenant: &TenantId, item: Item, detail: impl Into<String>) {
        self.count += 1;
        if self.listed.len() < MAX_LISTED {
            self.listed.push(Difference { tenant: tenant.clone(), item, detail: detail.into() });
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tenant, item, detail } = self;
        match item {
            Item::Thread(thread) => write!(f, "tenant {tenant}, thread {thread}: {detail}"),
            Item::Record { owner: RecordOwner::User(user), namespace, key } => {
                write!(f, "tenant {tenant}, record {namespace}/{key} of {user}: {detail}")
            }
            Item::Record { namespace, key, .. } => {
                write!(f, "tenant {tenant}, record {namespace}/{key}: {detail}")
            }
        }
    }
}
