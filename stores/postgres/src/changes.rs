//! Lists the changes of one thread from its change log, and the changed threads of a scope in the order of
//! transactions.
//!
//! Transactions become visible in a different order than they started, so a number assigned at the start cannot serve
//! as a cursor. A cursor therefore contains a snapshot of PostgreSQL: all changes that are not visible in the snapshot
//! come after the cursor. So no change is missed, however long its transaction took.

use threadkeep_core::{
    Change, ChangePage, ChangedThread, ChangedThreads, Effect, Kind, Scope, StoreError, TaggedNumber, ThreadId,
    Timestamp, UserCursor, limits,
};
use tokio_postgres::Row;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;

use crate::error::Result;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, positions, signed, unsigned};

pub(crate) async fn list(
    shared: &Shared,
    scope: &Scope,
    thread: ThreadId,
    after: TaggedNumber,
    limit: usize,
    now: Timestamp,
) -> Result<ChangePage> {
    limits::check_page(limit)?;
    let caller = Caller::of(scope);
    let sql = "SELECT thread_seq, thread_change, thread_first_seq, thread_tag, log_from, after_tag, \
               change, at, first_seq, count, effects, tag FROM threadkeep.list_changes($1, $2, $3, $4, $5, $6)";
    let values: [Parameter<'_>; 6] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&thread.0, Type::UUID),
        (&now.as_micros(), Type::INT8),
        (&signed(after.number), Type::INT8),
        (&signed(limit as u64), Type::INT8),
    ];
    let rows = shared.call(sql, &values).await?;
    change_page(&rows, 0, after)
}

/// Decodes a page of changes. Each row contains the thread's positions, the number of the last change that was removed
/// from its log, the tag of its change at `after`, and one change.
pub(crate) fn change_page(rows: &[Row], first_column: usize, after: TaggedNumber) -> Result<ChangePage> {
    let column = |number: usize| first_column + number;
    let first = rows.first().ok_or(StoreError::NotFound(Kind::Thread))?;
    let positions = positions(first, column(0))?;
    if after.number < unsigned(first, column(4))? || !positions.can_continue_from(after, row::tag(first, column(5))?) {
        return Ok(ChangePage::Reset { positions });
    }
    // Without changes there is one row, which only describes the thread.
    let is_empty = get::<Option<i64>>(first, column(6))?.is_none();
    let changes = rows.iter().filter(|_| !is_empty).map(|row| change(row, column(6))).collect::<Result<_>>()?;
    Ok(ChangePage::Changes { changes, positions })
}

fn change(row: &Row, first_column: usize) -> Result<Change> {
    let column = |number: usize| first_column + number;
    let (first_seq, count) = (unsigned(row, column(2))?, unsigned(row, column(3))?);
    let mut effects = Vec::new();
    if count > 0 {
        effects.push(Effect::Appended { first_seq, count });
    }
    effects.extend(row::decode_effects(get(row, column(4))?)?);
    let (at, tag) = (row::timestamp(row, column(1))?, row::tag(row, column(5))?);
    Ok(Change { change: unsigned(row, column(0))?, tag, at, effects })
}

/// Selects the server's identity, this transaction's snapshot, the stamp of the newest deletion that a sweep removed,
/// and the stamp offset.
const CURRENT_SNAPSHOT: &str = "SELECT threadkeep.home(), pg_current_snapshot()::text, value, \
                       (SELECT value FROM threadkeep.marks WHERE name = 'stamp_offset') \
                       FROM threadkeep.marks WHERE name = 'forgotten_stamp'";

pub(crate) async fn list_threads(
    shared: &Shared,
    scope: &Scope,
    after: Option<&UserCursor>,
    limit: usize,
    now: Timestamp,
) -> Result<ChangedThreads> {
    limits::check_page(limit)?;
    let caller = Caller::of(scope);
    if let Some(cursor) = after.and_then(Cursor::parse) {
        let user = match scope {
            Scope::Tenant(_) => None,
            Scope::User(_, user) => Some(user.as_str()),
        };
        let sql = changed_sql(user.is_some());
        let values: [Parameter<'_>; 5] = [
            (&caller.tenant, Type::TEXT),
            (&cursor.snapshot, Type::TEXT),
            (&now.as_micros(), Type::INT8),
            (&signed(limit as u64 + 1), Type::INT8),
            (&user, Type::TEXT),
        ];
        let values = &values[..if user.is_some() { 5 } else { 4 }];
        let validity_sql = "SELECT threadkeep.is_before(value, $1::text::pg_snapshot) AND \
                       pg_snapshot_xmax($1::text::pg_snapshot) <= pg_snapshot_xmax(pg_current_snapshot()) \
                       FROM threadkeep.marks WHERE name = 'forgotten_stamp'";
        let answers = shared
            .read(&caller, &[(CURRENT_SNAPSHOT, &[]), (validity_sql, &[values[1].clone()]), (&sql, values)])
            .await;
        match answers {
            Ok(answers) => {
                let current = CurrentSnapshot::read(&answers[0])?;
                if current.server_identity == cursor.server_identity
                    && answers[1].first().is_some_and(|row| get(row, 0).unwrap_or(false))
                {
                    return page(&answers[2], &current, limit);
                }
            }
            // The digits are not a snapshot, so the cursor is not from this store.
            Err(error) if error.code() == Some(&SqlState::INVALID_TEXT_REPRESENTATION) => {}
            Err(error) => return Err(error),
        }
    }
    let answers = shared.read(&caller, &[(CURRENT_SNAPSHOT, &[])]).await?;
    let cursor = CurrentSnapshot::read(&answers[0])?.cursor();
    Ok(ChangedThreads { threads: Vec::new(), cursor, more: false, reset: after.is_some() })
}

/// Returns the statement that lists changed threads. It has a condition on the owner only if needed, so that an index supports it.
fn changed_sql(has_owner: bool) -> String {
    let (stamp_condition, deletion_condition) =
        if has_owner { ("AND s.owner = $5", "AND d.owner = $5") } else { ("", "") };
    let lowest_stamp = "(SELECT value FROM threadkeep.marks WHERE name = 'stamp_offset') \
                 + pg_snapshot_xmin($2::text::pg_snapshot)::text::bigint";
    format!(
        "SELECT s.stamp, t.id, t.owner, t.seq, t.change, t.first_seq, t.tag, false FROM threadkeep.stamps s \
         JOIN threadkeep.threads t ON t.no = s.thread_no \
         WHERE s.tenant = $1 {stamp_condition} AND s.stamp >= ({lowest_stamp}) AND NOT threadkeep.is_before(s.stamp, $2::text::pg_snapshot) \
         AND NOT t.restoring AND (t.expires_at IS NULL OR t.expires_at > $3) \
         UNION ALL \
         SELECT d.stamp, d.id, d.owner, 0, 0, 0, NULL, true FROM threadkeep.deleted_threads d \
         WHERE d.tenant = $1 {deletion_condition} AND d.stamp >= ({lowest_stamp}) \
         AND NOT threadkeep.is_before(d.stamp, $2::text::pg_snapshot) \
         ORDER BY 1 LIMIT $4"
    )
}

fn page(rows: &[Row], current: &CurrentSnapshot, limit: usize) -> Result<ChangedThreads> {
    let more = rows.len() > limit;
    let mut threads = Vec::with_capacity(rows.len().min(limit));
    let mut last = 0;
    for row in rows.iter().take(limit) {
        last = get(row, 0)?;
        let is_deleted: bool = get(row, 7)?;
        let positions = if is_deleted { None } else { Some(positions(row, 3)?) };
        threads.push(ChangedThread { id: ThreadId(get(row, 1)?), owner: row::owner(get(row, 2)?)?, positions });
    }
    let cursor = if more { current.cursor_through(last) } else { current.cursor() };
    Ok(ChangedThreads { threads, cursor, more, reset: false })
}

struct Cursor {
    /// The identity of the server that issued it.
    server_identity: String,
    snapshot: String,
}

impl Cursor {
    fn parse(cursor: &UserCursor) -> Option<Self> {
        let (server_identity, snapshot) = cursor.0.split_once('.')?;
        let is_plain = snapshot.bytes().all(|byte| byte.is_ascii_digit() || byte == b':' || byte == b',');
        is_plain.then(|| Self { server_identity: server_identity.to_owned(), snapshot: snapshot.to_owned() })
    }
}

/// The state at the time of a read.
struct CurrentSnapshot {
    server_identity: String,
    /// `xmin:xmax:xip,…`: transactions below `xmin` are visible, those from `xmax` on are not; of those in between, all
    /// are visible except the listed `xip`.
    snapshot: String,
    stamp_offset: i64,
}

impl CurrentSnapshot {
    fn read(rows: &[Row]) -> Result<Self> {
        let row = rows.first().ok_or_else(|| StoreError::corrupt("marks", "missing"))?;
        Ok(Self { server_identity: get(row, 0)?, snapshot: get(row, 1)?, stamp_offset: get(row, 3)? })
    }

    fn cursor(&self) -> UserCursor {
        UserCursor(format!("{}.{}", self.server_identity, self.snapshot))
    }

    /// Returns a cursor whose snapshot is reduced to the transactions up to a stamp.
    fn cursor_through(&self, stamp: i64) -> UserCursor {
        let end = (stamp - self.stamp_offset).unsigned_abs() + 1;
        let mut parts = self.snapshot.split(':');
        let (first, _, running) = (parts.next().unwrap_or(""), parts.next(), parts.next().unwrap_or(""));
        let first = first.parse::<u64>().map_or(end, |first| first.min(end));
        let running: Vec<&str> = running.split(',').filter(|id| id.parse::<u64>().is_ok_and(|id| id < end)).collect();
        UserCursor(format!("{}.{first}:{end}:{}", self.server_identity, running.join(",")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_through_reduces_the_snapshot() {
        let current = |snapshot: &str| CurrentSnapshot {
            server_identity: "h".to_owned(),
            snapshot: snapshot.to_owned(),
            stamp_offset: 10,
        };
        assert_eq!(current("100:120:100,105,117").cursor_through(120).0, "h.100:111:100,105");
        assert_eq!(current("100:120:").cursor_through(109).0, "h.100:100:");
    }
}
