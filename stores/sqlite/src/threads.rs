use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use threadkeep_core::{
    Access, Conflict, IDEMPOTENCY_WINDOW_MS, Kind, OpenOutcome, OpenThread, Owner, Result, Scope, StoreError, Thread,
    ThreadId, ThreadOrder, ThreadPage, ThreadQuery, ThreadRef, Timestamp, WakeUp, codec,
};

use crate::connection::Shared;
use crate::error;
use crate::metadata;
use crate::owners::{self, ScopeNumbers};
use crate::residue::{self, Residue};
use crate::row::{self, ThreadRow, full_thread_columns, thread_columns};
use crate::writer;

/// Finds the row of a thread that the scope may access and that has not expired at `now`.
pub(crate) fn find_row(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    thread: ThreadId,
    now: Timestamp,
) -> error::Result<Option<(ThreadRow, Access)>> {
    let numbers = owners::resolve_scope(shared, connection, scope)?;
    let sql = concat!(
        "SELECT ",
        thread_columns!(),
        " FROM threads WHERE tenant_no = ?1 AND id = ?2 AND restoring = 0 AND (expires_at IS NULL OR expires_at > ?3)"
    );
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![numbers.tenant_no, thread.0.as_bytes(), now.as_micros()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let row = row::thread_row(row)?;
    let access = numbers.access(row.owner_no);
    Ok((access > Access::None).then_some((row, access)))
}

/// Like [`find_row`], but fails with `NotFound` if there is no such thread.
pub(crate) fn get_row(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    thread: ThreadId,
    now: Timestamp,
) -> error::Result<(ThreadRow, Access)> {
    find_row(shared, connection, scope, thread, now)?.ok_or_else(|| StoreError::NotFound(Kind::Thread).into())
}

/// Finds a thread by id or key, and returns it with its number.
pub(crate) fn find(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    thread: &ThreadRef,
    now: Timestamp,
) -> error::Result<Option<(i64, Thread)>> {
    let numbers = owners::resolve_scope(shared, connection, scope)?;
    let found = match thread {
        ThreadRef::Id(id) => find_by_id(connection, numbers.tenant_no, *id, now)?,
        ThreadRef::Key(owner, key) => {
            let owner_no = owners::find(shared, connection, scope.tenant_id().as_str(), owners::stored_name(owner))?;
            find_by_key(connection, owner_no, key.as_str(), now)?
        }
    };
    Ok(found.filter(|(_, thread)| scope.access(&thread.owner) > Access::None))
}

/// A thread with its number in the tables.
type NumberedThread = (i64, Thread);

fn find_by_id(
    connection: &Connection,
    tenant_no: i64,
    id: ThreadId,
    now: Timestamp,
) -> error::Result<Option<NumberedThread>> {
    let sql = concat!(
        "SELECT ",
        full_thread_columns!(),
        ", t.no FROM threads t JOIN owners o ON o.no = t.owner_no WHERE t.tenant_no = ?1 AND t.id = ?2 AND t.restoring = 0",
        " AND (t.expires_at IS NULL OR t.expires_at > ?3)"
    );
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![tenant_no, id.0.as_bytes(), now.as_micros()])?;
    rows.next()?.map(numbered_thread).transpose()
}

fn numbered_thread(row: &Row<'_>) -> error::Result<NumberedThread> {
    Ok((row.get(11)?, row::thread(row)?))
}

fn find_by_key(
    connection: &Connection,
    owner_no: i64,
    key: &str,
    now: Timestamp,
) -> error::Result<Option<NumberedThread>> {
    let sql = concat!(
        "SELECT ",
        full_thread_columns!(),
        ", t.no FROM threads t JOIN owners o ON o.no = t.owner_no WHERE t.owner_no = ?1 AND t.key = ?2 AND t.restoring = 0",
        " AND (t.expires_at IS NULL OR t.expires_at > ?3)"
    );
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![owner_no, key, now.as_micros()])?;
    rows.next()?.map(numbered_thread).transpose()
}

pub(crate) async fn open(shared: &Arc<Shared>, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
    open.check()?;
    if scope.access(&open.owner) == Access::None {
        return Err(StoreError::NotFound(Kind::Thread));
    }
    let found = shared.read(|connection| find_existing(shared, connection, scope, &open, now))?;
    if let Some(thread) = found {
        return Ok(OpenOutcome { thread, created: false });
    }
    let (store, caller) = (Arc::clone(shared), scope.clone());
    let opened =
        writer::write(shared, move |connection| find_or_create(&store, connection, &caller, open, now)).await?;
    if opened.created {
        send_wake_up(shared, scope, &opened.thread.owner, opened.thread.id, None);
    }
    Ok(opened)
}

/// Finds the existing thread that `open` identifies: by key if it has one, otherwise by id.
fn find_existing(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    open: &OpenThread,
    now: Timestamp,
) -> error::Result<Option<Thread>> {
    let tenant = scope.tenant_id().as_str();
    let tenant_no = owners::find(shared, connection, tenant, "")?;
    if let Some(key) = &open.key {
        let owner_no = owners::find(shared, connection, tenant, owners::stored_name(&open.owner))?;
        let by_key = find_by_key(connection, owner_no, key.as_str(), now)?;
        if let Some((_, thread)) = by_key {
            return Ok(Some(thread));
        }
    }
    match find_by_id(connection, tenant_no, open.id, now)? {
        Some((_, thread)) if scope.access(&thread.owner) == Access::None => {
            Err(StoreError::NotFound(Kind::Thread).into())
        }
        Some(_) if open.key.is_some() => Err(StoreError::from(Conflict::Thread).into()),
        found => Ok(found.map(|(_, thread)| thread)),
    }
}

fn find_or_create(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    open: OpenThread,
    now: Timestamp,
) -> error::Result<OpenOutcome> {
    if let Some(thread) = find_existing(shared, connection, scope, &open, now)? {
        return Ok(OpenOutcome { thread, created: false });
    }
    let tenant = scope.tenant_id().as_str();
    let tenant_no = owners::find(shared, connection, tenant, "")?;
    let forgotten_before = now.plus_ms(-IDEMPOTENCY_WINDOW_MS).as_micros();
    let sql = "SELECT 1 FROM deleted_threads WHERE tenant_no = ?1 AND id = ?2 AND deleted_at > ?3";
    let is_deleted =
        connection.prepare_cached(sql)?.exists(params![tenant_no, open.id.0.as_bytes(), forgotten_before])?;
    if is_deleted || is_restoring(connection, tenant_no, open.id)? {
        return Err(StoreError::NotFound(Kind::Thread).into());
    }
    let owner_no = owners::find_or_insert(shared, connection, tenant, owners::stored_name(&open.owner))?;
    let tenant_no = owners::find_or_insert(shared, connection, tenant, "")?;
    remove_expired(connection, tenant_no, owner_no, &open, now)?;
    insert(connection, tenant_no, owner_no, &open, now)?;
    // The new thread is returned even if it has already expired.
    let created = find_by_id(connection, tenant_no, open.id, Timestamp::MIN)?;
    let (_, thread) = created.ok_or(StoreError::NotFound(Kind::Thread))?;
    Ok(OpenOutcome { thread, created: true })
}

fn is_restoring(connection: &Connection, tenant_no: i64, id: ThreadId) -> error::Result<bool> {
    let sql = "SELECT 1 FROM threads WHERE tenant_no = ?1 AND id = ?2 AND restoring = 1";
    Ok(connection.prepare_cached(sql)?.exists(params![tenant_no, id.0.as_bytes()])?)
}

/// Removes expired threads with the id or key of a new thread, because a sweep would remove them only later.
fn remove_expired(
    connection: &Connection,
    tenant_no: i64,
    owner_no: i64,
    open: &OpenThread,
    now: Timestamp,
) -> error::Result<()> {
    let sql = "SELECT no FROM threads WHERE expires_at <= ?1 AND ((tenant_no = ?2 AND id = ?3) OR (owner_no = ?4 AND key = ?5))";
    let key = open.key.as_ref().map(threadkeep_core::ThreadKey::as_str);
    let mut statement = connection.prepare_cached(sql)?;
    let expired = statement
        .query_map(params![now.as_micros(), tenant_no, open.id.0.as_bytes(), owner_no, key], |row| row.get(0))?
        .collect::<Result<Vec<i64>, _>>()?;
    expired.into_iter().try_for_each(|thread_no| remove(connection, thread_no))
}

fn insert(
    connection: &Connection,
    tenant_no: i64,
    owner_no: i64,
    open: &OpenThread,
    now: Timestamp,
) -> error::Result<()> {
    let body = codec::ThreadAttributes::new(open.title.clone(), open.metadata.clone(), open.state.clone());
    let sql = "INSERT INTO threads (tenant_no, owner_no, id, seq, change, first_seq, log_from, message_count, stamp, \
               restoring, created_at, updated_at, expires_at, key, body) \
               VALUES (?1, ?2, ?3, 0, 0, 1, 0, 0, ?4, 0, ?5, ?6, ?7, ?8, ?9)";
    connection.prepare_cached(sql)?.execute(params![
        tenant_no,
        owner_no,
        open.id.0.as_bytes(),
        next_stamp(connection)?,
        open.created_at.unwrap_or(now).as_micros(),
        now.as_micros(),
        open.expires_at.map(Timestamp::as_micros),
        open.key.as_ref().map(threadkeep_core::ThreadKey::as_str),
        codec::encode_thread(&body),
    ])?;
    // A thread with this id may have been deleted before the idempotency window.
    connection
        .prepare_cached("DELETE FROM deleted_threads WHERE tenant_no = ?1 AND id = ?2")?
        .execute(params![tenant_no, open.id.0.as_bytes()])?;
    Ok(())
}

/// Returns the next stamp, a sequence number that all commits and deletions of the store share. No stamp is used twice.
pub(crate) fn next_stamp(connection: &Connection) -> error::Result<i64> {
    let sql = "SELECT 1 + max(coalesce((SELECT max(stamp) FROM threads), 0), \
               coalesce((SELECT value FROM marks WHERE name = 'stamp'), 0))";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get(0))?)
}

pub(crate) async fn delete(shared: &Arc<Shared>, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
    let (store, caller) = (Arc::clone(shared), scope.clone());
    let owner = writer::write(shared, move |connection| {
        let (row, access) = get_row(&store, connection, &caller, thread, now)?;
        if access < Access::Full {
            return Err(StoreError::Denied("deleting a shared thread").into());
        }
        let stamp = next_stamp(connection)?;
        let sql = "INSERT OR REPLACE INTO deleted_threads (tenant_no, id, owner_no, stamp, deleted_at) \
                   SELECT tenant_no, id, owner_no, ?2, ?3 FROM threads WHERE no = ?1";
        connection.prepare_cached(sql)?.execute(params![row.number, stamp, now.as_micros()])?;
        let sql =
            "INSERT INTO marks (name, value) VALUES ('stamp', ?1) ON CONFLICT DO UPDATE SET value = excluded.value";
        connection.prepare_cached(sql)?.execute([stamp])?;
        remove(connection, row.number)?;
        let sql = "SELECT user FROM owners WHERE no = ?1";
        let user: String = connection.prepare_cached(sql)?.query_row([row.owner_no], |row| row.get(0))?;
        owners::parse_owner(user)
    })
    .await?;
    send_wake_up(shared, scope, &owner, thread, None);
    Ok(())
}

/// Removes a thread's row and records. The sweep removes its messages and change log.
pub(crate) fn remove(connection: &Connection, thread_no: i64) -> error::Result<()> {
    let sql = "INSERT OR REPLACE INTO leftovers (thread_no, owner_no, tenant_no, below) \
               SELECT no, owner_no, tenant_no, NULL FROM threads WHERE no = ?1";
    connection.prepare_cached(sql)?.execute([thread_no])?;
    // The thread's stamp may be the highest one, and must not be used again.
    let sql = "INSERT INTO marks (name, value) SELECT 'stamp', stamp FROM threads WHERE no = ?1 \
               ON CONFLICT DO UPDATE SET value = max(value, excluded.value)";
    connection.prepare_cached(sql)?.execute([thread_no])?;
    connection.prepare_cached("DELETE FROM documents WHERE kind = 0 AND owner_no = ?1")?.execute([thread_no])?;
    connection.prepare_cached("DELETE FROM threads WHERE no = ?1")?.execute([thread_no])?;
    residue::record(connection, Residue::Pages)
}

pub(crate) fn send_wake_up(shared: &Shared, scope: &Scope, owner: &Owner, thread: ThreadId, change: Option<u64>) {
    if shared.wake_ups.receiver_count() > 0 {
        let wake_up = WakeUp::Thread { tenant: scope.tenant_id().clone(), owner: owner.clone(), thread, change };
        // Sending fails only without subscribers.
        drop(shared.wake_ups.send(wake_up));
    }
}

pub(crate) fn list(shared: &Shared, scope: &Scope, query: &ThreadQuery, now: Timestamp) -> error::Result<ThreadPage> {
    query.check()?;
    shared.read(|connection| {
        let numbers = owners::resolve_scope(shared, connection, scope)?;
        let owner_no = match &query.owner {
            Some(owner) if scope.access(owner) == Access::None => {
                return Ok(ThreadPage { threads: vec![], next: None });
            }
            Some(owner) => {
                Some(owners::find(shared, connection, scope.tenant_id().as_str(), owners::stored_name(owner))?)
            }
            None => numbers.user_no,
        };
        read_page(connection, numbers, owner_no, query, now)
    })
}

fn read_page(
    connection: &Connection,
    numbers: ScopeNumbers,
    owner_no: Option<i64>,
    query: &ThreadQuery,
    now: Timestamp,
) -> error::Result<ThreadPage> {
    let (column, after) = match query.order {
        ThreadOrder::Created => ("no", parse_cursor(query, 'c')?.unwrap_or(0)),
        ThreadOrder::Recent => ("stamp", parse_cursor(query, 'r')?.unwrap_or(i64::MAX)),
    };
    let (comparison, direction) = match query.order {
        ThreadOrder::Created => (">", "ASC"),
        ThreadOrder::Recent => ("<", "DESC"),
    };
    let filter = if owner_no.is_some() { "t.owner_no" } else { "t.tenant_no" };
    let columns = full_thread_columns!();
    let limit = i64::try_from(query.limit + 1).unwrap_or(i64::MAX);
    let key = owner_no.unwrap_or(numbers.tenant_no);
    let mut values: Vec<Value> = [key, now.as_micros(), after, limit].map(Value::Integer).into();
    let mut passes = String::new();
    if !query.metadata.is_empty() {
        let selection = metadata::selection(&query.metadata, numbers, owner_no, values.len() + 1);
        passes = format!("AND t.no IN ({})", selection.sql);
        values.extend(selection.values);
    }
    let sql = format!(
        "SELECT {columns}, t.{column} FROM threads t JOIN owners o ON o.no = t.owner_no WHERE {filter} = ?1 {passes} \
         AND t.restoring = 0 AND (t.expires_at IS NULL OR t.expires_at > ?2) AND t.{column} {comparison} ?3 \
         ORDER BY t.{column} {direction} LIMIT ?4"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let (mut threads, mut last) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        if threads.len() == query.limit {
            let prefix = if query.order == ThreadOrder::Created { 'c' } else { 'r' };
            return Ok(ThreadPage { threads, next: Some(format!("{prefix}{last}")) });
        }
        threads.push(row::thread(row)?);
        last = row.get::<_, i64>(11)?;
    }
    Ok(ThreadPage { threads, next: None })
}

fn parse_cursor(query: &ThreadQuery, prefix: char) -> error::Result<Option<i64>> {
    let Some(cursor) = &query.after else { return Ok(None) };
    let number = cursor.strip_prefix(prefix).and_then(|number| number.parse().ok());
    Ok(Some(number.ok_or_else(|| StoreError::invalid("cursor", "not from this list"))?))
}
