use threadkeep_core::{
    Access, Conflict, DrivenThread, JsonText, Kind, Namespace, Owner, Record, RecordOwner, RecordQuery, RecordWrite,
    Result, Scope, StoreError, TenantId, ThreadId, Timestamp, WakeUp, WriteOutcome,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error;
use crate::pool::{Caller, Parameter, Shared};
use crate::row::{self, get, owner_name};

pub(crate) async fn write(shared: &Shared, scope: &Scope, write: RecordWrite, now: Timestamp) -> Result<WriteOutcome> {
    write.check()?;
    let owner = match &write.owner {
        RecordOwner::User(user) => Owner::User(user.clone()),
        _ => Owner::Tenant,
    };
    match scope.access(&owner) {
        Access::Full => {}
        Access::Append => return Err(StoreError::Denied("writing the tenant's records")),
        Access::None => return Err(StoreError::NotFound(Kind::Record)),
    }
    let caller = Caller::of(scope);
    let sql = "SELECT outcome, version FROM threadkeep.write_document($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let values: [Parameter<'_>; 9] = [
        (&caller.tenant, Type::TEXT),
        (&caller.name, Type::TEXT),
        (&owner_name(&owner), Type::TEXT),
        (&write.namespace.to_string(), Type::TEXT),
        (&write.key, Type::TEXT),
        (&write.expected.map(row::signed), Type::INT8),
        (&write.value.as_ref().map(JsonText::as_str), Type::TEXT),
        (&write.expires_at.map(Timestamp::as_micros), Type::INT8),
        (&now.as_micros(), Type::INT8),
    ];
    let rows = shared.write(sql, &values).await?;
    let row = rows.first().ok_or_else(|| StoreError::corrupt("query result", "no row"))?;
    let version: Option<i64> = get(row, 1)?;
    match get::<&str>(row, 0)? {
        "done" => {
            if let Some(wake_up) = WakeUp::of_record(scope, &write) {
                shared.outbox.put(&wake_up);
                // Sending fails only without subscribers.
                drop(shared.wake_ups.send(wake_up));
            }
            Ok(WriteOutcome { version: version.unwrap_or(0).unsigned_abs(), tag: None })
        }
        _ => {
            let RecordWrite { namespace, key, .. } = write;
            Err(Conflict::Record { namespace, key, actual: version.map(|version| version.unsigned_abs().into()) }
                .into())
        }
    }
}

/// Selects the rows of an owner's records. The first two parameters are the tenant and `now`, the third is the owner.
enum OwnerFilter {
    /// The records of a thread that the scope may access.
    Thread(uuid::Uuid),
    /// The records of a user, or of the tenant.
    Owner(String),
}

impl OwnerFilter {
    /// Returns `None` if the scope may not read the owner's records.
    fn of(scope: &Scope, owner: &RecordOwner) -> Option<Self> {
        match owner {
            RecordOwner::Thread(thread) => Some(Self::Thread(thread.0)),
            RecordOwner::User(user) => {
                let access = scope.access(&Owner::User(user.clone()));
                (access == Access::Full).then(|| Self::Owner(user.as_str().to_owned()))
            }
            RecordOwner::Tenant => Some(Self::Owner(String::new())),
        }
    }

    fn rows(&self) -> &'static str {
        match self {
            Self::Thread(_) => {
                "threadkeep.thread_documents d WHERE d.thread_no = (SELECT t.no FROM threadkeep.threads t \
                 WHERE t.tenant = $1 AND t.id = $3 AND NOT t.restoring AND (t.expires_at IS NULL OR t.expires_at > $2))"
            }
            Self::Owner(_) => "threadkeep.documents d WHERE d.tenant = $1 AND d.owner = $3",
        }
    }

    fn value(&self) -> Parameter<'_> {
        match self {
            Self::Thread(id) => (id, Type::UUID),
            Self::Owner(name) => (name, Type::TEXT),
        }
    }
}

/// The columns of [`record`], for a table alias `d`.
pub(crate) const COLUMNS: &str = "d.namespace, d.key, d.version, d.expires_at, d.value, d.tag";
const ALIVE: &str = "(d.expires_at IS NULL OR d.expires_at > $2)";

pub(crate) async fn find(
    shared: &Shared,
    scope: &Scope,
    owner: &RecordOwner,
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> error::Result<Option<Record>> {
    let Some(filter) = OwnerFilter::of(scope, owner).filter(|_| !key.contains('\0')) else { return Ok(None) };
    let caller = Caller::of(scope);
    let sql = format!("SELECT {COLUMNS} FROM {} AND {ALIVE} AND d.namespace = $4 AND d.key = $5", filter.rows());
    let values: [Parameter<'_>; 5] = [
        (&caller.tenant, Type::TEXT),
        (&now.as_micros(), Type::INT8),
        filter.value(),
        (&namespace.to_string(), Type::TEXT),
        (&key, Type::TEXT),
    ];
    let rows = shared.read(&caller, &[(&sql, &values)]).await?;
    rows[0].first().map(record).transpose()
}

pub(crate) async fn list(
    shared: &Shared,
    scope: &Scope,
    query: &RecordQuery,
    now: Timestamp,
) -> error::Result<Vec<Record>> {
    query.check()?;
    let Some(list) = ListCall::of(scope, query, now) else { return Ok(Vec::new()) };
    let rows = shared.read(&list.caller, &[(&list.sql(), &list.values())]).await?;
    rows[0].iter().map(record).collect()
}

/// A query for a page of records, which can share a round trip with other queries.
pub(crate) struct ListCall<'a> {
    caller: Caller,
    filter: OwnerFilter,
    now: i64,
    namespace: Option<String>,
    after: (Option<String>, Option<String>),
    key_prefix: &'a str,
    limit: i64,
}

impl<'a> ListCall<'a> {
    /// Returns `None` if the query matches no records.
    pub(crate) fn of(scope: &Scope, query: &'a RecordQuery, now: Timestamp) -> Option<Self> {
        let filter = OwnerFilter::of(scope, &query.owner).filter(|_| !query.key_prefix.contains('\0'))?;
        let after = match &query.after {
            Some((namespace, key)) => (Some(namespace.to_string()), Some(key.replace('\0', ""))),
            None => (None, None),
        };
        Some(Self {
            caller: Caller::of(scope),
            filter,
            now: now.as_micros(),
            namespace: query.namespace.as_ref().map(ToString::to_string),
            after,
            key_prefix: &query.key_prefix,
            limit: row::signed(query.limit as u64),
        })
    }

    pub(crate) fn sql(&self) -> String {
        format!(
            "SELECT {COLUMNS} FROM {} AND {ALIVE} AND ($4::text IS NULL OR d.namespace = $4) \
             AND ($5::text IS NULL OR (d.namespace, d.key) > ($5, $6)) AND starts_with(d.key, $7) \
             ORDER BY d.namespace, d.key LIMIT $8",
            self.filter.rows()
        )
    }

    pub(crate) fn values(&self) -> [Parameter<'_>; 8] {
        [
            (&self.caller.tenant, Type::TEXT),
            (&self.now, Type::INT8),
            self.filter.value(),
            (&self.namespace, Type::TEXT),
            (&self.after.0, Type::TEXT),
            (&self.after.1, Type::TEXT),
            (&self.key_prefix, Type::TEXT),
            (&self.limit, Type::INT8),
        ]
    }
}

/// Lists the threads that have a driver, with the record that names the driver.
pub(crate) async fn list_driven_threads(
    shared: &Shared,
    after: Option<&DrivenThread>,
    limit: usize,
    now: Timestamp,
) -> error::Result<Vec<DrivenThread>> {
    // Namespace and key must be literals, as in the definition of the partial index, for the index to be used.
    let sql = format!(
        "SELECT {COLUMNS}, t.tenant, t.id, t.owner FROM threadkeep.thread_documents d \
         JOIN threadkeep.threads t ON t.no = d.thread_no \
         WHERE d.namespace = 'system/run' AND d.key = 'active' AND (d.expires_at IS NULL OR d.expires_at > $1) \
         AND NOT t.restoring AND (t.expires_at IS NULL OR t.expires_at > $1) \
         AND ($2::text IS NULL OR (t.tenant, t.id) > ($2, $3)) ORDER BY t.tenant, t.id LIMIT $4"
    );
    let values: [Parameter<'_>; 4] = [
        (&now.as_micros(), Type::INT8),
        (&after.map(|after| after.tenant.as_str()), Type::TEXT),
        (&after.map(|after| after.thread.0), Type::UUID),
        (&row::signed(limit as u64), Type::INT8),
    ];
    let rows = shared.read(&Caller::maintenance(), &[(&sql, &values)]).await?;
    let driven = |row: &Row| {
        Ok(DrivenThread {
            tenant: TenantId::from_stored(get::<&str>(row, 6)?)?,
            thread: ThreadId(get(row, 7)?),
            owner: row::owner(get(row, 8)?)?,
            record: record(row)?,
        })
    };
    rows[0].iter().map(driven).collect()
}

/// Reads a row of [`COLUMNS`].
pub(crate) fn record(row: &Row) -> error::Result<Record> {
    let corrupt = |_| StoreError::corrupt("record", "cannot be decoded");
    let expires_at: Option<i64> = get(row, 3)?;
    Ok(Record {
        namespace: get::<&str>(row, 0)?.parse().map_err(corrupt)?,
        key: get(row, 1)?,
        value: JsonText::new(get::<&str>(row, 4)?).map_err(corrupt)?,
        version: row::unsigned(row, 2)?,
        tag: row::tag(row, 5)?,
        expires_at: expires_at.map(row::instant).transpose()?,
    })
}
