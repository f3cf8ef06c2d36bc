use rusqlite::{Connection, params, params_from_iter, types::Value};
use threadkeep_core::{
    Bound, Message, MessagePage, MessageQuery, MessageRef, OrderBy, PageBuilder, Positions, RangeEnd, Role, Scope,
    StoreError, ThreadId, Timestamp, limits,
};

use crate::connection::Shared;
use crate::error::Result;
use crate::row::{self, ThreadRow, message_columns};
use crate::{threads, view};

pub(crate) fn list(
    shared: &Shared,
    scope: &Scope,
    thread: ThreadId,
    query: &MessageQuery,
    now: Timestamp,
) -> Result<MessagePage> {
    query.check()?;
    view::in_read_transaction(shared, scope, |connection| {
        let (row, _) = threads::get_row(shared, connection, scope, thread, now)?;
        read_page(connection, row.number, row.positions, query)
    })
}

/// Reads a page of messages of a thread whose current positions are `positions`.
pub(crate) fn read_page(
    connection: &Connection,
    thread_no: i64,
    positions: Positions,
    query: &MessageQuery,
) -> Result<MessagePage> {
    let (first, last) = key_range(thread_no, positions, query);
    let mut sql =
        concat!("SELECT ", message_columns!(), " FROM messages WHERE position BETWEEN ?1 AND ?2 AND body IS NOT NULL")
            .to_owned();
    let (before, after) = (time_bound(query.before), time_bound(query.after));
    if before.is_some() || after.is_some() {
        sql.push_str(" AND created_at < ?4 AND created_at > ?5");
    }
    if !query.roles.is_empty() {
        sql.push_str(" AND (role IS NULL OR (1 << role) & ?6)");
    }
    sql.push_str(match (query.order, query.take) {
        (OrderBy::Seq, RangeEnd::Newest) => " ORDER BY position DESC LIMIT ?3",
        (OrderBy::Seq, RangeEnd::Oldest) => " ORDER BY position LIMIT ?3",
        (OrderBy::Time, RangeEnd::Newest) => " ORDER BY created_at DESC, position DESC LIMIT ?3",
        (OrderBy::Time, RangeEnd::Oldest) => " ORDER BY created_at, position LIMIT ?3",
    });
    let roles = i64::from(Role::stored_mask(&query.roles));
    let limit = i64::try_from(query.limit + 1).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut arguments = vec![Value::from(first), Value::from(last), Value::from(limit)];
    if statement.parameter_count() > 3 {
        arguments.push(before.map_or(i64::MAX, Timestamp::as_micros).into());
        arguments.push(after.map_or(i64::MIN, Timestamp::as_micros).into());
    }
    if statement.parameter_count() > 5 {
        arguments.push(roles.into());
    }
    let rows = statement.query(params_from_iter(arguments))?;
    collect_page(rows, positions, query)
}

/// Returns the first and last key of the query's range. Ignores time bounds.
fn key_range(thread_no: i64, positions: Positions, query: &MessageQuery) -> (i64, i64) {
    let mut first = positions.first_seq;
    let mut last = positions.seq;
    if let Some(Bound::Seq(seq)) = query.after {
        first = first.max(seq.saturating_add(1));
    }
    if let Some(Bound::Seq(seq)) = query.before {
        last = last.min(seq.saturating_sub(1));
    }
    if first > last {
        // An empty range. Positions beyond 32 bits would otherwise become keys of the next thread.
        return (1, 0);
    }
    (row::key(thread_no, first), row::key(thread_no, last))
}

fn time_bound(bound: Option<Bound>) -> Option<Timestamp> {
    match bound {
        Some(Bound::Time(at)) => Some(at),
        _ => None,
    }
}

fn collect_page(mut rows: rusqlite::Rows<'_>, positions: Positions, query: &MessageQuery) -> Result<MessagePage> {
    let mut page = PageBuilder::new(query, positions);
    while let Some(row) = rows.next()? {
        let bytes = row.get_ref(5)?.as_bytes().map_or(0, <[u8]>::len);
        if !page.push(bytes, || row::message(row))? {
            break;
        }
    }
    Ok(page.finish())
}

pub(crate) fn find(
    shared: &Shared,
    scope: &Scope,
    thread: ThreadId,
    messages: &[MessageRef],
    now: Timestamp,
) -> Result<Vec<Message>> {
    limits::check_at_most("message references", messages.len(), limits::PAGE)?;
    view::in_read_transaction(shared, scope, |connection| {
        let (row, _) = threads::get_row(shared, connection, scope, thread, now)?;
        let mut found = Vec::with_capacity(messages.len());
        for reference in messages {
            if let Some(message) = find_message(connection, &row, reference)? {
                found.push(message);
            }
        }
        found.sort_by_key(|message: &Message| message.seq);
        found.dedup_by_key(|message| message.seq);
        Ok(found)
    })
}

fn find_message(connection: &Connection, thread: &ThreadRow, reference: &MessageRef) -> Result<Option<Message>> {
    let mut statement = connection.prepare_cached(match reference {
        MessageRef::Seq(_) => {
            concat!("SELECT ", message_columns!(), " FROM messages WHERE position = ?1 AND body IS NOT NULL")
        }
        MessageRef::Id(_) => concat!(
            "SELECT ",
            message_columns!(),
            " FROM messages WHERE position >> 32 = ?1 AND id = ?2 AND body IS NOT NULL"
        ),
        MessageRef::External(_) => concat!(
            "SELECT ",
            message_columns!(),
            " FROM messages WHERE position >> 32 = ?1 AND external_id = ?2 AND external_id IS NOT NULL"
        ),
    })?;
    let mut rows = match reference {
        MessageRef::Seq(seq) if *seq > thread.positions.seq => return Ok(None),
        MessageRef::Seq(seq) => statement.query([row::key(thread.number, *seq)])?,
        MessageRef::Id(id) => statement.query(params![thread.number, id.0.as_bytes()])?,
        MessageRef::External(external_id) => statement.query(params![thread.number, external_id])?,
    };
    let Some(row) = rows.next()? else { return Ok(None) };
    if row::position_of_key(row.get(0)?) < thread.positions.first_seq {
        return Ok(None);
    }
    Ok(Some(row::message(row).map_err(StoreError::from)?))
}
