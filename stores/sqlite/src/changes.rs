use rusqlite::{Connection, params};
use threadkeep_core::{
    Change, ChangePage, ChangeTag, ChangedThread, ChangedThreads, ChangesWithMessages, Effect, IDEMPOTENCY_WINDOW_MS,
    JsonText, Scope, StoreError, TaggedNumber, ThreadId, Timestamp, UserCursor, limits,
};

use crate::connection::Shared;
use crate::error::Result;
use crate::row::{self, ThreadRow};
use crate::{messages, owners, threads, view};

pub(crate) fn list(
    shared: &Shared,
    scope: &Scope,
    thread: ThreadId,
    after: TaggedNumber,
    limit: usize,
    now: Timestamp,
) -> Result<ChangePage> {
    limits::check_page(limit)?;
    view::in_read_transaction(shared, scope, |connection| {
        let (thread, _) = threads::get_row(shared, connection, scope, thread, now)?;
        read_page(connection, &thread, after, limit)
    })
}

pub(crate) fn list_with_messages(
    shared: &Shared,
    scope: &Scope,
    thread: ThreadId,
    after: TaggedNumber,
    limit: usize,
    now: Timestamp,
) -> Result<ChangesWithMessages> {
    limits::check_page(limit)?;
    view::in_read_transaction(shared, scope, |connection| {
        let (thread, _) = threads::get_row(shared, connection, scope, thread, now)?;
        let page = read_page(connection, &thread, after, limit)?;
        let query = ChangesWithMessages::query(&page);
        let messages = query.map(|query| messages::read_page(connection, thread.number, thread.positions, &query));
        Ok(ChangesWithMessages::new(page, messages.transpose()?))
    })
}

fn read_page(connection: &Connection, thread: &ThreadRow, after: TaggedNumber, limit: usize) -> Result<ChangePage> {
    let positions = thread.positions;
    if after.number > positions.change || after.number < thread.log_from {
        return Ok(ChangePage::Reset { positions });
    }
    // The result includes the entry of `after`. Its tag shows whether it is the change that the caller has read.
    let sql = "SELECT position, at, first_seq, count, effects, key FROM commits \
               WHERE position >= ?1 AND position <= ?2 ORDER BY position LIMIT ?3 + 1";
    let mut statement = connection.prepare_cached(sql)?;
    let bound = i64::try_from(limit).unwrap_or(i64::MAX - 1);
    let mut rows =
        statement.query(params![row::key(thread.number, after.number), row::last_key(thread.number), bound])?;
    let (mut changes, mut logged) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        let change = row::position_of_key(row.get(0)?);
        let tag = ChangeTag::of_stored_key(row.get_ref(5)?.as_blob().map_err(|_| invalid_key())?);
        if change == after.number {
            logged = Some(tag);
            continue;
        }
        if changes.len() == limit {
            break;
        }
        let effects: Option<String> = row.get(4)?;
        changes.push(Change {
            change,
            tag: Some(tag),
            at: row::timestamp(row.get(1)?)?,
            effects: all_effects(row::unsigned(row, 2)?, row::unsigned(row, 3)?, effects)?,
        });
    }
    if !positions.can_continue_from(after, logged) {
        return Ok(ChangePage::Reset { positions });
    }
    Ok(ChangePage::Changes { changes, positions })
}

fn invalid_key() -> StoreError {
    StoreError::corrupt("idempotency key", "not a blob")
}

fn all_effects(first_seq: u64, count: u64, others: Option<String>) -> Result<Vec<Effect>> {
    let mut effects = Vec::new();
    if count > 0 {
        effects.push(Effect::Appended { first_seq, count });
    }
    effects.extend(decode_effects(others)?);
    Ok(effects)
}

/// Decodes the effects of a commit, except [`Effect::Appended`].
pub(crate) fn decode_effects(effects: Option<String>) -> Result<Vec<Effect>> {
    let Some(effects) = effects else { return Ok(Vec::new()) };
    let text = JsonText::new(effects).map_err(|_| StoreError::corrupt("change log", "not JSON"))?;
    Ok(text.read()?)
}

/// Selects the oldest stamp that a cursor may have: deletions through this stamp have been removed from the log.
const OLDEST_STAMP: &str = "SELECT coalesce((SELECT value FROM marks WHERE name = 'forgotten_stamp'), 0)";

pub(crate) fn list_threads(
    shared: &Shared,
    scope: &Scope,
    after: Option<&UserCursor>,
    limit: usize,
    now: Timestamp,
) -> Result<ChangedThreads> {
    limits::check_page(limit)?;
    shared.read(|connection| {
        let transaction = connection.unchecked_transaction()?;
        let current_stamp = threads::next_stamp(connection)? - 1;
        let oldest: i64 = connection.prepare_cached(OLDEST_STAMP)?.query_row([], |row| row.get(0))?;
        let start = after.map(|cursor| parse_cursor(shared, cursor));
        let start = match start {
            Some(Some(stamp)) if (oldest..=current_stamp).contains(&stamp) => stamp,
            other => {
                return Ok(ChangedThreads {
                    threads: Vec::new(),
                    cursor: create_cursor(shared, current_stamp),
                    more: false,
                    reset: other.is_some(),
                });
            }
        };
        let numbers = owners::resolve_scope(shared, connection, scope)?;
        let sql = "SELECT t.stamp, t.id, o.user, t.seq, t.change, t.first_seq, 0 \
                   FROM threads t JOIN owners o ON o.no = t.owner_no \
                   WHERE t.stamp > ?1 AND t.tenant_no = ?2 AND (?3 IS NULL OR t.owner_no = ?3) AND t.restoring = 0 \
                   AND (t.expires_at IS NULL OR t.expires_at > ?5) \
                   UNION ALL \
                   SELECT d.stamp, d.id, o.user, 0, 0, 0, 1 FROM deleted_threads d JOIN owners o ON o.no = d.owner_no \
                   WHERE d.stamp > ?1 AND d.tenant_no = ?2 AND (?3 IS NULL OR d.owner_no = ?3) \
                   ORDER BY 1 LIMIT ?4";
        let mut statement = connection.prepare_cached(sql)?;
        let bound = i64::try_from(limit + 1).unwrap_or(i64::MAX);
        let arguments = params![start, numbers.tenant_no, numbers.user_no, bound, now.as_micros()];
        let mut rows = statement.query(arguments)?;
        let (mut changed, mut last, mut more) = (Vec::new(), current_stamp, false);
        while let Some(row) = rows.next()? {
            if changed.len() == limit {
                more = true;
                break;
            }
            last = row.get(0)?;
            let positions = row::positions(row, 3)?;
            let is_deleted: bool = row.get(6)?;
            changed.push(ChangedThread {
                id: ThreadId(row::uuid(row, 1)?),
                owner: owners::parse_owner(row.get(2)?)?,
                positions: (!is_deleted).then_some(positions),
            });
        }
        drop(rows);
        drop(statement);
        transaction.commit()?;
        let reached = if more { last } else { current_stamp };
        Ok(ChangedThreads { threads: changed, cursor: create_cursor(shared, reached), more, reset: false })
    })
}

fn create_cursor(shared: &Shared, stamp: i64) -> UserCursor {
    UserCursor(format!("{:x}-{stamp}", shared.incarnation))
}

/// Returns the stamp in a cursor; `None` if the cursor is from another copy of the store.
fn parse_cursor(shared: &Shared, cursor: &UserCursor) -> Option<i64> {
    let (incarnation, stamp) = cursor.0.split_once('-')?;
    (incarnation == format!("{:x}", shared.incarnation)).then_some(())?;
    stamp.parse().ok()
}

/// Returns the start of the idempotency window in microseconds since 1970. Older commits and deletions are removed from the log.
pub(crate) fn window_start(now: Timestamp) -> i64 {
    now.plus_ms(-IDEMPOTENCY_WINDOW_MS).as_micros()
}
