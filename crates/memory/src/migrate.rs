//! Moving everything from one store into another, and making sure that it arrived.
//!
//! It stands on the ports alone, so any two stores move into each other. A thread moves verbatim: positions, tombstones,
//! revisions, change log, idempotency records, records (Threadkeep's own included), key. Records of users and tenants
//! move with their versions. What does not move is what belongs to a store itself: cursors over many threads (they answer
//! `reset`), the memory of deleted ids, whose turn it is to sweep. What has expired is left behind.
//!
//! [`Migration::begin`] takes a snapshot of the source, and everything that follows reads that. [`Migration::survey`] looks
//! before anything is written, [`Migration::copy`] skips what is there already (so a migration that was cut is simply made
//! again; what changed in the source between the two is then in the way), [`Migration::verify`] reads both sides whole.

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

pub use backup::{BackupSummary, BackupLines, BackupReader};
pub use copy::CopySummary;
pub use damage::{Damage, DamagedItem};
pub use survey::Survey;
pub use verify::{Totals, Verification};

/// Differences that are told one by one; more are only counted.
const TOLD: usize = 1_000;

/// Everything of one store on its way into another, as it was when the migration was begun: others may write to the source
/// meanwhile, and what they write does not move. Nobody should write to the target: what changes there after it was copied
/// is found to differ.
#[derive(Clone, Debug)]
pub struct Migration {
    source: Arc<dyn Snapshot>,
    to: Backend,
    /// What has expired by then does not move.
    now: Timestamp,
    platform: Platform,
}

/// How far a step has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Threads that are done.
    pub threads: u64,
    /// Messages that they hold.
    pub messages: u64,
    /// Records of users and tenants that are done.
    #[serde(rename = "documents")]
    pub records: u64,
}

/// Something that is not the same on both sides.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// In which tenant.
    pub tenant: TenantId,
    /// What.
    pub of: Item,
    /// How, without anybody's words.
    pub detail: String,
}

/// What moves as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// A thread with all that belongs to it.
    Thread(ThreadId),
    /// A record of a user or of the tenant.
    #[serde(rename = "document")]
    Record {
        /// Whose.
        owner: RecordOwner,
        /// Of which family.
        namespace: Namespace,
        /// Its name in the family.
        key: String,
    },
}

/// Differences, the first of them told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Differences {
    /// How many there are.
    pub count: u64,
    /// The first 1,000.
    pub told: Vec<Difference>,
}

impl Migration {
    /// Takes a snapshot of what `from` holds now, by the clock of `platform`, to move it into `to`. All that the migration reads of the
    /// source is as of that instant, comparing included.
    ///
    /// # Errors
    /// Those of the source.
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
    /// Whether both sides are the same.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn add(&mut self, tenant: &TenantId, of: Item, detail: impl Into<String>) {
        self.count += 1;
        if self.told.len() < TOLD {
            self.told.push(Difference { tenant: tenant.clone(), of, detail: detail.into() });
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tenant, of, detail } = self;
        match of {
            Item::Thread(thread) => write!(f, "tenant {tenant}, thread {thread}: {detail}"),
            Item::Record { owner: RecordOwner::User(user), namespace, key } => {
                write!(f, "tenant {tenant}, document {namespace}/{key} of {user}: {detail}")
            }
            Item::Record { namespace, key, .. } => {
                write!(f, "tenant {tenant}, document {namespace}/{key}: {detail}")
            }
        }
    }
}
