//! Recording erasures in a log outside the store, and applying them again to a store that was restored from an older backup.
//!
//! [`ErasureLog`] is the port that a log implements; [`Memory::with_erasure_log`] wraps the store in one that writes to it.
//! [`KnownErasures`] is the reading side, which [`Memory::apply_erasures`] queries for all data of a store. Only what a caller
//! erases is recorded: users, threads, messages, records. What a retention trims and what expires is not.

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
    /// The tenant of the item.
    pub tenant: TenantId,
    /// The erased item.
    pub item: ErasedItem,
}

/// An erased item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasedItem {
    /// All data of a user. The user's threads and records of that time have separate entries as well.
    User {
        /// The user.
        user: UserId,
        /// Whether the user's messages in shared threads were erased too.
        shared_messages: bool,
        /// The highest version among the user's records at that time; 0 without records.
        record_version: u64,
    },
    /// A thread with its messages and records.
    Thread(ThreadId),
    /// A message.
    Message {
        /// Its thread.
        thread: ThreadId,
        /// The message.
        message: MessageId,
        /// The thread's change that erased it.
        change: u64,
    },
    /// A record of an application, or another record of a user or tenant.
    Record {
        /// Its owner.
        owner: RecordOwner,
        /// Its namespace.
        namespace: Namespace,
        /// Its key.
        key: String,
        /// The highest version that it had.
        version: u64,
    },
}

/// Identifies entries of a log, to withdraw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureReceipt(pub String);

/// A log of erasures outside the store, so that restoring an older backup does not bring erased data back.
///
/// An entry is written before its erasure, so a crash between the two cannot lose it.
#[async_trait]
pub trait ErasureLog: Debug + Send + Sync {
    /// Writes entries durably. They apply to data from `at` and before.
    ///
    /// # Errors
    /// `Unavailable`: the erasure is then not carried out.
    async fn record(&self, erasures: Vec<Erasure>, at: Timestamp) -> StoreResult<ErasureReceipt>;

    /// Marks entries as void, because the store rejected the erasure.
    ///
    /// # Errors
    /// `Unavailable`: the entries then remain valid although nothing was erased.
    async fn withdraw(&self, receipt: ErasureReceipt) -> StoreResult<()>;
}

/// The data that an entry applies to: only what is not newer than this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasureBound {
    /// The time of the erasure.
    pub at: Timestamp,
    /// For a message, the thread's change that erased it; for records, their highest version; otherwise 0.
    pub number: u64,
}

/// The entry of an erased user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasedUser {
    /// The data that it applies to; the number is the highest version of the user's records.
    pub bound: ErasureBound,
    /// When the user's messages in shared threads were last erased.
    pub shared_messages_at: Option<Timestamp>,
}

/// The entries of an erasure log, found by item. If an item has several entries, the latest bounds apply.
pub trait KnownErasures: Send + Sync {
    /// Called for every thread in the store before any other method, so that an implementation can load entries for them.
    fn note_thread(&mut self, tenant: &TenantId, thread: ThreadId);
    /// The entry of a user, if the user was erased.
    fn user(&self, tenant: &TenantId, user: &UserId) -> Option<ErasedUser>;
    /// The bound of a thread, if it was erased.
    fn thread(&self, tenant: &TenantId, thread: ThreadId) -> Option<ErasureBound>;
    /// Whether messages or records of a thread were erased.
    fn is_in_thread(&self, tenant: &TenantId, thread: ThreadId) -> bool;
    /// The bound of a message, if it was erased.
    fn message(&self, tenant: &TenantId, thread: ThreadId, message: MessageId) -> Option<ErasureBound>;
    /// The bound of a record, if it was erased.
    fn record(&self, tenant: &TenantId, owner: &RecordOwner, namespace: &Namespace, key: &str) -> Option<ErasureBound>;
    /// Whether any user's messages in shared threads were erased.
    fn has_shared_messages(&self) -> bool;
    /// The highest version of any erased record.
    fn highest_version(&self) -> u64;
}
