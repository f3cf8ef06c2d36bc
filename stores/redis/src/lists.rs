//! Lists of threads, tenants and owners.
//!
//! The lists of a tenant are in another hash slot than its threads. A writer marks the thread there, writes the thread, then brings the
//! lists up to date and removes the mark (`marks`). A reader that finds a mark brings the lists up to date itself, so it never misses a
//! thread, even if the writer has ended. Each entry of a list is checked against the thread's own row.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::try_join_all;
use threadkeep_core::{
    Access, ChangedThread, ChangedThreads, DrivenThread, Owner, RecordName, Result, Scope, StoreError, TenantId,
    Thread, ThreadId, ThreadOrder, ThreadPage, ThreadQuery, Timestamp, UserCursor, limits,
};

use crate::args::Args;
use crate::keys::{owner_name, parse_owner};
use crate::marks::{Touch, parse_mark};
use crate::reply::{Reply, next, required_text};
use crate::row::has_expired;
use crate::shared::{Request, Shared, View, WriteEffects};

/// The age at which a mark is considered abandoned by a writer that has ended.
const MARK_LIFETIME: Duration = Duration::from_secs(120);
/// The maximum number of rows that are read at the same time.
const CONCURRENT_READS: usize = 64;

/// A part of a list.
struct ListPart {
    /// Threads and their scores.
    threads: Vec<(ThreadId, String)>,
    /// The last number that was assigned to a change.
    last: u64,
    /// The highest number of a swept deletion.
    swept: u64,
}

impl Shared {
    /// Reads a part of a list after settling its marks.
    async fn read_list(
        &self,
        tenant: &TenantId,
        list: &str,
        direction: &str,
        after: Option<(&str, &str)>,
        limit: usize,
    ) -> Result<ListPart> {
        self.flush(tenant).await?;
        let base = self.keys.tenant(tenant);
        let owner = list.split_once(':').and_then(|(_, rest)| rest.split_once(':')).map(|(_, owner)| owner);
        let (score, id) = after.unwrap_or_default();
        let mut args = Args::new();
        args.add(list).add(direction).add(score).add(id).number(limit);
        let mut is_settled = false;
        loop {
            let mut parts = self.connections.read("list", &base, &args).await?.items()?.into_iter();
            let mut items = next(&mut parts)?.items()?.into_iter();
            let marks = next(&mut parts)?.items()?;
            let now = next(&mut parts)?.number()?;
            if !marks.is_empty() && !is_settled {
                self.settle(tenant, marks, now, owner).await?;
                is_settled = true;
                continue;
            }
            let (last, swept) = (next(&mut parts)?.number()?, next(&mut parts)?.number()?);
            let mut threads = Vec::new();
            while let Some(id) = items.next() {
                let id = id.text()?.and_then(|id| id.parse().ok());
                let id = id.ok_or_else(|| StoreError::corrupt("list of threads", "not a thread id"))?;
                threads.push((id, next(&mut items)?.text()?.unwrap_or_default()));
            }
            return Ok(ListPart { threads, last, swept });
        }
    }

    /// Brings the lists up to date with the marked threads of an owner, or of all owners.
    pub(crate) async fn settle(
        &self,
        tenant: &TenantId,
        marks: Vec<redis::Value>,
        now: u64,
        owner: Option<&str>,
    ) -> Result<()> {
        let (mut fields, mut old, mut removing) = (marks.into_iter(), Vec::new(), HashMap::new());
        while let Some(field) = fields.next() {
            let (field, value) = (required_text(field)?, required_text(next(&mut fields)?)?);
            let Some(mark) = parse_mark(&field, &value) else { continue };
            if owner.is_some_and(|owner| !mark.owner.is_empty() && mark.owner != owner) {
                continue;
            }
            *removing.entry(mark.thread).or_insert(false) |= mark.removes_text;
            if now.saturating_sub(mark.at) > MARK_LIFETIME.as_secs() {
                old.push(field);
            }
        }
        let ids: Vec<ThreadId> = removing.keys().copied().collect();
        let views = self.read_rows(tenant, &ids).await?;
        // This process knows the order of its own commits. The order of other commits is only known by their times.
        self.flush(tenant).await?;
        // A thread without a view is not written yet, or never will be.
        let mut found: Vec<(ThreadId, View)> =
            ids.into_iter().zip(views).filter_map(|(id, view)| Some((id, view?))).collect();
        found.sort_by_key(|(id, view)| (view.row.thread.as_ref().map(|thread| thread.updated_at), *id));
        let touches = found.iter().map(|(id, view)| {
            let removed_text = removing.get(id).copied().unwrap_or(false);
            let effects = WriteEffects { has_unindexed: true, removed_text, ..WriteEffects::default() };
            Touch::new(*id, Some(&view.row), &effects)
        });
        let touches: Vec<Touch> = touches.collect();
        for part in touches.chunks(CONCURRENT_READS) {
            self.touch(tenant, part, &[]).await?;
        }
        for part in old.chunks(CONCURRENT_READS) {
            self.touch(tenant, &[], part).await?;
        }
        Ok(())
    }

    /// Reads the rows of threads.
    pub(crate) async fn read_rows(&self, tenant: &TenantId, ids: &[ThreadId]) -> Result<Vec<Option<View>>> {
        let mut views = Vec::with_capacity(ids.len());
        let request = Request::row();
        for ids in ids.chunks(CONCURRENT_READS) {
            views.extend(try_join_all(ids.iter().map(|id| self.read(tenant, *id, &request))).await?);
        }
        Ok(views)
    }

    pub(crate) async fn list_threads(&self, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> Result<ThreadPage> {
        query.check()?;
        let mut after = query.after.as_deref().map(parse_cursor).transpose()?;
        let Some(list) = list_name(scope, query) else { return Ok(ThreadPage { threads: Vec::new(), next: None }) };
        let direction = if query.order == ThreadOrder::Recent { "down" } else { "up" };
        let mut found: Vec<(String, ThreadId, Thread)> = Vec::new();
        // A filtered list reads more threads than it returns, so it reads them in large parts.
        let step = if query.metadata.is_empty() { query.limit + 1 } else { limits::PAGE };
        loop {
            let from = after.as_ref().map(|(score, id)| (score.as_str(), id.as_str()));
            let part = self.read_list(scope.tenant_id(), &list, direction, from, step).await?;
            let ids: Vec<ThreadId> = part.threads.iter().map(|(id, _)| *id).collect();
            let views = self.read_rows(scope.tenant_id(), &ids).await?;
            for ((id, score), view) in part.threads.iter().zip(views) {
                let Some(view) = view.filter(|view| is_listed(view, scope, query, now)) else { continue };
                found.push((score.clone(), *id, view.row.to_thread(*id)?));
            }
            after = part.threads.last().map(|(id, score)| (score.clone(), id.to_string()));
            if found.len() > query.limit || part.threads.len() < step {
                break;
            }
        }
        let has_more = found.len() > query.limit;
        found.truncate(query.limit);
        let next = found.last().filter(|_| has_more).map(|(score, id, _)| format!("{score}.{id}"));
        Ok(ThreadPage { threads: found.into_iter().map(|(_, _, thread)| thread).collect(), next })
    }

    /// Lists the threads of a tenant in the order of their creation, expired or not.
    pub(crate) async fn list_created(
        &self,
        tenant: &TenantId,
        after: Option<(String, ThreadId)>,
    ) -> Result<Vec<(ThreadId, String)>> {
        let after = after.map(|(score, id)| (score, id.to_string()));
        let from = after.as_ref().map(|(score, id)| (score.as_str(), id.as_str()));
        Ok(self.read_list(tenant, ":c", "up", from, limits::PAGE).await?.threads)
    }

    pub(crate) async fn list_changed_threads(
        &self,
        scope: &Scope,
        after: Option<&UserCursor>,
        limit: usize,
        now: Timestamp,
    ) -> Result<ChangedThreads> {
        limits::check_page(limit)?;
        let list = match scope {
            Scope::Tenant(_) => ":s".to_owned(),
            Scope::User(..) => format!(":s:{}", owner_name(&scope.default_owner())),
        };
        let mut from = after.and_then(|after| self.parse_user_cursor(after));
        if after.is_some() && from.is_none() {
            // The cursor may belong to a history that another process saw first.
            self.observe_history().await?;
            from = after.and_then(|after| self.parse_user_cursor(after));
        }
        let history = self.history();
        let (is_reset, mut threads) = (after.is_some() && from.is_none(), Vec::new());
        loop {
            // No thread has an id that sorts after `~`.
            let start = from.map(|from| from.to_string());
            let start = start.as_deref().map(|from| (from, "~"));
            let part = self.read_list(scope.tenant_id(), &list, "up", start, limit + 1).await?;
            let answer = |cursor: u64, threads, more, reset| ChangedThreads {
                threads,
                cursor: UserCursor(format!("{}-{history}-{cursor}", self.incarnation)),
                more,
                reset,
            };
            let Some(position) = from else { return Ok(answer(part.last, Vec::new(), false, is_reset)) };
            if !(part.swept..=part.last).contains(&position) && threads.is_empty() {
                return Ok(answer(part.last, Vec::new(), false, true));
            }
            let ids: Vec<ThreadId> = part.threads.iter().map(|(id, _)| *id).collect();
            let views = self.read_rows(scope.tenant_id(), &ids).await?;
            for ((id, score), view) in part.threads.iter().zip(views) {
                if threads.len() == limit {
                    return Ok(answer(from.unwrap_or(part.last), threads, true, false));
                }
                from = score.parse().ok();
                threads.extend(view.and_then(|view| changed_thread(*id, &view, scope, now)));
            }
            if part.threads.len() <= limit {
                let last = from.unwrap_or(0).max(part.last);
                return Ok(answer(last, threads, false, false));
            }
        }
    }

    /// Returns the number in a cursor; `None` if the cursor belongs to another store, or is from before a failover.
    fn parse_user_cursor(&self, cursor: &UserCursor) -> Option<u64> {
        let (incarnation, rest) = cursor.0.split_once('-')?;
        let (history, number) = rest.split_once('-')?;
        number.parse().ok().filter(|_| incarnation == self.incarnation && history == self.history())
    }

    pub(crate) async fn list_tenants(&self, after: Option<&TenantId>, limit: usize) -> Result<Vec<TenantId>> {
        limits::check_page(limit)?;
        let names = self.read_names(&self.keys.tenants(), after.map(TenantId::as_str), limit).await?;
        names.into_iter().map(TenantId::from_stored).collect()
    }

    pub(crate) async fn list_owners(
        &self,
        tenant: &TenantId,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<Owner>> {
        limits::check_page(limit)?;
        let mut score = redis::cmd("ZSCORE");
        score.arg(self.keys.tenants()).arg(tenant.as_str());
        if self.connections.look_up(&score).await?.text()?.is_none() {
            return Ok(Vec::new());
        }
        let mut owners = Vec::new();
        if after.is_none() {
            owners.push(Owner::Tenant);
        }
        let after = owner_name(after.unwrap_or(&Owner::Tenant));
        let list = format!("{}:o", self.keys.tenant(tenant));
        let names = self.read_names(&list, Some(&after), limit).await?;
        owners.extend(names.iter().filter_map(|name| parse_owner(name)));
        owners.truncate(limit);
        Ok(owners)
    }

    /// Reads names in byte order.
    pub(crate) async fn read_names(&self, list: &str, after: Option<&str>, limit: usize) -> Result<Vec<String>> {
        let mut read = redis::cmd("ZRANGEBYLEX");
        read.arg(list).arg(after.map_or_else(|| "-".to_owned(), |after| format!("({after}"))).arg("+");
        read.arg("LIMIT").arg(0).arg(limit);
        let names = self.connections.look_up(&read).await?.items()?.into_iter().map(Reply::text);
        Ok(names.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    pub(crate) async fn list_driven_threads(
        &self,
        after: Option<&DrivenThread>,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<DrivenThread>> {
        limits::check_page(limit)?;
        let mut found = Vec::new();
        let mut tenant = match after {
            Some(after) => Some(after.tenant.clone()),
            None => self.list_tenants(None, 1).await?.into_iter().next(),
        };
        while let Some(current) = tenant {
            let first = after.filter(|after| after.tenant == current).map(|after| after.thread);
            self.add_driven_threads(&current, first, limit, now, &mut found).await?;
            if found.len() == limit {
                break;
            }
            tenant = self.list_tenants(Some(&current), 1).await?.into_iter().next();
        }
        Ok(found)
    }

    async fn add_driven_threads(
        &self,
        tenant: &TenantId,
        after: Option<ThreadId>,
        limit: usize,
        now: Timestamp,
        found: &mut Vec<DrivenThread>,
    ) -> Result<()> {
        // Settles marks.
        self.read_list(tenant, ":c", "up", None, 1).await?;
        let list = format!("{}:d", self.keys.tenant(tenant));
        let mut after = after.map(|after| after.to_string());
        let request = Request { records: vec![RecordName::driver()], ..Request::row() };
        loop {
            let ids = self.read_names(&list, after.as_deref(), limits::PAGE).await?;
            for id in &ids {
                let Ok(thread) = id.parse::<ThreadId>() else { continue };
                let Some(view) = self.read(tenant, thread, &request).await? else { continue };
                let record = view.records.into_iter().flatten().find(|record| !has_expired(record.expires_at, now));
                let owner = view.row.live(now).map(|thread| thread.owner.clone());
                let Some((record, owner)) = record.zip(owner) else { continue };
                found.push(DrivenThread { tenant: tenant.clone(), thread, owner, record });
                if found.len() == limit {
                    return Ok(());
                }
            }
            if ids.len() < limits::PAGE {
                return Ok(());
            }
            after = ids.last().cloned();
        }
    }
}

/// Returns the name of the list to read; `None` if the scope can see none of it.
fn list_name(scope: &Scope, query: &ThreadQuery) -> Option<String> {
    let list = if query.order == ThreadOrder::Recent { ":r" } else { ":c" };
    let owner = match (&query.owner, scope) {
        (Some(owner), _) if scope.access(owner) == Access::None => return None,
        (Some(owner), _) => Some(owner.clone()),
        (None, Scope::User(..)) => Some(scope.default_owner()),
        (None, Scope::Tenant(_)) => None,
    };
    Some(owner.map_or_else(|| list.to_owned(), |owner| format!("{list}:{}", owner_name(&owner))))
}

fn is_listed(view: &View, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> bool {
    let Some((thread, access)) = view.row.accessible(scope, now) else { return false };
    if !view.row.has_metadata(&query.metadata) {
        return false;
    }
    match &query.owner {
        None => access == Access::Full,
        Some(owner) => *owner == thread.owner,
    }
}

fn changed_thread(id: ThreadId, view: &View, scope: &Scope, now: Timestamp) -> Option<ChangedThread> {
    if scope.access(&view.row.owner) != Access::Full {
        return None;
    }
    let owner = view.row.owner.clone();
    match &view.row.thread {
        None => view.row.deleted_at.map(|_| ChangedThread { id, owner, positions: None }),
        Some(thread) if has_expired(thread.expires_at, now) => None,
        Some(thread) => Some(ChangedThread { id, owner, positions: Some(thread.positions) }),
    }
}

/// Parses the cursor of a list: `NUMBER.ID`.
fn parse_cursor(text: &str) -> Result<(String, String)> {
    let cursor = text.split_once('.').and_then(|(number, id)| {
        number.parse::<i64>().ok()?;
        id.parse::<ThreadId>().ok()?;
        Some((number.to_owned(), id.to_owned()))
    });
    cursor.ok_or_else(|| StoreError::invalid("cursor", "not from this list"))
}
