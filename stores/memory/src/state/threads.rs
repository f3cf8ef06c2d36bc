//! How threads begin, are found, and end.

use threadkeep_core::{
    Access, Conflict, DumpedThread, Kind, OpenThread, Opened, Owner, Positions, Result, Scope, StoreError, Thread,
    ThreadId, ThreadKey, ThreadName, ThreadOrder, ThreadPage, ThreadQuery, ThreadRead, ThreadView, Timestamp, WakeUp,
    codec::{self, ThreadWords},
};
use uuid::Uuid;

use super::{Grave, KeptThread, State, Tenant, is_beyond_window};

impl State {
    pub(crate) fn open_thread(
        &mut self,
        scope: &Scope,
        open: OpenThread,
        now: Timestamp,
    ) -> Result<(Opened, Option<WakeUp>)> {
        open.check()?;
        if scope.access(&open.owner) == Access::None {
            return Err(StoreError::NotFound(Kind::Thread));
        }
        if let Some(tenant) = self.tenants.get(scope.tenant_id())
            && let Some(thread) = tenant.find_opened(scope, &open, now)?
        {
            return Ok((Opened { thread, created: false }, None));
        }
        let stamp = self.next_stamp();
        let tenant = self.tenants.entry(scope.tenant_id().clone()).or_default();
        tenant.clear_way(&open);
        let (owner, thread) = (open.owner.clone(), open.id);
        let wake_up = WakeUp::Thread { tenant: scope.tenant_id().clone(), owner, thread, change: None };
        let id = open.id;
        let kept = KeptThread::new(new_row(open, now), stamp);
        let thread = kept.to_thread(id)?;
        tenant.threads.insert(id, kept);
        Ok((Opened { thread, created: true }, Some(wake_up)))
    }

    pub(crate) fn read_thread(
        &self,
        scope: &Scope,
        name: &ThreadName,
        read: &ThreadRead,
        now: Timestamp,
    ) -> Result<Option<ThreadView>> {
        read.check()?;
        let id = match name {
            ThreadName::Id(id) => Some(*id),
            ThreadName::Key(owner, key) => {
                self.tenants.get(scope.tenant_id()).and_then(|tenant| tenant.find_key(owner, key, now))
            }
        };
        let Some((id, Ok((kept, _)))) = id.map(|id| (id, self.reach(scope, id, now))) else { return Ok(None) };
        let record = |name| kept.live_record(name, now).cloned();
        Ok(Some(ThreadView {
            thread: kept.to_thread(id)?,
            page: read.messages.as_ref().map(|query| self.list_messages(scope, id, query, now)).transpose()?,
            records: read.records.iter().map(record).collect(),
            lists: read.lists.iter().map(|query| self.list_records(scope, query, now)).collect::<Result<_>>()?,
        }))
    }

    pub(crate) fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        query.check()?;
        let after = query.after.as_deref().map(Place::parse).transpose()?;
        let tenant = self.tenants.get(scope.tenant_id());
        let kept = tenant.into_iter().flat_map(|tenant| &tenant.threads).filter(|(_, kept)| {
            let access = scope.access(&kept.row.owner);
            kept.is_live(now)
                && match &query.owner {
                    None => access == Access::Full,
                    Some(owner) => access != Access::None && *owner == kept.row.owner,
                }
        });
        let mut places: Vec<(Place, &KeptThread)> =
            kept.map(|(id, kept)| (Place::of(*id, kept, query.order), kept)).collect();
        places.sort_by_key(|(place, _)| *place);
        if query.order == ThreadOrder::Recent {
            places.reverse();
            places.retain(|(place, _)| after.is_none_or(|after| *place < after));
        } else {
            places.retain(|(place, _)| after.is_none_or(|after| *place > after));
        }
        let more = places.len() > query.limit;
        places.truncate(query.limit);
        let next = places.last().filter(|_| more).map(|(place, _)| place.to_string());
        let threads = places.into_iter().map(|(place, kept)| kept.to_thread(place.id)).collect::<Result<_>>()?;
        Ok(ThreadPage { threads, next })
    }

    pub(crate) fn delete_thread(&mut self, scope: &Scope, id: ThreadId, now: Timestamp) -> Result<WakeUp> {
        let (kept, access) = self.reach(scope, id, now)?;
        if access != Access::Full {
            return Err(StoreError::Denied("a user cannot delete a shared thread"));
        }
        let owner = kept.row.owner.clone();
        let stamp = self.next_stamp();
        let tenant = self.tenants.entry(scope.tenant_id().clone()).or_default();
        tenant.threads.remove(&id);
        tenant.graves.insert(id, Grave { owner: owner.clone(), deleted_at: now, stamp });
        Ok(WakeUp::Thread { tenant: scope.tenant_id().clone(), owner, thread: id, change: None })
    }
}

impl Tenant {
    pub(super) fn find_key(&self, owner: &Owner, key: &ThreadKey, now: Timestamp) -> Option<ThreadId> {
        let claims = |kept: &KeptThread| kept.row.owner == *owner && kept.row.key.as_ref() == Some(key);
        self.threads.iter().find(|(_, kept)| claims(kept) && kept.is_live(now)).map(|(id, _)| *id)
    }

    /// The thread that is opened if it is there; an error if its id is not free.
    fn find_opened(&self, scope: &Scope, open: &OpenThread, now: Timestamp) -> Result<Option<Thread>> {
        if let Some(key) = &open.key
            && let Some(id) = self.find_key(&open.owner, key, now)
            && let Some(kept) = self.threads.get(&id)
        {
            return kept.to_thread(id).map(Some);
        }
        if let Some(kept) = self.threads.get(&open.id).filter(|kept| kept.is_live(now)) {
            return match (scope.access(&kept.row.owner), &open.key) {
                (Access::None, _) => Err(StoreError::NotFound(Kind::Thread)),
                (_, Some(_)) => Err(Conflict::Thread.into()),
                (_, None) => kept.to_thread(open.id).map(Some),
            };
        }
        match self.graves.get(&open.id) {
            Some(grave) if !is_beyond_window(grave.deleted_at, now) => Err(StoreError::NotFound(Kind::Thread)),
            _ => Ok(None),
        }
    }

    /// Removes what the new thread replaces: expired threads with its id or key. A grave beyond the window stays for
    /// those who have not heard of the deletion, until the next sweep.
    fn clear_way(&mut self, open: &OpenThread) {
        self.threads.remove(&open.id);
        if open.key.is_some() {
            self.threads.retain(|_, kept| kept.row.owner != open.owner || kept.row.key != open.key);
        }
    }
}

fn new_row(open: OpenThread, now: Timestamp) -> DumpedThread {
    let words = ThreadWords::new(open.title, open.metadata, open.state);
    DumpedThread {
        owner: open.owner,
        key: open.key,
        body: codec::encode_thread(&words),
        positions: Positions::BEGINNING,
        created_at: open.created_at.unwrap_or(now),
        updated_at: now,
        expires_at: open.expires_at,
    }
}

/// Where a thread stands in a list. Text form: `NUMBER.ID`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// When it came into this store, as a stamp; or when it changed last, in microseconds.
    number: i128,
    id: ThreadId,
}

impl Place {
    fn of(id: ThreadId, kept: &KeptThread, order: ThreadOrder) -> Self {
        let number = match order {
            ThreadOrder::Created => kept.first_stamp.into(),
            ThreadOrder::Recent => kept.row.updated_at.as_micros().into(),
        };
        Self { number, id }
    }

    fn parse(text: &str) -> Result<Self> {
        let place = text.split_once('.').and_then(|(number, id)| {
            Some(Self { number: number.parse().ok()?, id: ThreadId(Uuid::parse_str(id).ok()?) })
        });
        place.ok_or_else(|| StoreError::invalid("after", "not a place that a page ended at"))
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.number, self.id)
    }
}
