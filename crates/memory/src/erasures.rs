//! What was erased, told to a log outside the store, and applied again to a store that was made from an older backup.
//!
//! [`ErasureLog`] is the port that a log implements; [`Memory::with_erasure_log`] puts a store over the store that tells it.
//! [`KnownErasures`] is the reading side, which [`Memory::apply_erasures`] asks about everything that a store holds. Only what
//! somebody erased is recorded: users, threads, messages, records. What a retention trims or what expires is not.

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

/// Something that was erased, or is about to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    /// In which tenant.
    pub tenant: TenantId,
    /// What.
    pub item: ErasedItem,
}

/// What was erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErasedItem {
    /// Everything of a user. Threads and records that were there then have entries of their own as well.
    User {
        /// Who.
        user: UserId,
        /// Whether the user's messages in shared threads were erased too.
        shared_messages: bool,
        /// The highest version among the user's records then; 0 without any.
        record_version: u64,
    },
    /// A thread with all that belongs to it.
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
        /// Whose.
        owner: RecordOwner,
        /// Of which family.
        namespace: Namespace,
        /// Its name in the family.
        key: String,
        /// The highest version that it had.
        version: u64,
    },
}

/// Names entries of a log, to withdraw them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErasureReceipt(pub String);

/// Keeps a record of erasures outside the store, so that restoring an older backup does not bring back what was erased.
///
/// An entry is written before its erasure, so a crash between the two cannot lose it.
#[async_trait]
pub trait ErasureLog: Debug + Send + Sync {
    /// Writes entries that are on the disk when it returns. `at` is the instant up to which they hold.
    ///
    /// # Errors
    /// `Unavailable`: the erasure is then not carried out.
    async fn record(&self, erasures: Vec<Erasure>, at: Timestamp) -> StoreResult<ErasureReceipt>;

    /// Marks entries as void, because the store refused the erasure.
    ///
    /// # Errors
    /// `Unavailable`: the entries then stand although nothing was erased.
    async fn withdraw(&self, receipt: ErasureReceipt) -> StoreResult<()>;
}

/// Up to where an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasureBound {
    /// The instant of the erasure.
    pub at: Timestamp,
    /// Of a message the thread's change that erased it, of records their highest version; 0 otherwise.
    pub number: u64,
}

/// An erased user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErasedUser {
    /// Up to where; the number is that of records.
    pub bound: ErasureBound,
    /// Up to when the user's messages in shared threads were erased.
    pub shared_messages_at: Option<Timestamp>,
}

/// What a log of erasures knows, asked by name. Where a name has several entries the latest bounds count.
pub trait KnownErasures: Send + Sync {
    /// Hears of every thread in the store before anything else is asked.
    fn note_thread(&mut self, tenant: &TenantId, thread: ThreadId);
    /// Whether a user was erased.
    fn user(&self, tenant: &TenantId, user: &UserId) -> Option<ErasedUser>;
    /// Whether a thread was erased.
    fn thread(&self, tenant: &TenantId, thread: ThreadId) -> Option<ErasureBound>;
    /// Whether messages or records of a thread were erased.
    fn is_in_thread(&self, tenant: &TenantId, thread: ThreadId) -> bool;
    /// Whether a message was erased.
    fn message(&self, tenant: &TenantId, thread: ThreadId, message: MessageId) -> Option<ErasureBound>;
    /// Whether a record was erased.
    fn record(&self, tenant: &TenantId, owner: &RecordOwner, namespace: &Namespace, key: &str) -> Option<ErasureBound>;
    /// Whether messages of erased users in shared threads were erased, of anybody.
    fn has_shared_messages(&self) -> bool;
    /// The highest version of any erased record.
    fn highest_version(&self) -> u64;
}
