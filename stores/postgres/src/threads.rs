use std::sync::Arc;

use threadkeep_core::{
    Access, Conflict, IDEMPOTENCY_WINDOW_MS, Kind, OpenOutcome, OpenThread, Owner, Result, Scope, StoreError, ThreadId,
    ThreadKey, ThreadOrder, ThreadPage, ThreadQuery, Timestamp, WakeUp, codec,
};
use tokio_postgres::types::Type;

use crate::error;
use crate::metadata;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, owner_name, thread_columns};

/// How long deleted ids and idempotency keys are stored, in microseconds.
pub(crate) const IDEMPOTENCY_WINDOW_MICROS: i64 = IDEMPOTENCY_WINDOW_MS * 1000;

pub(crate) async fn open(shared: &Arc<Shared>, scope: &Scope, open: OpenThread, now: Timestamp) -> Result<OpenOutcome> {
    open.check()?;
    if scope.access(&open.owner) == Access::None {
        return Err(StoreError::NotFound(Kind::Thread));
    }
    let caller = Caller::of(scope);
    let attributes = codec::ThreadAttributes::new(open.title, open.metadata, open.state);
    let sql = "SELECT outcome, (shown).id, (shown).owner, (shown).key, (shown).body, (shown).seq, (shown).change, \
               (shown).first_seq, (shown).tag, (shown).message_count, (shown).created_at, (shown).updated_at, (shown).expires_at \
               FROM threadkeep.open_thread($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    let values: [Parameter<'_>; 10] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&owner_name(&open.owner), Type::TEXT),
        (&open.id.0, Type::UUID),
        (&open.key.as_ref().map(ThreadKey::as_str), Type::TEXT),
        (&codec::encode_thread(&attributes), Type::TEXT),
        (&open.created_at.unwrap_or(now).as_micros(), Type::INT8),
        (&open.expires_at.map(Timestamp::as_micros), Type::INT8),
        (&now.as_micros(), Type::INT8),
        (&IDEMPOTENCY_WINDOW_MICROS, Type::INT8),
    ];
    let rows = shared.write(sql, &values).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("query result", "no row"))?;
    let outcome: String = get(row, 0)?;
    match outcome.as_str() {
        "found" | "created" => {
            let opened = OpenOutcome { thread: row::thread(row, 1)?, created: outcome == "created" };
            if opened.created {
                wake(shared, scope, &opened.thread.owner, opened.thread.id, None);
            }
            Ok(opened)
        }
        "conflict" => Err(Conflict::Thread.into()),
        _ => Err(StoreError::NotFound(Kind::Thread)),
    }
}

pub(crate) async fn delete(shared: &Arc<Shared>, scope: &Scope, thread: ThreadId, now: Timestamp) -> Result<()> {
    let caller = Caller::of(scope);
    let sql = "SELECT outcome, owner FROM threadkeep.delete_thread($1, $2, $3, $4)";
    let values: [Parameter<'_>; 4] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&thread.0, Type::UUID),
        (&now.as_micros(), Type::INT8),
    ];
    let rows = shared.write(sql, &values).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("query result", "no row"))?;
    match get::<&str>(row, 0)? {
        "done" => {
            wake(shared, scope, &row::owner(get(row, 1)?)?, thread, None);
            Ok(())
        }
        "denied" => Err(StoreError::Denied("deleting a shared thread")),
        _ => Err(StoreError::NotFound(Kind::Thread)),
    }
}

/// Wakes this process's subscribers immediately, and other instances when the outbox is sent.
pub(crate) fn wake(shared: &Shared, scope: &Scope, owner: &Owner, thread: ThreadId, change: Option<u64>) {
    let wake_up = WakeUp::Thread { tenant: scope.tenant_id().clone(), owner: owner.clone(), thread, change };
    shared.outbox.put(&wake_up);
    // Sending fails only without subscribers.
    drop(shared.wake_ups.send(wake_up));
}

pub(crate) async fn list(
    shared: &Shared,
    scope: &Scope,
    query: &ThreadQuery,
    now: Timestamp,
) -> error::Result<ThreadPage> {
    query.check()?;
    let owner = match (&query.owner, scope) {
        (Some(owner), _) if scope.access(owner) == Access::None => {
            return Ok(ThreadPage { threads: Vec::new(), next: None });
        }
        (Some(owner), _) => Some(owner.clone()),
        (None, Scope::User(_, user)) => Some(Owner::User(user.clone())),
        (None, Scope::Tenant(_)) => None,
    };
    let (prefix, after) = match query.order {
        ThreadOrder::Created => ('c', parse_cursor(query, 'c')?.unwrap_or((0, 0))),
        ThreadOrder::Recent => ('r', parse_cursor(query, 'r')?.unwrap_or((i64::MAX, 0))),
    };
    let caller = Caller::of(scope);
    let owner = owner.as_ref().map(owner_name);
    let limit = row::signed(query.limit as u64 + 1);
    let sql = page_sql(query.order, owner.is_some(), !query.metadata.is_empty());
    let terms = metadata::terms(&query.metadata);
    let conditions = row::signed(query.metadata.conditions().len() as u64);
    let page: [Parameter<'_>; 5] = [
        (&caller.tenant, Type::TEXT),
        (&now.as_micros(), Type::INT8),
        (&after.0, Type::INT8),
        (&after.1, Type::INT8),
        (&limit, Type::INT8),
    ];
    let filter: [Parameter<'_>; 2] = [(&terms, Type::BYTEA_ARRAY), (&conditions, Type::INT8)];
    // PostgreSQL rejects parameters that a statement does not use.
    let mut values = page.to_vec();
    values.extend(filter.into_iter().filter(|_| !query.metadata.is_empty()));
    values.extend(owner.iter().map(|owner| -> Parameter<'_> { (owner, Type::TEXT) }));
    let rows = shared.read(&caller, &[(&sql, &values)]).await?.remove(0);
    let threads = rows.iter().take(query.limit).map(|row| row::thread(row, 0)).collect::<error::Result<Vec<_>>>()?;
    let last = rows.get(query.limit - 1).filter(|_| rows.len() > query.limit);
    let next = last
        .map(|row| Ok::<_, error::PostgresError>(format!("{prefix}{}-{}", get::<i64>(row, 12)?, get::<i64>(row, 13)?)));
    Ok(ThreadPage { threads, next: next.transpose()? })
}

/// Returns the statement that lists threads. An index supports its order and conditions, so that its cost is proportional to
/// the size of the page; with a filter on metadata, to the number of threads that pass.
fn page_sql(order: ThreadOrder, has_owner: bool, has_filter: bool) -> String {
    let columns = thread_columns!();
    let owner_parameter = if has_filter { "$8" } else { "$6" };
    let owner_of =
        |table: &str| if has_owner { format!("AND {table}.owner = {owner_parameter}") } else { String::new() };
    let passes = if has_filter {
        let owner = owner_of("x");
        format!(
            "AND t.no IN (SELECT x.thread_no FROM threadkeep.thread_metadata x WHERE x.tenant = $1 AND x.term = ANY ($6) \
             {owner} GROUP BY x.thread_no HAVING count(*) = $7)"
        )
    } else {
        String::new()
    };
    let alive = format!("NOT t.restoring AND (t.expires_at IS NULL OR t.expires_at > $2) {passes}");
    match order {
        ThreadOrder::Created => {
            let owner = owner_of("t");
            format!(
                "SELECT {columns}, t.no, 0::bigint FROM threadkeep.threads t WHERE t.tenant = $1 {owner} AND {alive} \
                 AND t.no > $3 AND $4::bigint IS NOT NULL ORDER BY t.no LIMIT $5"
            )
        }
        ThreadOrder::Recent => {
            let owner = owner_of("s");
            format!(
                "SELECT {columns}, s.stamp, s.thread_no FROM threadkeep.stamps s \
                 JOIN threadkeep.threads t ON t.no = s.thread_no WHERE s.tenant = $1 {owner} AND {alive} \
                 AND (s.stamp, s.thread_no) < ($3, $4) ORDER BY s.stamp DESC, s.thread_no DESC LIMIT $5"
            )
        }
    }
}

fn parse_cursor(query: &ThreadQuery, prefix: char) -> error::Result<Option<(i64, i64)>> {
    let Some(cursor) = &query.after else { return Ok(None) };
    let numbers = cursor.strip_prefix(prefix).and_then(|numbers| numbers.split_once('-'));
    let numbers = numbers.and_then(|(first, second)| Some((first.parse().ok()?, second.parse().ok()?)));
    Ok(Some(numbers.ok_or_else(|| StoreError::invalid("cursor", "not from this list"))?))
}
