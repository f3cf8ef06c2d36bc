//! A thread whose own row is lost, from what else the file says of it.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, ToSql, types::FromSql};
use threadkeep_core::{DumpedThread, Owner, Positions, TenantId, ThreadKey, Timestamp, codec};

use super::Found;
use crate::error::{Result, SqliteError};
use crate::row::{self, ThreadRow};

/// Puts a thread together; `None` where its owner, or any instant of it, cannot be told.
pub(super) fn thread(
    connection: &Connection,
    found: Found,
    owners: &HashMap<i64, (TenantId, Owner)>,
) -> Result<Option<(ThreadRow, DumpedThread)>> {
    let no = found.no;
    let sql = "SELECT owner_no FROM threads INDEXED BY threads_by_owner WHERE no = ?1";
    let owner_no = match found.owner_no {
        Some(owner_no) => Some(owner_no),
        None => find::<i64>(connection, sql, &[&no])?,
    };
    let Some(owner_no) = owner_no else { return Ok(None) };
    let Some((_, owner)) = owners.get(&owner_no) else { return Ok(None) };
    let positions = positions(connection, no)?;
    let Some((created_at, updated_at)) = instants(connection, no)? else { return Ok(None) };
    let sql = "SELECT key FROM threads INDEXED BY threads_by_key WHERE owner_no = ?1 AND key IS NOT NULL AND no = ?2";
    let key = find::<String>(connection, sql, &[&owner_no, &no])?.and_then(|key| ThreadKey::new(key).ok());
    let sql = "SELECT expires_at FROM threads INDEXED BY threads_by_expiry WHERE expires_at IS NOT NULL AND no = ?1";
    let expires_at = find::<i64>(connection, sql, &[&no])?.map(row::timestamp).transpose()?;
    let thread = DumpedThread {
        owner: owner.clone(),
        key,
        body: codec::encode_thread(&codec::ThreadAttributes::default()),
        positions,
        created_at,
        updated_at,
        expires_at,
    };
    let row = ThreadRow { no, owner_no, tenant_no: found.tenant_no, positions, log_from: 0, message_count: 0 };
    Ok(Some((row, thread)))
}

/// From the first to the last message that can be read, without what was trimmed.
fn positions(connection: &Connection, no: i64) -> Result<Positions> {
    let (first_key, last_key) = (row::key(no, 0), row::last_key(no));
    let range: [&dyn ToSql; 2] = [&first_key, &last_key];
    let one = |sql: &str| Ok::<_, SqliteError>(find::<i64>(connection, sql, &range)?.map(row::position));
    let messages = "FROM messages WHERE position BETWEEN ?1 AND ?2";
    let first = one(&format!("SELECT position {messages} ORDER BY position LIMIT 1"))?;
    let last = one(&format!("SELECT position {messages} ORDER BY position DESC LIMIT 1"))?;
    let commits = "FROM commits WHERE position BETWEEN ?1 AND ?2 ORDER BY position DESC LIMIT 1";
    let change = one(&format!("SELECT position {commits}"))?.unwrap_or(0);
    // The last commit says how far the messages came, whether or not they can be read.
    let sql = format!("SELECT first_seq + count - 1 {commits}");
    let said = find::<i64>(connection, &sql, &range)?.unwrap_or(0).unsigned_abs();
    let below = find::<i64>(connection, "SELECT below FROM leftovers WHERE thread_no = ?1", &[&no])?;
    let first_seq = first.unwrap_or(1).max(below.unwrap_or(1).unsigned_abs()).max(1);
    let seq = last.unwrap_or(0).max(said).max(first_seq - 1);
    // The log's last entry may not be that of the thread's last change.
    Ok(Positions { seq, change: change.max(1), first_seq, tag: None })
}

/// When it began and when it last changed, by its commits, else by its messages.
fn instants(connection: &Connection, no: i64) -> Result<Option<(Timestamp, Timestamp)>> {
    let (first_key, last_key) = (row::key(no, 0), row::last_key(no));
    for (table, column) in [("commits", "at"), ("messages", "created_at")] {
        let one = |order: &str| {
            let sql = format!(
                "SELECT {column} FROM {table} WHERE position BETWEEN ?1 AND ?2 ORDER BY position {order} LIMIT 1"
            );
            find::<i64>(connection, &sql, &[&first_key, &last_key])
        };
        if let (Some(first), Some(last)) = (one("ASC")?, one("DESC")?)
            && let (Ok(first), Ok(last)) = (row::timestamp(first), row::timestamp(last))
        {
            return Ok(Some((first, last.max(first))));
        }
    }
    Ok(None)
}

/// The one value that a statement gives; `None` also where it cannot be read.
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
