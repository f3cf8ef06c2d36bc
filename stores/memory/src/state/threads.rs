//! Opens, reads, lists and deletes threads.

use threadkeep_core::{
    Access, Conflict, DumpedThread, Kind, OpenOutcome, OpenThread, Owner, Positions, Result, Scope, StoreError, Thread,
    ThreadId, ThreadKey, ThreadOrder, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView, Timestamp, WakeUp,
    codec::{self, ThreadAttributes},
};
use uuid::Uuid;

use super::{DeletedThread, State, StoredThread, Tenant, is_beyond_window};

impl State {
    pub(crate) fn open_thread(
        &mut self,
        scope: &Scope,
        open: OpenThread,
        now: Timestamp,
    ) -> Result<(OpenOutcome, Option<WakeUp>)> {
        open.check()?;
        if scope.access(&open.owner) == Access::None {
            return Err(StoreError::NotFound(Kind::Thread));
        }
        if let Some(tenant) = self.tenants.get(scope.tenant_id())
            && let Some(thread) = tenant.find_existing(scope, &open, now)?
        {
            return Ok((OpenOutcome { thread, created: false }, None));
        }
        let stamp = self.next_stamp();
        let tenant = self.tenants.entry(scope.tenant_id().clone()).or_default();
        tenant.remove_replaced(&open);
        let (owner, thread) = (open.owner.clone(), open.id);
        let wake_up = WakeUp::Thread { tenant: scope.tenant_id().clone(), owner, thread, change: None };
        let id = open.id;
        let stored = StoredThread::new(new_row(open, now), stamp);
        let thread = stored.to_thread(id)?;
        tenant.threads.insert(id, stored);
        Ok((OpenOutcome { thread, created: true }, Some(wake_up)))
    }

    pub(crate) fn read_thread(
        &self,
        scope: &Scope,
        thread: &ThreadRef,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        read.check()?;
        let id = match thread {
            ThreadRef::Id(id) => Some(*id),
            ThreadRef::Key(owner, key) => {
                self.tenants.get(scope.tenant_id()).and_then(|tenant| tenant.find_key(owner, key, now))
            }
        };
        let Some((id, Ok((stored, _)))) = id.map(|id| (id, self.find_live(scope, id, now))) else { return Ok(None) };
        let record = |thread| stored.live_record(thread, now).cloned();
        Ok(Some(ThreadView {
            thread: stored.to_thread(id)?,
            page: read.messages.as_ref().map(|query| self.list_messages(scope, id, query, now)).transpose()?,
            records: read.records.iter().map(record).collect(),
            lists: read.lists.iter().map(|query| self.list_records(scope, query, now)).collect::<Result<_>>()?,
        }))
    }

    pub(crate) fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        query.check()?;
        let after = query.after.as_deref().map(ListCursor::parse).transpose()?;
        let tenant = self.tenants.get(scope.tenant_id());
        let stored = tenant.into_iter().flat_map(|tenant| &tenant.threads).filter(|(_, stored)| {
            let access = scope.access(&stored.row.owner);
            stored.is_live(now)
                && stored.passes_filter(&query.metadata)
                && match &query.owner {
                    None => access == Access::Full,
                    Some(owner) => access != Access::None && *owner == stored.row.owner,
                }
        });
        let mut rows: Vec<(ListCursor, &StoredThread)> =
            stored.map(|(id, stored)| (ListCursor::of(*id, stored, query.order), stored)).collect();
        rows.sort_by_key(|(cursor, _)| *cursor);
        if query.order == ThreadOrder::Recent {
            rows.reverse();
            rows.retain(|(cursor, _)| after.is_none_or(|after| *cursor < after));
        } else {
            rows.retain(|(cursor, _)| after.is_none_or(|after| *cursor > after));
        }
        let more = rows.len() > query.limit;
        rows.truncate(query.limit);
        let next = rows.last().filter(|_| more).map(|(cursor, _)| cursor.to_string());
        let threads = rows.into_iter().map(|(cursor, stored)| stored.to_thread(cursor.id)).collect::<Result<_>>()?;
        Ok(ThreadPage { threads, next })
    }

    pub(crate) fn delete_thread(&mut self, scope: &Scope, id: ThreadId, now: Timestamp) -> Result<WakeUp> {
        let (stored, access) = self.find_live(scope, id, now)?;
        if access != Access::Full {
            return Err(StoreError::Denied("deleting a shared thread"));
        }
        let owner = stored.row.owner.clone();
        let stamp = self.next_stamp();
        let tenant = self.tenants.entry(scope.tenant_id().clone()).or_default();
        tenant.threads.remove(&id);
        tenant.deleted.insert(id, DeletedThread { owner: owner.clone(), deleted_at: now, stamp });
        Ok(WakeUp::Thread { tenant: scope.tenant_id().clone(), owner, thread: id, change: None })
    }
}

impl Tenant {
    pub(super) fn find_key(&self, owner: &Owner, key: &ThreadKey, now: Timestamp) -> Option<ThreadId> {
        let has_key = |stored: &StoredThread| stored.row.owner == *owner && stored.row.key.as_ref() == Some(key);
        self.threads.iter().find(|(_, stored)| has_key(stored) && stored.is_live(now)).map(|(id, _)| *id)
    }

    /// Finds the existing thread that `open` identifies. Fails if the id belongs to a thread that must not be opened, or to a thread
    /// that was deleted within the idempotency window.
    fn find_existing(&self, scope: &Scope, open: &OpenThread, now: Timestamp) -> Result<Option<Thread>> {
        if let Some(key) = &open.key
            && let Some(id) = self.find_key(&open.owner, key, now)
            && let Some(stored) = self.threads.get(&id)
        {
            return stored.to_thread(id).map(Some);
        }
        if let Some(stored) = self.threads.get(&open.id).filter(|stored| stored.is_live(now)) {
            return match (scope.access(&stored.row.owner), &open.key) {
                (Access::None, _) => Err(StoreError::NotFound(Kind::Thread)),
                (_, Some(_)) => Err(Conflict::Thread.into()),
                (_, None) => stored.to_thread(open.id).map(Some),
            };
        }
        match self.deleted.get(&open.id) {
            Some(deleted) if !is_beyond_window(deleted.deleted_at, now) => Err(StoreError::NotFound(Kind::Thread)),
            _ => Ok(None),
        }
    }

    /// Removes expired threads with the id or key of the new thread. Entries in `deleted` remain until the next sweep, so that clients
    /// are still informed of the deletion.
    fn remove_replaced(&mut self, open: &OpenThread) {
        self.threads.remove(&open.id);
        if open.key.is_some() {
            self.threads.retain(|_, stored| stored.row.owner != open.owner || stored.row.key != open.key);
        }
    }
}

fn new_row(open: OpenThread, now: Timestamp) -> DumpedThread {
    let attributes = ThreadAttributes::new(open.title, open.metadata, open.state);
    DumpedThread {
        owner: open.owner,
        key: open.key,
        body: codec::encode_thread(&attributes),
        positions: Positions::BEGINNING,
        created_at: open.created_at.unwrap_or(now),
        updated_at: now,
        expires_at: open.expires_at,
    }
}

/// A sort key of threads in a list, and the cursor of a page. Text form: `NUMBER.ID`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ListCursor {
    /// The stamp of the thread's creation, or the time of its last change in microseconds since 1970.
    number: i128,
    id: ThreadId,
}

impl ListCursor {
    fn of(id: ThreadId, stored: &StoredThread, order: ThreadOrder) -> Self {
        let number = match order {
            ThreadOrder::Created => stored.first_stamp.into(),
            ThreadOrder::Recent => stored.row.updated_at.as_micros().into(),
        };
        Self { number, id }
    }

    fn parse(text: &str) -> Result<Self> {
        let cursor = text.split_once('.').and_then(|(number, id)| {
            Some(Self { number: number.parse().ok()?, id: ThreadId(Uuid::parse_str(id).ok()?) })
        });
        cursor.ok_or_else(|| StoreError::invalid("cursor", "not from this list"))
    }
}

impl std::fmt::Display for ListCursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.number, self.id)
    }
}
