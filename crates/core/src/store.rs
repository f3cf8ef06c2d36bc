use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::{
    Batch, ChangePage, ChangesWithMessages, CommitOutcome, DerivedWrite, Kind, Maintenance, Map, Message, MessageName,
    MessagePage, MessageQuery, Namespace, Owner, Portable, Positions, Record, RecordOwner, RecordQuery, RecordWrite,
    Result, Scope, SearchIndex, StoreError, Tagged, Thread, ThreadId, ThreadKey, ThreadRead, ThreadView, Timestamp,
    UserCursor, WakeUps, WriteOutcome, limits,
};

/// Keeps conversations: the contract of every backend.
///
/// What holds for all methods:
/// - The scope decides first ([`Scope::access`]). What it does not reach answers exactly as what does not exist:
///   `NotFound`, `None` or an empty list.
/// - `now` is the caller's clock. What expires at or before `now` is as if it had never been, swept or not.
/// - A thread changes only by [`Store::commit`] (and begins and ends by `open_thread` and `delete_thread`).
/// - A call that returns `Ok` for a write has made it as durable as the backend is configured to be.
/// - Dropping the future of a write leaves it either done or not done, never half done.
/// - Stored bytes that do not decode are `Corrupt`, never a default. Limits are those of [`limits`], in every backend;
///   a `limit` of 0 is `Invalid`, over [`limits::PAGE`] `LimitExceeded`.
#[async_trait]
pub trait Store: Portable + std::fmt::Debug {
    /// Changes one thread, all or nothing.
    ///
    /// In this order, and nothing is written before all of it holds:
    /// 1. [`Batch::encode`] (limits, NUL); 2. the thread exists in this scope (`NotFound`) and may be changed so
    ///    (`Denied`); 3. the idempotency record of `batch.key`, looked up before any precondition: the same fingerprint
    ///    returns the original answer with `replayed` set, another one is `Conflict::IdempotencyKey`; 4. `expected`, then
    ///    `require`; 5. ids and external ids of `append` are new to the thread (tombstones count for ids); 6. messages
    ///    of `replace` and `erase` are there (`NotFound`); 7. `trim_below` does not go beyond the end (`Invalid`); 8. neither
    ///    `seq` nor `change` goes beyond [`limits::LAST_POSITION`] (`LimitExceeded`). [`crate::decide`] is this order in code.
    ///
    /// Positions and versions that are demanded with a tag are met only by those of the same commit ([`Tagged::is_same`]): a
    /// number that was given twice, before and after a failover, is not the same.
    ///
    /// Then appended messages get the positions `seq + 1 …` in order; `change` grows by one and gets the tag of the key; the record (key,
    /// fingerprint, change, first_seq, count) and the change log's entry are written; wake-ups follow. Records get the
    /// new `change` as their version, with its tag. `trim_below` at or under `first_seq` does nothing. An empty batch writes nothing
    /// and makes no event; its preconditions are held against the thread all the same, and it answers where that stands.
    ///
    /// Concurrent commits on one thread take effect one after the other. `Unavailable { maybe_applied: true }` says that
    /// the outcome is unknown: repeat with the same key. A repetition that comes when the thread is over (deleted, or
    /// expired, be it by this very commit) is `NotFound`: the record went with the thread.
    async fn commit(&self, scope: &Scope, thread: ThreadId, batch: Batch, now: Timestamp) -> Result<CommitOutcome>;

    /// Finds the thread that `open` names, or makes it; of many at once, one makes it and all get the same.
    ///
    /// With a key, the thread that claims it is the one, whatever the id. Without, the id is. A new thread starts at
    /// change 0. An id that the scope does not reach, or that was deleted within [`crate::IDEMPOTENCY_WINDOW_MS`], is
    /// `NotFound`; an id that belongs to a thread with another key, or without one where a key is given, is
    /// `Conflict::Thread`. An expired thread is replaced, with nothing of it left. A new thread that expires at or
    /// before `now` is made, and over at once. Opening what is there changes nothing.
    async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<Opened>;

    /// Reads a thread by its id or by its key, with what `read` asks for beside its row: all of it as of one instant, in one round
    /// trip where the store is far. `None` where the scope reaches no such thread.
    ///
    /// The page is as [`Store::list_messages`] gives it, and lists are as [`Store::list_records`] gives them. Anything that does
    /// not decode fails the whole call, but for messages that the query wants to be told of.
    async fn read_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>>;

    /// Lists threads in pages.
    ///
    /// By creation the order is stable (threads opened meanwhile come at the end); by recency (newest change first) a
    /// thread that changes while one pages may be seen twice or not at all. An `after` that no page gave is `Invalid`.
    async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage>;

    /// Lists the threads that changed or were deleted after a cursor, each once, in the order of their last change.
    ///
    /// They are those that the scope has in full: a user's own, a tenant's all. Being opened or restored counts as a
    /// change; an expired thread is left out. A cursor belongs to the store, not to a scope, and tells nothing by itself.
    /// Without a cursor: nothing, and the cursor of the present. A cursor from a lost past (restored data, or deletions
    /// no longer remembered) answers `reset`.
    async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads>;

    /// Deletes a thread with all that belongs to it.
    ///
    /// Commits that come later are `NotFound`, and the id cannot be opened within [`crate::IDEMPOTENCY_WINDOW_MS`].
    /// Its bytes are gone from the files after the next sweep at the latest. Unknown, or deleted before: `NotFound`.
    async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()>;

    /// Reads a page of a thread's messages, always in ascending order, with the thread's positions at that instant.
    ///
    /// The cost does not depend on the length of the thread, except that bounds by time and a filter by role read past
    /// what they leave out, and that the order by time reads the whole thread. A page ends early, with `more` set, once
    /// it holds [`limits::PAGE_BYTES`].
    async fn list_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        query: &MessageQuery,
        now: Timestamp,
    ) -> Result<MessagePage>;

    /// Reads messages by name, in ascending order of position, each once; what is not there is left out. At most
    /// [`limits::PAGE`] names.
    async fn find_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        names: &[MessageName],
        now: Timestamp,
    ) -> Result<Vec<Message>>;

    /// Reads a thread's changes after a position, oldest first, at most `limit`.
    ///
    /// Changes are kept for at least [`crate::IDEMPOTENCY_WINDOW_MS`]; a position before the kept ones, or beyond the
    /// thread's own, answers [`ChangePage::Reset`]. So does one whose tag is not that of the change which the store has at that
    /// number, or no longer has ([`Positions::can_continue_from`]).
    async fn list_changes(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangePage>;

    /// Reads a thread's changes after a position as [`Store::list_changes`] does, with the messages that they appended: what
    /// a subscriber waits for, in one round trip where the store is far.
    ///
    /// Messages are as they stand at that instant, as many as one page holds. Of changes that bring many messages there may be fewer than `limit`, but one at least where any follows.
    async fn list_changes_with_messages(
        &self,
        scope: &Scope,
        thread: ThreadId,
        after: Tagged,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangesWithMessages>;

    /// Finds a record of a thread, a user or the tenant.
    async fn find_record(
        &self,
        scope: &Scope,
        owner: &RecordOwner,
        namespace: &Namespace,
        key: &str,
        now: Timestamp,
    ) -> Result<Option<Record>>;

    /// Lists records by namespace and key, in byte order. Another scope's owner has none.
    async fn list_records(&self, scope: &Scope, query: &RecordQuery, now: Timestamp) -> Result<Vec<Record>>;

    /// Writes or deletes one record of a user or of the tenant, if it has the expected version.
    ///
    /// Versions grow with each write and never repeat for a name, deletions included. `Conflict::Record` carries the
    /// actual version. A user may write own records; another's are `NotFound`, the tenant's `Denied`.
    async fn write_record(&self, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome>;

    /// Writes one derived record of a thread, if the thread stands where the record was derived and the record has the
    /// version that the writer read.
    ///
    /// In this order, and nothing is written before all of it holds: [`DerivedWrite::check`]; the thread exists in this scope
    /// (`NotFound`) and may be changed other than by adding messages (`Denied`); its `change` is `at_change`
    /// (`Conflict::Change`); the version is the expected one (`Conflict::Record`). The new version is
    /// [`DerivedWrite::version`].
    ///
    /// It is no commit: `change`, `updated_at`, the change log and idempotency records stay, and nobody is woken. The stamp
    /// moves, as reads answer something else. Commits read, require, write and delete the record as any other of the thread:
    /// one that takes words away scrubs it, and requires the version that it looked at. As a power cut costs only that it is
    /// derived again, a store may acknowledge the write before it is on the disk.
    async fn write_derived(
        &self,
        scope: &Scope,
        thread: ThreadId,
        write: DerivedWrite,
        now: Timestamp,
    ) -> Result<WriteOutcome>;

    /// Listens for hints that something changed, from this moment on. They may be lost or doubled.
    async fn wake_ups(&self) -> Result<WakeUps>;

    /// A number that is another one after anything was written, by anybody: while it stays the same, every read answers
    /// as it did before, but for what expires. `None` where telling costs about as much as reading.
    ///
    /// It means nothing to another handle of the store.
    fn stamp(&self) -> Option<u64>;

    /// As [`Store::stamp`], of the records of users and tenants alone: it may stay the same over what else is written.
    fn records_stamp(&self) -> Option<u64>;
}

/// Comfort over every store.
#[async_trait]
pub trait StoreExt: Store {
    /// Finds a thread by its id or by its key.
    async fn find_thread(&self, scope: &Scope, name: &ThreadName, now: Timestamp) -> Result<Option<Thread>> {
        let view = self.read_thread(scope, name, &ThreadRead::default(), now).await?;
        Ok(view.map(|view| view.thread))
    }

    /// Gets a thread that must be there.
    async fn get_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<Thread> {
        let found = self.find_thread(scope, &ThreadName::Id(thread), now).await?;
        found.ok_or(StoreError::NotFound(Kind::Thread))
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// What one backend offers, as everyone holds it.
#[derive(Clone, Debug)]
pub struct Backend {
    /// The conversations.
    pub store: Arc<dyn Store>,
    /// The administration of the same data.
    pub maintenance: Arc<dyn Maintenance>,
    /// The index over the same data.
    pub search: Arc<dyn SearchIndex>,
}

/// What to open.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenThread {
    /// The id that a new thread gets.
    pub id: ThreadId,
    /// Whom a new thread belongs to, and whose keys are looked at.
    pub owner: Owner,
    /// What the channel calls it.
    pub key: Option<ThreadKey>,
    /// A new thread's title.
    pub title: Option<String>,
    /// A new thread's metadata.
    pub metadata: Map,
    /// A new thread's state.
    pub state: Map,
    /// When a new thread counts as made, where that was elsewhere and before; `None` for now. It has no part in any order.
    pub created_at: Option<Timestamp>,
    /// A new thread's instant of expiry.
    pub expires_at: Option<Timestamp>,
}

impl OpenThread {
    /// Names a thread by id, owned as the scope says.
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

    /// Names it by key, too.
    #[must_use]
    pub fn with_key(self, key: ThreadKey) -> Self {
        Self { key: Some(key), ..self }
    }

    /// Checks what every store must be able to keep.
    ///
    /// # Errors
    /// `Invalid` for NUL characters, `LimitExceeded` for sizes.
    pub fn check(&self) -> Result<()> {
        if let Some(title) = &self.title {
            limits::check_title(title)?;
        }
        limits::check_map("thread metadata", &self.metadata)?;
        limits::check_map("thread state", &self.state)
    }
}

/// A thread that was opened.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The thread.
    pub thread: Thread,
    /// Whether this call made it.
    pub created: bool,
}

/// How one names a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadName {
    /// By id.
    Id(ThreadId),
    /// By what a channel calls it, among the threads of an owner.
    Key(Owner, ThreadKey),
}

/// Which threads to list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadQuery {
    /// In which order.
    pub order: ThreadOrder,
    /// Only those of one owner; otherwise all that the scope has in full: a user's own, a tenant's all.
    pub owner: Option<Owner>,
    /// The `next` of the page before.
    pub after: Option<String>,
    /// At most so many (1 to [`limits::PAGE`]).
    pub limit: usize,
}

impl ThreadQuery {
    /// Makes a query for the first page in an order.
    #[must_use]
    pub fn new(order: ThreadOrder, limit: usize) -> Self {
        Self { order, owner: None, after: None, limit }
    }
}

/// The order of a list of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThreadOrder {
    /// Those that this store took in first come first, stable.
    Created,
    /// Last changed first.
    Recent,
}

/// A page of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadPage {
    /// The threads.
    pub threads: Vec<Thread>,
    /// What to pass as `after` for the next page; `None` when this was the last.
    pub next: Option<String>,
}

/// Threads that changed after a cursor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedThreads {
    /// Each once, in the order of its last change.
    pub threads: Vec<ChangedThread>,
    /// Where to go on.
    pub cursor: UserCursor,
    /// Whether more are known to follow.
    pub more: bool,
    /// Whether the cursor was of a lost past: read everything anew, then go on from the new cursor.
    pub reset: bool,
}

/// A thread that changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedThread {
    /// Its id.
    pub id: ThreadId,
    /// Whom it belongs to.
    pub owner: Owner,
    /// Where it stands, or `None` when it was deleted.
    pub positions: Option<Positions>,
}

impl ThreadQuery {
    /// Checks the limit.
    ///
    /// # Errors
    /// `Invalid` for 0, `LimitExceeded` over [`limits::PAGE`].
    pub fn check(&self) -> Result<()> {
        limits::check_page(self.limit)
    }
}

impl RecordQuery {
    /// Checks the limit.
    ///
    /// # Errors
    /// `Invalid` for 0, `LimitExceeded` over [`limits::PAGE`].
    pub fn check(&self) -> Result<()> {
        limits::check_page(self.limit)
    }
}
