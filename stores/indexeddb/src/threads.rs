//! Opens, reads, lists and deletes threads.

use futures::future::{try_join, try_join_all};
use threadkeep_core::{
    Access, ChangedThread, ChangedThreads, Conflict, DumpedThread, Kind, OpenOutcome, OpenThread, Positions, Result,
    Scope, StoreError, Thread, ThreadId, ThreadOrder, ThreadPage, ThreadQuery, ThreadRead, ThreadRef, ThreadView,
    Timestamp, UserCursor, WakeUp,
    codec::{self, ThreadAttributes},
    limits,
};
use uuid::Uuid;

use crate::idb::{Range, Transaction};
use crate::keys::{self, index};
use crate::rows::{Counters, DeletedRow, KnownOwner, ThreadRow, check_live, delete_parts, find_live, is_beyond_window};
use crate::{messages, records};

/// How many threads are read at once while some of them do not pass a filter.
const BATCH: usize = 128;

pub(crate) async fn open_thread(
    transaction: &Transaction,
    scope: &Scope,
    open: OpenThread,
    now: Timestamp,
) -> Result<(OpenOutcome, Option<WakeUp>)> {
    if scope.access(&open.owner) == Access::None {
        return Err(StoreError::NotFound(Kind::Thread));
    }
    let tenant = scope.tenant_id();
    let with_key = find_key(transaction, scope, &open).await?;
    if let Some(row) = with_key.as_ref().filter(|row| row.is_live(now)) {
        return Ok((OpenOutcome { thread: row.to_thread()?, created: false }, None));
    }
    let with_id = ThreadRow::find(transaction, tenant, open.id).await?;
    if let Some(row) = with_id.as_ref().filter(|row| row.is_live(now)) {
        return match (scope.access(&row.thread.owner), &open.key) {
            (Access::None, _) => Err(StoreError::NotFound(Kind::Thread)),
            (_, Some(_)) => Err(Conflict::Thread.into()),
            (_, None) => Ok((OpenOutcome { thread: row.to_thread()?, created: false }, None)),
        };
    }
    let deleted = transaction.get(&keys::deleted(tenant, open.id)).await?;
    if let Some(deleted) = deleted.map(|text| DeletedRow::parse(&text)).transpose()?
        && !is_beyond_window(deleted.deleted_at, now)
    {
        return Err(StoreError::NotFound(Kind::Thread));
    }
    let mut counters = Counters::read(transaction).await?;
    for replaced in [with_key, with_id].into_iter().flatten() {
        replaced.delete(transaction)?;
    }
    // An unfinished restoration may have left messages.
    delete_parts(transaction, tenant, open.id)?;
    KnownOwner::add(transaction, tenant, &open.owner)?;
    let stamp = counters.next_stamp();
    counters.write(transaction)?;
    let id = open.id;
    let wake_up = WakeUp::Thread { tenant: tenant.clone(), owner: open.owner.clone(), thread: id, change: None };
    let thread = new_thread(open, now);
    let row = ThreadRow { tenant: tenant.clone(), id, thread, messages: 0, created: stamp, stamp };
    row.write(transaction)?;
    Ok((OpenOutcome { thread: row.to_thread()?, created: true }, Some(wake_up)))
}

async fn find_key(transaction: &Transaction, scope: &Scope, open: &OpenThread) -> Result<Option<ThreadRow>> {
    let Some(key) = &open.key else { return Ok(None) };
    let text = transaction.get_indexed(&index::thread_key(scope.tenant_id(), &open.owner, key)).await?;
    text.map(|text| ThreadRow::parse(&text)).transpose()
}

fn new_thread(open: OpenThread, now: Timestamp) -> DumpedThread {
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

pub(crate) async fn read_thread(
    transaction: &Transaction,
    scope: &Scope,
    thread: &ThreadRef,
    read: &ThreadRead,
    now: Timestamp,
) -> Result<Option<ThreadView>> {
    read.check()?;
    let text = match thread {
        ThreadRef::Id(id) => transaction.get(&keys::thread(scope.tenant_id(), *id)).await?,
        ThreadRef::Key(owner, key) => {
            transaction.get_indexed(&index::thread_key(scope.tenant_id(), owner, key)).await?
        }
    };
    let row = text.map(|text| ThreadRow::parse(&text)).transpose()?;
    let row = match check_live(row, scope, now) {
        Ok((row, _)) => row,
        Err(StoreError::NotFound(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let page = async {
        match &read.messages {
            Some(query) => messages::read_page(transaction, &row, query).await.map(Some),
            None => Ok(None),
        }
    };
    let records = read.records.iter().map(|name| records::find_of_thread(transaction, &row, name, now));
    let lists = read.lists.iter().map(|query| records::list_records(transaction, scope, query, now));
    let (page, (records, lists)) = try_join(page, try_join(try_join_all(records), try_join_all(lists))).await?;
    Ok(Some(ThreadView { thread: row.to_thread()?, page, records, lists }))
}

pub(crate) async fn list_threads(
    transaction: &Transaction,
    scope: &Scope,
    query: &ThreadQuery,
    now: Timestamp,
) -> Result<ThreadPage> {
    query.check()?;
    let after = query.after.as_deref().map(ListCursor::parse).transpose()?;
    let tenant = scope.tenant_id();
    let passes = |row: &ThreadRow| {
        let access = scope.access(&row.thread.owner);
        row.is_live(now)
            && row.passes_filter(&query.metadata)
            && match &query.owner {
                None => access == Access::Full,
                Some(owner) => access != Access::None && *owner == row.thread.owner,
            }
    };
    let position = |cursor: ListCursor| -> Result<Vec<u8>> {
        Ok(match query.order {
            ThreadOrder::Created => index::created(tenant, cursor.number.cast_unsigned()),
            ThreadOrder::Recent => index::recent(tenant, Timestamp::from_micros(cursor.number)?, cursor.id),
        })
    };
    let mut range = match query.order {
        ThreadOrder::Created => index::by_creation(tenant),
        ThreadOrder::Recent => index::by_recency(tenant),
    };
    if let Some(after) = after {
        range = range.after(&position(after)?);
    }
    let mut rows: Vec<ThreadRow> = Vec::new();
    loop {
        let texts = transaction.range_indexed(&range, BATCH.max(query.limit + 1)).await?;
        let Some(last) = texts.last().map(|text| ThreadRow::parse(text)).transpose()? else { break };
        for text in &texts {
            rows.extend(Some(ThreadRow::parse(text)?).filter(&passes));
        }
        if rows.len() > query.limit {
            break;
        }
        range = range.after(&position(ListCursor::of(&last, query.order))?);
    }
    let more = rows.len() > query.limit;
    rows.truncate(query.limit);
    let next = rows.last().filter(|_| more).map(|row| ListCursor::of(row, query.order).to_string());
    let threads = rows.iter().map(ThreadRow::to_thread).collect::<Result<Vec<Thread>>>()?;
    Ok(ThreadPage { threads, next })
}

pub(crate) async fn delete_thread(
    transaction: &Transaction,
    scope: &Scope,
    id: ThreadId,
    now: Timestamp,
) -> Result<((), Option<WakeUp>)> {
    let ((row, access), mut counters) =
        try_join(find_live(transaction, scope, id, now), Counters::read(transaction)).await?;
    if access != Access::Full {
        return Err(StoreError::Denied("deleting a shared thread"));
    }
    let (tenant, owner, stamp) = (row.tenant.clone(), row.thread.owner.clone(), counters.next_stamp());
    row.delete(transaction)?;
    DeletedRow { tenant: tenant.clone(), id, owner: owner.clone(), deleted_at: now, stamp }.write(transaction)?;
    counters.write(transaction)?;
    Ok(((), Some(WakeUp::Thread { tenant, owner, thread: id, change: None })))
}

/// A sort key of threads in a list, and the cursor of a page. Text form: `NUMBER.ID`.
#[derive(Clone, Copy)]
struct ListCursor {
    /// The stamp of the thread's creation, or the time of its last change in microseconds since 1970.
    number: i64,
    id: ThreadId,
}

impl ListCursor {
    fn of(row: &ThreadRow, order: ThreadOrder) -> Self {
        let number = match order {
            ThreadOrder::Created => row.created.cast_signed(),
            ThreadOrder::Recent => row.thread.updated_at.as_micros(),
        };
        Self { number, id: row.id }
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

pub(crate) async fn list_changed_threads(
    transaction: &Transaction,
    scope: &Scope,
    after: Option<&UserCursor>,
    limit: usize,
    now: Timestamp,
) -> Result<ChangedThreads> {
    limits::check_page(limit)?;
    let counters = Counters::read(transaction).await?;
    let no_changes = |reset| ChangedThreads {
        threads: Vec::new(),
        cursor: cursor_at(&counters, counters.stamp),
        more: false,
        reset,
    };
    let Some(after) = after else { return Ok(no_changes(false)) };
    let Some(after) = parse_cursor(&counters, after) else { return Ok(no_changes(true)) };
    let tenant = scope.tenant_id();
    let live = async |range: &Range| -> Result<Vec<(u64, Option<ChangedThread>)>> {
        let texts = transaction.range_indexed(range, BATCH).await?;
        let rows = texts.iter().map(|text| ThreadRow::parse(text));
        let changed = rows.map(|row| {
            let row = row?;
            let is_listed = row.is_live(now) && scope.access(&row.thread.owner) == Access::Full;
            let positions = Some(row.thread.positions);
            Ok((row.stamp, is_listed.then_some(ChangedThread { id: row.id, owner: row.thread.owner, positions })))
        });
        changed.collect()
    };
    let deleted = async |range: &Range| -> Result<Vec<(u64, Option<ChangedThread>)>> {
        let texts = transaction.range_indexed(range, BATCH).await?;
        let mut changed = Vec::new();
        for text in texts {
            let row = DeletedRow::parse(&text)?;
            let is_listed = scope.access(&row.owner) == Access::Full
                && transaction.get(&keys::thread(tenant, row.id)).await?.is_none();
            let thread = ChangedThread { id: row.id, owner: row.owner, positions: None };
            changed.push((row.stamp, is_listed.then_some(thread)));
        }
        Ok(changed)
    };
    // Both lists are read until each has one more thread than the page.
    let mut changed: Vec<(u64, ChangedThread)> = Vec::new();
    for is_live in [true, false] {
        let (mut found, mut stamp) = (0, after);
        while found <= limit {
            let rows = if is_live {
                live(&index::changed_after(tenant, stamp)).await?
            } else {
                deleted(&index::deleted_after(tenant, stamp)).await?
            };
            let Some((last, _)) = rows.last() else { break };
            stamp = *last;
            for (stamp, thread) in rows {
                found += usize::from(thread.is_some());
                changed.extend(thread.map(|thread| (stamp, thread)));
            }
        }
    }
    changed.sort_by_key(|(stamp, _)| *stamp);
    let more = changed.len() > limit;
    changed.truncate(limit);
    let last_stamp = changed.last().filter(|_| more).map_or(counters.stamp, |(stamp, _)| *stamp);
    Ok(ChangedThreads {
        threads: changed.into_iter().map(|(_, thread)| thread).collect(),
        cursor: cursor_at(&counters, last_stamp),
        more,
        reset: false,
    })
}

fn cursor_at(counters: &Counters, stamp: u64) -> UserCursor {
    UserCursor(format!("{}-{stamp}", counters.incarnation.simple()))
}

/// Returns the stamp in a cursor; `None` if the cursor is from another store or too old.
fn parse_cursor(counters: &Counters, cursor: &UserCursor) -> Option<u64> {
    let (incarnation, stamp) = cursor.0.split_once('-')?;
    let stamp = stamp.parse().ok()?;
    let is_own = incarnation == counters.incarnation.simple().to_string();
    (is_own && (counters.swept_stamp..=counters.stamp).contains(&stamp)).then_some(stamp)
}
