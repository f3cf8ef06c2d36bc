//! Recording erasures in a log outside the store, and applying them again to a store that was restored from an older backup.
//!
//! [`ErasureLog`] is the port that a log implements. [`Memory::with_erasure_log`] wraps the store in one that writes to the log.
//! [`ErasureEntries`] is the port for reading, against which [`Memory::apply_erasures`] checks all data in a store. The log
//! records only what callers erase: users, threads, messages, records. It does not record trimming and expiry.

mod apply;
mod recording;
mod walk;

use std::fmt::Debug;

use async_trait::async_trait;
use threadkeep_core::{
    MessageId, Namespace, RecordOwner, Result as StoreResult, TenantId, ThreadId, Timestamp, UserId,
};

pub use apply::AppliedErasures;
pub(crate) use recording::RecordingStore;

/// An entry of the log: something that is about to be erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// The tenant to which the item belongs.
    pub tenant: TenantId,
    /// The erased item.
    pub item: ErasedItem,
}

/// An erased item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasedItem {
    /// All data of a user. The user's threads and records at that time also have separate entries.
    User {
        /// The user.
        user: UserId,
        /// Whether the user's messages in shared threads were also erased.
        shared_messages: bool,
        /// The highest version among the user's records at that time; 0 if there were none.
        record_version: u64,
    },
    /// A thread with its messages and records.
    Thread(ThreadId),
    /// A message.
    Message {
        /// The thread of the message.
        thread: ThreadId,
        /// The message.
        message: MessageId,
        /// The change number of the commit that erased the message.
        change: u64,
    },
    /// A record of a user or tenant, or a record of a thread in an `app/` namespace.
    Record {
        /// The owner of the record.
        owner: RecordOwner,
        /// The namespace of the record.
        namespace: Namespace,
        /// The key of the record.
        key: String,
        /// The highest version that the erasure covers.
        version: u64,
    },
}

/// Identifies the entries that one call wrote to a log, so that they can be withdrawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureReceipt(pub String);

/// A log of erasures outside the store, so that restoring an older backup does not bring erased data back.
///
/// An entry is written before the erasure is carried out, so a crash between the two does not lose the entry.
#[async_trait]
pub trait ErasureLog: Debug + Send + Sync {
    /// Writes entries durably. They apply to data written at or before `at`.
    ///
    /// # Errors
    /// `Unavailable` if the entries could not be written. The erasure is then not carried out.
    async fn record(&self, erasures: Vec<Erasure>, at: Timestamp) -> StoreResult<ErasureReceipt>;

    /// Marks entries as void, because the store rejected the erasure.
    ///
    /// # Errors
    /// `Unavailable` if the log could not be written. The entries then remain valid although nothing was erased.
    async fn withdraw(&self, receipt: ErasureReceipt) -> StoreResult<()>;
}

/// The newest data to which an entry applies. Newer data was written after the erasure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasureBound {
    /// The time of the erasure.
    pub at: Timestamp,
    /// For a message, the change number of the commit that erased it; for records, their highest version; otherwise 0.
    pub up_to: u64,
}

/// The entry of an erased user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasedUser {
    /// The newest data to which the entry applies. Its `up_to` is the highest version of the user's records.
    pub bound: ErasureBound,
    /// When the user's messages in shared threads were last erased; `None` if they never were.
    pub shared_messages_at: Option<Timestamp>,
}

/// The entries of an erasure log, looked up by item. If an item has several entries, the latest bound applies.
pub trait ErasureEntries: Send + Sync {
    /// Called for every thread in the store before any other method, so that an implementation knows which threads the store
    /// contains.
    fn note_thread(&mut self, tenant: &TenantId, thread: ThreadId);
    /// The entry of a user, if the user was erased.
    fn user(&self, tenant: &TenantId, user: &UserId) -> Option<ErasedUser>;
    /// The bound of a thread, if it was erased.
    fn thread(&self, tenant: &TenantId, thread: ThreadId) -> Option<ErasureBound>;
    /// Whether messages or records of a thread were erased.
    fn has_entries_in_thread(&self, tenant: &TenantId, thread: ThreadId) -> bool;
    /// The bound of a message, if it was erased.
    fn message(&self, tenant: &TenantId, thread: ThreadId, message: MessageId) -> Option<ErasureBound>;
    /// The bound of a record, if it was erased.
    fn record(&self, tenant: &TenantId, owner: &RecordOwner, namespace: &Namespace, key: &str) -> Option<ErasureBound>;
    /// Whether any user's messages in shared threads were erased.
    fn has_erased_shared_messages(&self) -> bool;
    /// The highest version of any erased record.
    fn highest_version(&self) -> u64;
}
