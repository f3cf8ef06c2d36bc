//! Opens, finds and deletes threads.
//!
//! The entry that maps a thread's key to its id (the *claim*) is in another hash slot than the thread. It is written before the thread. If
//! a writer ends in between, its claim has no thread, and the next caller that opens the key uses that claim.

use threadkeep_core::{
    Access, Conflict, DumpedThread, Kind, OpenOutcome, OpenThread, Owner, Positions, Result, Scope, StoreError,
    TenantId, Thread, ThreadId, ThreadKey, Timestamp,
    codec::{self, ThreadAttributes},
};

use crate::commit::thread_wake_up;
use crate::reply::Reply;
use crate::row::{Grave, Row, is_beyond_window};
use crate::shared::{Request, Shared, View, WriteEffects, Writes, until_written};

/// The keys with the contents of a thread.
pub(crate) const PARTS: [&str; 9] = [":m", ":i", ":x", ":e", ":c", ":k", ":d", ":n", ":p"];

impl Shared {
    pub(crate) async fn open_thread(&self, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
        open.check()?;
        if scope.access(&open.owner) == Access::None {
            return Err(StoreError::NotFound(Kind::Thread));
        }
        until_written!(self.try_open(scope, &open, now).await)
    }

    async fn try_open(&self, scope: &Scope, open: &OpenThread, now: Timestamp) -> Result<Option<OpenOutcome>> {
        let tenant = scope.tenant_id();
        let Some(key) = &open.key else { return self.open_id(scope, open, open.id, now).await };
        if let Some(thread) = self.find_by_key(tenant, &open.owner, key, now).await? {
            return Ok(Some(OpenOutcome { thread, created: false }));
        }
        let _ = self.find_existing(scope, open, open.id, now).await?;
        let claim = self.keys.claim(tenant, &open.owner, key);
        let claimed = self.claim(&claim, open.id).await?;
        let id = match claimed {
            id if id == open.id => id,
            other => match self.read(tenant, other, &Request::row()).await? {
                // The writer that claimed the key has not written the thread (yet). Whichever of the two writes it, the id is the same.
                None => other,
                Some(view) if is_thread_with_key(&view.row, &open.owner, key, now) => return Ok(None),
                Some(_) => {
                    self.replace_claim(&claim, other, open.id).await?;
                    return Ok(None);
                }
            },
        };
        let opened = self.open_id(scope, open, id, now).await?;
        if opened.as_ref().is_some_and(|opened| opened.created) && self.read_claim(&claim).await? != Some(id) {
            // Another process has replaced the claim in between.
            self.remove(tenant, id, now).await?;
            return Ok(None);
        }
        Ok(opened)
    }

    /// Opens a thread by id.
    async fn open_id(
        &self,
        scope: &Scope,
        open: &OpenThread,
        id: ThreadId,
        now: Timestamp,
    ) -> Result<Option<OpenOutcome>> {
        let tenant = scope.tenant_id();
        let view = match self.find_existing(scope, open, id, now).await? {
            Existing::Thread(thread) => return Ok(Some(OpenOutcome { thread: *thread, created: false })),
            Existing::Replaceable(view) => view,
        };
        let base = self.keys.thread(tenant, id);
        let mut writes = Writes::new();
        let mut row = Row::new(new_thread(open, now), writes.revision.clone());
        if let Some(view) = &view {
            row.writes = view.row.writes + 1;
            row.graves = bury(&mut writes, &base, &view.row);
        }
        let wake_up = Some(thread_wake_up(tenant, &row, id));
        let effects = WriteEffects { wake_up, removed_text: view.is_some(), ..WriteEffects::default() };
        let expected = view.as_ref().map(|view| view.revision.as_str());
        let thread = row.to_thread(id)?;
        let is_written = self.write(tenant, id, expected, Some(&row), writes, effects).await?;
        Ok(is_written.then_some(OpenOutcome { thread, created: true }))
    }

    async fn find_existing(&self, scope: &Scope, open: &OpenThread, id: ThreadId, now: Timestamp) -> Result<Existing> {
        let Some(view) = self.read(scope.tenant_id(), id, &Request::row()).await? else {
            return Ok(Existing::Replaceable(None));
        };
        if let Some(stored) = view.row.live(now) {
            return match (scope.access(&stored.owner), &open.key) {
                (Access::None, _) => Err(StoreError::NotFound(Kind::Thread)),
                (_, Some(key)) if stored.key.as_ref() != Some(key) || stored.owner != open.owner => {
                    Err(Conflict::Thread.into())
                }
                _ => Ok(Existing::Thread(Box::new(view.row.to_thread(id)?))),
            };
        }
        match view.row.deleted_at {
            Some(at) if !is_beyond_window(at, now) => Err(StoreError::NotFound(Kind::Thread)),
            _ => Ok(Existing::Replaceable(Some(Box::new(view)))),
        }
    }

    /// Finds the thread with a key.
    pub(crate) async fn find_by_key(
        &self,
        tenant: &TenantId,
        owner: &Owner,
        key: &ThreadKey,
        now: Timestamp,
    ) -> Result<Option<Thread>> {
        let Some(id) = self.find_id(tenant, owner, key).await? else { return Ok(None) };
        let view = self.read(tenant, id, &Request::row()).await?;
        let view = view.filter(|view| is_thread_with_key(&view.row, owner, key, now));
        view.map(|view| view.row.to_thread(id)).transpose()
    }

    /// Returns the id that was claimed for a key. A thread with this id may not exist, or may not have this key.
    pub(crate) async fn find_id(&self, tenant: &TenantId, owner: &Owner, key: &ThreadKey) -> Result<Option<ThreadId>> {
        self.read_claim(&self.keys.claim(tenant, owner, key)).await
    }

    async fn read_claim(&self, claim: &str) -> Result<Option<ThreadId>> {
        let mut get = redis::cmd("HGET");
        get.arg(claim).arg("id");
        let text = self.connections.look_up(&get).await?.text()?;
        text.map(|text| text.parse().map_err(|_| StoreError::corrupt("thread key", "not a thread id"))).transpose()
    }

    /// Claims a key for an id unless it is already claimed. Returns the id that has the key now.
    pub(crate) async fn claim(&self, claim: &str, id: ThreadId) -> Result<ThreadId> {
        let mut set = redis::cmd("HSETNX");
        set.arg(claim).arg("id").arg(id.to_string());
        self.connections.run(&set, true).await?;
        // If the claim were lost, the next caller that opens the key would create another thread.
        self.connections.await_replicas(claim).await?;
        Ok(self.read_claim(claim).await?.unwrap_or(id))
    }

    /// Claims a key for an id, even if another thread has it.
    pub(crate) async fn take_claim(
        &self,
        tenant: &TenantId,
        owner: &Owner,
        key: &ThreadKey,
        id: ThreadId,
    ) -> Result<()> {
        let mut set = redis::cmd("HSET");
        set.arg(self.keys.claim(tenant, owner, key)).arg("id").arg(id.to_string());
        self.connections.run(&set, true).await.map(|_| ())
    }

    /// Gives a key to another id, if it still belongs to `old`.
    async fn replace_claim(&self, claim: &str, old: ThreadId, new: ThreadId) -> Result<()> {
        self.change_claim(claim, old, Some(new)).await
    }

    /// Removes the claim of a thread that was deleted.
    pub(crate) async fn release_claim(
        &self,
        tenant: &TenantId,
        owner: &Owner,
        key: &ThreadKey,
        id: ThreadId,
    ) -> Result<()> {
        self.change_claim(&self.keys.claim(tenant, owner, key), id, None).await
    }

    async fn change_claim(&self, claim: &str, old: ThreadId, new: Option<ThreadId>) -> Result<()> {
        let args = crate::args::Args::new().with(old.to_string());
        let args = args.with(new.map_or_else(String::new, |new| new.to_string()));
        self.connections.write("change_claim", claim, &args).await.map(|_| ())
    }

    pub(crate) async fn delete_thread(&self, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
        let _lock = self.lock(thread).await;
        until_written!({
            let view = self.read_accessible(scope, thread, &Request::row(), now).await?;
            if view.row.accessible(scope, now).is_none_or(|(_, access)| access != Access::Full) {
                return Err(StoreError::Denied("deleting a shared thread"));
            }
            self.try_remove(scope.tenant_id(), thread, view, now).await
        })
    }

    /// Deletes a thread, if it exists.
    async fn remove(&self, tenant: &TenantId, thread: ThreadId, now: Timestamp) -> Result<()> {
        until_written!(match self.read(tenant, thread, &Request::row()).await? {
            Some(view) if view.row.thread.is_some() => self.try_remove(tenant, thread, view, now).await,
            _ => Ok(Some(())),
        })
    }

    async fn try_remove(&self, tenant: &TenantId, thread: ThreadId, view: View, now: Timestamp) -> Result<Option<()>> {
        let base = self.keys.thread(tenant, thread);
        let mut writes = Writes::new();
        let key = view.row.thread.as_ref().and_then(|thread| thread.key.clone());
        let graves = bury(&mut writes, &base, &view.row);
        let row = Row {
            writes: view.row.writes + 1,
            thread: None,
            deleted_at: Some(now),
            count: 0,
            log_at: None,
            records_expire_at: None,
            gaps: Vec::new(),
            edited: None,
            is_driven: false,
            graves,
            ..view.row
        };
        let wake_up = Some(thread_wake_up(tenant, &row, thread));
        let effects = WriteEffects { removed_text: true, wake_up, ..WriteEffects::default() };
        if !self.write(tenant, thread, Some(&view.revision), Some(&row), writes, effects).await? {
            return Ok(None);
        }
        if let Some(key) = key {
            // If the claim remains, it has no effect, because it refers to a deleted thread.
            let _ = self.release_claim(tenant, &row.owner, &key, thread).await;
        }
        Ok(Some(()))
    }
}

/// What is stored under an id.
enum Existing {
    Thread(Box<Thread>),
    /// Nothing, or what remains of an expired or deleted thread.
    Replaceable(Option<Box<View>>),
}

pub(crate) fn is_thread_with_key(row: &Row, owner: &Owner, key: &ThreadKey, now: Timestamp) -> bool {
    row.live(now).is_some_and(|thread| thread.owner == *owner && thread.key.as_ref() == Some(key))
}

/// Renames the keys of a deleted thread, so that its id can be used again before a sweep removes the contents (the *grave*). Returns
/// all graves of the id.
pub(crate) fn bury(writes: &mut Writes, base: &str, row: &Row) -> Vec<Grave> {
    let mut graves = row.graves.clone();
    if row.thread.is_some() {
        for part in PARTS {
            writes.rename(&format!("{base}{part}"), &format!("{}{part}", grave_base(base, &row.born)));
        }
        // A sweep reads the rows like those of a thread.
        let positions = row.positions();
        let (seq, first) = (positions.seq.to_string(), row.low.to_string());
        let gaps = serde_json::to_string(&row.gaps).unwrap_or_default();
        let text = row.to_text();
        let fields = ["rev", "1", "row", &text, "seq", &seq, "first", &first, "gaps", &gaps];
        writes.command("HSET", &format!("{}:t", grave_base(base, &row.born)), fields);
        graves.push(Grave { born: row.born.clone(), owner: row.owner.clone() });
    }
    graves
}

/// The prefix of the keys that hold the contents of a deleted thread.
pub(crate) fn grave_base(base: &str, born: &str) -> String {
    format!("{base}:g:{born}")
}

fn new_thread(open: &OpenThread, now: Timestamp) -> DumpedThread {
    let attributes = ThreadAttributes::new(open.title.clone(), open.metadata.clone(), open.state.clone());
    DumpedThread {
        owner: open.owner.clone(),
        key: open.key.clone(),
        body: codec::encode_thread(&attributes),
        positions: Positions::BEGINNING,
        created_at: open.created_at.unwrap_or(now),
        updated_at: now,
        expires_at: open.expires_at,
    }
}
