use threadkeep_core::{
    Bound, CorruptRow, Kind, Message, MessagePage, MessageQuery, MessageRef, OrderBy, PageBuilder, RangeEnd, Role,
    Scope, StoreError, ThreadId, Timestamp, limits,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::error::Result;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, message_columns, signed};

pub(crate) async fn list(
    shared: &Shared,
    scope: &Scope,
    thread: ThreadId,
    query: &MessageQuery,
    now: Timestamp,
) -> Result<MessagePage> {
    query.check()?;
    let call = PageCall::of(scope, query, now);
    let rows = shared.call(&PageCall::sql("$3"), &call.values((&thread.0, Type::UUID))).await?;
    let page = page(&rows, query)?;
    Ok(page.ok_or(StoreError::NotFound(Kind::Thread))?)
}

/// The parameters of `threadkeep.list_messages` except the thread.
pub(crate) struct PageCall {
    caller: Caller,
    now: i64,
    positions: (i64, i64),
    times: (i64, i64),
    roles: i32,
    by_time: bool,
    newest: bool,
    limit: i32,
    bytes: i64,
}

impl PageCall {
    pub(crate) fn of(scope: &Scope, query: &MessageQuery, now: Timestamp) -> Self {
        let (mut first, mut last) = (0, i64::MAX);
        let (mut after, mut before) = (i64::MIN, i64::MAX);
        match query.after {
            Some(Bound::Seq(seq)) => first = signed(seq).saturating_add(1),
            Some(Bound::Time(at)) => after = at.as_micros(),
            None => {}
        }
        match query.before {
            Some(Bound::Seq(seq)) => last = signed(seq).saturating_sub(1),
            Some(Bound::Time(at)) => before = at.as_micros(),
            None => {}
        }
        Self {
            caller: Caller::of(scope),
            now: now.as_micros(),
            positions: (first, last),
            times: (after, before),
            roles: i32::from(Role::stored_mask(&query.roles)),
            by_time: query.order == OrderBy::Time,
            newest: query.take == RangeEnd::Newest,
            limit: i32::try_from(query.limit + 1).unwrap_or(i32::MAX),
            bytes: signed(limits::PAGE_BYTES as u64),
        }
    }

    /// Returns the statement. `thread` is an SQL expression for the thread's id, which may use `$3` and parameters after `$13`.
    pub(crate) fn sql(thread: &str) -> String {
        format!(
            "SELECT thread_seq, change, first_seq, thread_tag, seq, id, external_id, revision, created_at, body \
             FROM threadkeep.list_messages($1, $2, {thread}, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
        )
    }

    pub(crate) fn values<'a>(&'a self, thread: Parameter<'a>) -> [Parameter<'a>; 13] {
        [
            (&self.caller.tenant, Type::TEXT),
            (&self.caller.name, Type::TEXT),
            thread,
            (&self.now, Type::INT8),
            (&self.positions.0, Type::INT8),
            (&self.positions.1, Type::INT8),
            (&self.times.0, Type::INT8),
            (&self.times.1, Type::INT8),
            (&self.roles, Type::INT4),
            (&self.by_time, Type::BOOL),
            (&self.newest, Type::BOOL),
            (&self.limit, Type::INT4),
            (&self.bytes, Type::INT8),
        ]
    }
}

/// Reads the rows of a [`PageCall`]; `None` if there is no thread.
pub(crate) fn page(rows: &[Row], query: &MessageQuery) -> Result<Option<MessagePage>> {
    let Some(first) = rows.first() else { return Ok(None) };
    let mut page = PageBuilder::new(query, row::positions(first, 0)?);
    // Without messages there is one row, which only describes the thread.
    let is_empty = get::<Option<i64>>(first, 4)?.is_none();
    for row in rows.iter().filter(|_| !is_empty) {
        // The server omits the text of messages that exceed the size limit.
        let bytes = get::<Option<&str>>(row, 9)?.map_or(0, str::len);
        if !page.push(bytes, || row::message(row, 4))? {
            break;
        }
    }
    Ok(Some(page.finish()))
}

pub(crate) async fn find(
    shared: &Shared,
    scope: &Scope,
    thread: ThreadId,
    messages: &[MessageRef],
    now: Timestamp,
) -> Result<Vec<Message>> {
    limits::check_at_most("message references", messages.len(), limits::PAGE)?;
    let caller = Caller::of(scope);
    let seqs: Vec<i64> = messages.iter().filter_map(seq).collect();
    let ids: Vec<Uuid> = messages.iter().filter_map(id).collect();
    let external_ids: Vec<&str> = messages.iter().filter_map(external_id).collect();
    let thread_sql = "SELECT t.no FROM threadkeep.threads t WHERE t.tenant = $1 AND t.id = $2 AND NOT t.restoring \
                      AND (t.expires_at IS NULL OR t.expires_at > $3)";
    let sql = concat!(
        "WITH t AS MATERIALIZED (SELECT no, first_seq FROM threadkeep.threads t WHERE tenant = $1 AND id = $2 ",
        "AND NOT restoring AND (expires_at IS NULL OR expires_at > $3)) SELECT ",
        message_columns!(),
        " FROM t CROSS JOIN unnest($4::bigint[]) AS n (seq) JOIN threadkeep.messages m ON m.thread_no = t.no ",
        "AND m.seq = n.seq WHERE m.seq >= t.first_seq AND m.body IS NOT NULL UNION SELECT ",
        message_columns!(),
        " FROM t CROSS JOIN unnest($5::uuid[]) AS n (id) JOIN threadkeep.messages m ON m.thread_no = t.no ",
        "AND m.id = n.id WHERE m.seq >= t.first_seq AND m.body IS NOT NULL UNION SELECT ",
        message_columns!(),
        " FROM t CROSS JOIN unnest($6::text[]) AS n (external_id) JOIN threadkeep.messages m ON m.thread_no = t.no ",
        "AND m.external_id = n.external_id WHERE m.seq >= t.first_seq AND m.body IS NOT NULL ORDER BY 1"
    );
    let values: [Parameter<'_>; 6] = [
        (&caller.tenant, Type::TEXT),
        (&thread.0, Type::UUID),
        (&now.as_micros(), Type::INT8),
        (&seqs, Type::INT8_ARRAY),
        (&ids, Type::UUID_ARRAY),
        (&external_ids, Type::TEXT_ARRAY),
    ];
    let answers = shared.read(&caller, &[(thread_sql, &values[..3]), (sql, &values)]).await?;
    if answers[0].is_empty() {
        return Err(StoreError::NotFound(Kind::Thread).into());
    }
    let messages = answers[1].iter().map(|row| row::message(row, 0)).collect::<Result<Vec<_>, CorruptRow>>();
    Ok(messages.map_err(StoreError::from)?)
}

fn seq(reference: &MessageRef) -> Option<i64> {
    match reference {
        MessageRef::Seq(seq) => Some(signed(*seq)),
        _ => None,
    }
}

fn id(reference: &MessageRef) -> Option<Uuid> {
    match reference {
        MessageRef::Id(id) => Some(id.0),
        _ => None,
    }
}

fn external_id(reference: &MessageRef) -> Option<&str> {
    match reference {
        // PostgreSQL rejects text with a NUL, and no message has such an id.
        MessageRef::External(name) if !name.contains('\0') => Some(name),
        _ => None,
    }
}
