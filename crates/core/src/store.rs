use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Batch, ChangePage, ChangesWithMessages, CommitOutcome, DerivedWrite, Kind, Maintenance, Map, Message, MessagePage,
    MessageQuery, MessageRef, MetadataFilter, Namespace, Owner, Portable, Positions, Record, RecordOwner, RecordQuery,
    RecordWrite, Result, Scope, SearchIndex, StoreError, TaggedNumber, Thread, ThreadId, ThreadKey, ThreadRead,
    ThreadView, Timestamp, UserCursor, WakeUps, WriteOutcome, limits,
};

/// A store of conversations: the contract of every backend.
///
/// For all methods:
/// - The scope is checked first ([`Scope::access`]). An object that the scope cannot access is treated exactly like one that does not
///   exist: the result is `NotFound`, `None` or an empty list.
/// - `now` is the time of the caller's clock. An object that expires at or before `now` does not exist, whether a sweep has removed it
///   or not.
/// - Only [`Store::commit`] changes a thread; `open_thread` and `delete_thread` create and delete it.
/// - When a write returns `Ok`, it is as durable as the backend is configured to make it.
/// - If the future of a write is dropped, the write is applied either completely or not at all.
/// - Stored data that cannot be decoded is `Corrupt`, never replaced by a default. The limits are those of [`limits`] in every
///   backend. A `limit` of 0 is `Invalid`, a `limit` over [`limits::PAGE`] is `LimitExceeded`.
#[async_trait]
pub trait Store: Portable + std::fmt::Debug {
    /// Changes one thread, all or nothing.
    ///
    /// Performs these checks in this order, and writes nothing unless all of them pass ([`crate::decide`] implements them):
    /// 1. [`Batch::encode`]: limits, NUL, duplicates.
    /// 2. The thread exists in this scope (`NotFound`), and the scope may make these changes (`Denied`).
    /// 3. If there is an idempotency record for `batch.key` with the same fingerprint, the original outcome is returned with `replayed`
    ///    set; with another fingerprint, the result is `Conflict::IdempotencyKey`.
    /// 4. `expected`, then `require` (`Conflict`).
    /// 5. Ids and external ids of `append` are new in the thread; ids of tombstones are not (`Conflict`).
    /// 6. The messages of `replace` and `erase` exist (`NotFound`).
    /// 7. `trim_below` is not beyond the end (`Invalid`).
    /// 8. Neither `seq` nor `change` exceeds [`limits::LAST_POSITION`] (`LimitExceeded`).
    ///
    /// Changes and versions that are required with a tag match only those from the same commit ([`TaggedNumber::may_be_same`]),
    /// because a failover can assign the same number to two commits.
    ///
    /// The commit then appends the messages at the positions `seq + 1 …`, increases `change` by one and gives it the tag of the key,
    /// writes the idempotency record (key, fingerprint, change, first_seq, count) and the entry of the change log, and sends wake-ups.
    /// Written records get the new `change` as their version, with its tag. `trim_below` at or below `first_seq` has no effect. The
    /// preconditions of an empty batch are checked, but the commit writes nothing, produces no event and returns the current positions.
    ///
    /// Concurrent commits on one thread are serialised. After `Unavailable { maybe_applied: true }` the outcome is unknown: retry with
    /// the same key. A retry after the thread was deleted or expired, even by this commit, is `NotFound`, because the idempotency
    /// record was deleted with the thread.
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome>;

    /// Finds the thread that `open` identifies, or creates it. Of concurrent calls, one creates the thread and all return it.
    ///
    /// If a key is given, the thread with this key is returned, whatever its id; otherwise the thread with the id. A new thread starts
    /// at change 0. The result is `NotFound` if the scope cannot access the thread with the id, or if that thread was deleted within
    /// [`crate::IDEMPOTENCY_WINDOW_MS`]. It is `Conflict::Thread` if a key is given and the thread with the id has another key or none.
    /// An expired thread is deleted completely and replaced. A new thread may already be expired at `now`. Opening an existing thread
    /// does not change it.
    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome>;

    /// Reads a thread by id or key, with the messages and records that `read` requests: all as of one instant, and in one round trip
    /// if the store is remote. `None` if the thread does not exist in this scope.
    ///
    /// The page is the same as from [`Store::list_messages`], and the lists are the same as from [`Store::list_records`]. Data that
    /// cannot be decoded makes the whole call fail, except messages if the query uses [`crate::OnCorrupt::Report`].
    async fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>>;

    /// Lists threads in pages.
    ///
    /// The order by creation is stable: threads opened during paging are at the end. In the order by recency (newest change first), a
    /// thread that changes during paging may be listed twice or not at all. An `after` that is not the `next` of a page is `Invalid`.
    /// A filter on metadata is part of the lookup: a page contains `limit` threads that pass, if there are as many.
    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage>;

    /// Lists the threads that changed or were deleted after a cursor, each once, in the order of their last change.
    ///
    /// Only threads to which the scope has full access are listed: a user's own threads, or all threads of a tenant. Opening and
    /// restoring count as changes; expired threads are omitted. Cursors are opaque, and valid in every scope of the store. Without a
    /// cursor, the result is an empty list with the current cursor. If the cursor belongs to a discarded history (after a restore), or
    /// is older than the retained deletions, `reset` is set.
    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads>;

    /// Deletes a thread with its messages and records.
    ///
    /// Later commits are `NotFound`, and the id cannot be opened for [`crate::IDEMPOTENCY_WINDOW_MS`]. After the next sweep, no byte of
    /// the thread remains in the files. An unknown or deleted thread is `NotFound`.
    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()>;

    /// Reads a page of a thread's messages in ascending order, with the positions of the thread as of the same instant.
    ///
    /// The cost does not depend on the length of the thread, with two exceptions: bounds by time and filters by role also read the
    /// messages that they exclude, and the order by time reads the whole thread. A page ends early, with `more` set, when it contains
    /// [`limits::PAGE_BYTES`].
    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage>;

    /// Reads the messages that `messages` identify, each once, in ascending order of position. Missing messages are omitted. There may be
    /// at most [`limits::PAGE`] references.
    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        messages: &[MessageRef],
        now: Timestamp,
    ) -> Result<Vec<Message>>;

    /// Reads at most `limit` changes of a thread after the change `after`, oldest first.
    ///
    /// Changes are retained for at least [`crate::IDEMPOTENCY_WINDOW_MS`]. The result is [`ChangePage::Reset`] if `after` is before the
    /// retained changes or beyond the current change, or if its tag differs from that of the stored change or cannot be compared with it
    /// ([`Positions::can_continue_from`]).
    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage>;

    /// Reads a thread's changes like [`Store::list_changes`], with the messages that they appended, for subscribers. If the store is
    /// remote, this takes one round trip.
    ///
    /// Messages have their current content, and there are at most as many as in one page. If changes append many messages, fewer changes
    /// than `limit` may be returned, but at least one if there are any.
    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: TaggedNumber,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages>;

    /// Finds a record of a thread, a user or the tenant; `None` if it does not exist or the scope cannot access its owner.
    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>>;

    /// Lists records by namespace and key, in byte order. Returns none for an owner that the scope cannot access.
    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>>;

    /// Writes or deletes one record of a user or of the tenant, if it has the expected version.
    ///
    /// Versions increase with each write and are never reused for a name, not even after a deletion. `Conflict::Record` contains the
    /// actual version. A user may write the user's own records; records of other users are `NotFound`, records of the tenant `Denied`.
    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome>;

    /// Writes one derived record of a thread, if the thread is at the change that the record was derived from and the record has the
    /// expected version.
    ///
    /// Performs these checks in this order, and writes nothing unless all of them pass: [`DerivedWrite::check`]; the thread exists in
    /// this scope (`NotFound`) with full access (`Denied`); its `change` is `at_change` (`Conflict::Change`); the record has the expected
    /// version (`Conflict::Record`). The new version is [`DerivedWrite::version`].
    ///
    /// This is not a commit: `change`, `updated_at`, the change log and idempotency records do not change, and no wake-up is sent. The
    /// stamp ([`Store::stamp`]) changes, because reads return other data. Commits can require, write and delete the record like any other
    /// record of the thread. This is how a commit that removes messages also removes their text from the record; it requires the
    /// version of the record that it read. A store may acknowledge the write before it is synced to disk: after a power failure the
    /// record is computed again.
    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome>;

    /// Subscribes to hints that something changed, starting now. Hints may be lost or duplicated.
    async fn wake_ups(&self) -> Result<WakeUps>;

    /// Returns the stamp: a number that changes with every write, including writes by other processes. While the stamp is the same, all
    /// reads return the same results, except for data that expires. `None` if computing a stamp would cost about as much as a read.
    ///
    /// Stamps of different handles of a store cannot be compared.
    fn stamp(&self) -> Option<u64>;

    /// Like [`Store::stamp`], but only for the records of users and tenants: other writes may leave this stamp unchanged.
    fn records_stamp(&self) -> Option<u64>;
}

/// Convenience methods for every store.
#[async_trait]
pub trait StoreExt: Store {
    /// Finds a thread by id or key.
    async fn find_thread(&self, scope: &Scope, thread: &ThreadRef, now: Timestamp) -> Result<Option<Thread>> {
        let view = self.read_thread(scope, thread, &ThreadRead::default(), now).await?;
        Ok(view.map(|view| view.thread))
    }

    /// Gets a thread by id. An unknown thread is `NotFound`.
    async fn get_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<Thread> {
        let found = self.find_thread(scope, &ThreadRef::Id(thread), now).await?;
        found.ok_or(StoreError::NotFound(Kind::Thread))
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// The ports of one backend.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Administration of the same data.
    pub maintenance: Arc<dyn Maintenance>,
    /// The search index of the same data.
    pub search: Arc<dyn SearchIndex>,
}

/// A thread to find or create ([`Store::open_thread`]).
#[derive(Clone, Debug, PartialEq)]
pub struct OpenThread {
    /// The id of a new thread.
    pub id: ThreadId,
    /// The owner of a new thread. The key is looked up among the threads of this owner.
    pub owner: Owner,
    /// The key of the thread.
    pub key: Option<ThreadKey>,
    /// The title of a new thread.
    pub title: Option<String>,
    /// The metadata of a new thread.
    pub metadata: Map,
    /// The state of a new thread.
    pub state: Map,
    /// The `created_at` of a new thread, for imports; `None` for `now`. It does not affect the order of lists.
    pub created_at: Option<Timestamp>,
    /// When a new thread expires.
    pub expires_at: Option<Timestamp>,
}

impl OpenThread {
    /// Creates a request to open a thread by id. A new thread belongs to the default owner of the scope.
    #[must_use]
    pub fn new(scope: &Scope, id: ThreadId) -> Self {
        Self {
            id,
            owner: scope.default_owner(),
            key: None,
            title: None,
            metadata: Map::new(),
            state: Map::new(),
            created_at: None,
            expires_at: None,
        }
    }

    /// Adds a key.
    #[must_use]
    pub fn with_key(self, key: ThreadKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Checks the values against the limits that all stores share.
    ///
    /// # Errors
    /// `Invalid` if text contains NUL characters, `LimitExceeded` if a value is too large.
    pub fn check(&self) -> Result<()> {
        if let Some(title) = &self.title {
            limits::check_title(title)?;
        }
        limits::check_map("thread metadata", &self.metadata)?;
        limits::check_map("thread state", &self.state)
    }
}

/// The result of opening a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenOutcome {
    /// The thread.
    pub thread: Thread,
    /// Whether this call created it.
    pub created: bool,
}

/// Identifies a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadRef {
    /// By id.
    Id(ThreadId),
    /// By its key, among the threads of an owner.
    Key(Owner, ThreadKey),
}

/// A query for threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadQuery {
    /// The order.
    pub order: ThreadOrder,
    /// Only threads of this owner. `None` for all threads to which the scope has full access: a user's own threads, or all threads of
    /// a tenant.
    pub owner: Option<Owner>,
    /// The `next` of the previous page.
    pub after: Option<String>,
    /// Only threads whose metadata passes. `after` must come from a query with the same filter.
    pub metadata: MetadataFilter,
    /// The maximum number of threads (1 to [`limits::PAGE`]).
    pub limit: usize,
}

impl ThreadQuery {
    /// Creates a query for the first page in an order.
    #[must_use]
    pub fn new(order: ThreadOrder, limit: usize) -> Self {
        Self { order, owner: None, after: None, metadata: MetadataFilter::default(), limit }
    }
}

/// The order of a list of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadOrder {
    /// The order in which this store created the threads. It never changes.
    Created,
    /// The most recently changed first.
    Recent,
}

/// A page of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<Thread>,
    /// The `after` of the next page; `None` in the last page.
    pub next: Option<String>,
}

/// The threads that changed after a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedThreads {
    /// The threads, each once, in the order of their last changes.
    pub threads: Vec<ChangedThread>,
    /// The cursor for the next call.
    pub cursor: UserCursor,
    /// Whether more changed threads follow.
    pub more: bool,
    /// Whether the cursor belongs to a discarded history: read everything again, then continue from the new cursor.
    pub reset: bool,
}

/// A thread that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedThread {
    /// Its id.
    pub id: ThreadId,
    /// Its owner.
    pub owner: Owner,
    /// Its current positions; `None` if it was deleted.
    pub positions: Option<Positions>,
}

impl ThreadQuery {
    /// Checks the limit and the filter.
    ///
    /// # Errors
    /// `Invalid` for 0, `LimitExceeded` for more than [`limits::PAGE`]; the same as for [`MetadataFilter::check`].
    pub fn check(&self) -> Result<()> {
        self.metadata.check()?;
        limits::check_page(self.limit)
    }
}

impl RecordQuery {
    /// Checks the limit.
    ///
    /// # Errors
    /// `Invalid` for 0, `LimitExceeded` for more than [`limits::PAGE`].
    pub fn check(&self) -> Result<()> {
        limits::check_page(self.limit)
    }
}
