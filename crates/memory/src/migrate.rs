//! Moving everything from one store into another, and making sure that it arrived.
//!
//! It stands on the ports alone, so any two stores move into each other. A thread moves verbatim: positions, tombstones,
//! revisions, change log, idempotency records, documents (Threadkeep's own included), key. Documents of users and tenants
//! move with their versions. What does not move is what belongs to a store itself: cursors over many threads (they answer
//! `reset`), the memory of deleted ids, whose turn it is to sweep. What has expired is left behind.
//!
//! [`Migration::survey`] looks before anything is written, [`Migration::copy`] skips what is there already (so a migration
//! that was cut is simply made again), [`Migration::verify`] reads both sides whole.

mod backup;
mod copy;
mod digest;
mod survey;
mod verify;
pub(crate) mod walk;

use serde::Serialize;
use threadkeep_core::{Backend, DocumentOwner, Namespace, TenantId, ThreadId, Timestamp};

pub use backup::{BackupLines, BackupReader};
pub use copy::Copied;
pub use survey::Survey;
pub use verify::{Totals, Verification};

/// Differences that are told one by one; more are only counted.
const TOLD: usize = 1_000;

/// Everything of one store on its way into another. Nobody should write to the source meanwhile: what changes after it was
/// copied is found to differ.
#[derive(Clone, Debug)]
pub struct Migration {
    from: Backend,
    to: Backend,
    /// What has expired by then does not move.
    now: Timestamp,
}

/// How far a step has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// Threads that are done.
    pub threads: u64,
    /// Messages that they hold.
    pub messages: u64,
    /// Documents of users and tenants that are done.
    pub documents: u64,
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
    /// A document of a user or of the tenant.
    Document {
        /// Whose.
        owner: DocumentOwner,
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
    /// Prepares to move what `from` holds at the instant `now` into `to`.
    #[must_use]
    pub fn new(from: Backend, to: Backend, now: Timestamp) -> Self {
        Self { from, to, now }
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
            Item::Document { owner: DocumentOwner::User(user), namespace, key } => {
                write!(f, "tenant {tenant}, document {namespace}/{key} of {user}: {detail}")
            }
            Item::Document { namespace, key, .. } => {
                write!(f, "tenant {tenant}, document {namespace}/{key}: {detail}")
            }
        }
    }
}
