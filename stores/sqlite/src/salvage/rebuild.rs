//! Rebuilds a thread whose row is lost, from indexes and from its messages and commits.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, ToSql, types::FromSql};
use threadkeep_core::{DumpedThread, Owner, Positions, TenantId, ThreadKey, Timestamp, codec};

use super::LocatedThread;
use crate::error::{Result, SqliteError};
use crate::row::{self, ThreadRow};

/// Rebuilds a thread; `None` if its owner or its times cannot be determined.
pub(super) fn thread(
    connection: &Connection,
    located: LocatedThread,
    owners: &HashMap<i64, (TenantId, Owner)>,
) -> Result<Option<(ThreadRow, DumpedThread)>> {
    let thread_no = located.number;
    let sql = "SELECT owner_no FROM threads INDEXED BY threads_by_owner WHERE no = ?1";
    let owner_no = match located.owner_no {
        Some(owner_no) => Some(owner_no),
        None => find::<i64>(connection, sql, &[&thread_no])?,
    };
    let Some(owner_no) = owner_no else { return Ok(None) };
    let Some((_, owner)) = owners.get(&owner_no) else { return Ok(None) };
    let positions = positions(connection, thread_no)?;
    let Some((created_at, updated_at)) = find_times(connection, thread_no)? else { return Ok(None) };
    let sql = "SELECT key FROM threads INDEXED BY threads_by_key WHERE owner_no = ?1 AND key IS NOT NULL AND no = ?2";
    let key = find::<String>(connection, sql, &[&owner_no, &thread_no])?.and_then(|key| ThreadKey::new(key).ok());
    let sql = "SELECT expires_at FROM threads INDEXED BY threads_by_expiry WHERE expires_at IS NOT NULL AND no = ?1";
    let expires_at = find::<i64>(connection, sql, &[&thread_no])?.map(row::timestamp).transpose()?;
    let thread = DumpedThread {
        owner: owner.clone(),
        key,
        body: codec::encode_thread(&codec::ThreadAttributes::default()),
        positions,
        created_at,
        updated_at,
        expires_at,
    };
    let row = ThreadRow {
        number: thread_no,
        owner_no,
        tenant_no: located.tenant_no,
        positions,
        log_from: 0,
        message_count: 0,
    };
    Ok(Some((row, thread)))
}

/// Determines the positions from the readable messages and commits and the last trim.
fn positions(connection: &Connection, thread_no: i64) -> Result<Positions> {
    let (first_key, last_key) = (row::key(thread_no, 0), row::last_key(thread_no));
    let range: [&dyn ToSql; 2] = [&first_key, &last_key];
    let find_position =
        |sql: &str| Ok::<_, SqliteError>(find::<i64>(connection, sql, &range)?.map(row::position_of_key));
    let messages = "FROM messages WHERE position BETWEEN ?1 AND ?2";
    let first = find_position(&format!("SELECT position {messages} ORDER BY position LIMIT 1"))?;
    let last = find_position(&format!("SELECT position {messages} ORDER BY position DESC LIMIT 1"))?;
    let commits = "FROM commits WHERE position BETWEEN ?1 AND ?2 ORDER BY position DESC LIMIT 1";
    let change = find_position(&format!("SELECT position {commits}"))?.unwrap_or(0);
    // The last commit contains the last position, even if the message there cannot be read.
    let sql = format!("SELECT first_seq + count - 1 {commits}");
    let committed = find::<i64>(connection, &sql, &range)?.unwrap_or(0).unsigned_abs();
    let below = find::<i64>(connection, "SELECT below FROM leftovers WHERE thread_no = ?1", &[&thread_no])?;
    let first_seq = first.unwrap_or(1).max(below.unwrap_or(1).unsigned_abs()).max(1);
    let seq = last.unwrap_or(0).max(committed).max(first_seq - 1);
    // The tag is unknown, because the last readable commit need not be the thread's last change.
    Ok(Positions { seq, change: change.max(1), first_seq, tag: None })
}

/// Determines the times of creation and of the last change from the commits, otherwise from the messages.
fn find_times(connection: &Connection, thread_no: i64) -> Result<Option<(Timestamp, Timestamp)>> {
    let (first_key, last_key) = (row::key(thread_no, 0), row::last_key(thread_no));
    for (table, column) in [("commits", "at"), ("messages", "created_at")] {
        let find_time = |order: &str| {
            let sql = format!(
                "SELECT {column} FROM {table} WHERE position BETWEEN ?1 AND ?2 ORDER BY position {order} LIMIT 1"
            );
            find::<i64>(connection, &sql, &[&first_key, &last_key])
        };
        if let (Some(first), Some(last)) = (find_time("ASC")?, find_time("DESC")?)
            && let (Ok(first), Ok(last)) = (row::timestamp(first), row::timestamp(last))
        {
            return Ok(Some((first, last.max(first))));
        }
    }
    Ok(None)
}

/// Returns the value that a statement selects; `None` if there is none or it cannot be read.
fn find<T: FromSql>(connection: &Connection, sql: &str, arguments: &[&dyn ToSql]) -> Result<Option<T>> {
    let read = || -> Result<Option<T>> {
        let mut statement = connection.prepare_cached(sql)?;
        Ok(statement.query_row(arguments, |row| row.get::<_, Option<T>>(0)).optional()?.flatten())
    };
    match read() {
        Err(error) if error.is_damage() => Ok(None),
        read => read,
    }
}
