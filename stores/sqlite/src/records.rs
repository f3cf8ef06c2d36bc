use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use threadkeep_core::{
    Access, ChangeTag, Conflict, DrivenThread, Dump, JsonText, Kind, Namespace, Owner, PutRecord, Record, RecordName,
    RecordOwner, RecordQuery, RecordWrite, Result, Scope, StoreError, TaggedNumber, TenantId, ThreadId, Timestamp,
    WakeUp, WriteOutcome,
};

use crate::connection::Shared;
use crate::error;
use crate::residue::{self, Residue};
use crate::{owners, row, threads, writer};

/// The kind of a thread's records.
const THREAD_KIND: i64 = 0;
/// The kind of a user's or a tenant's records.
const OWNER_KIND: i64 = 1;

/// The kind of a record and the number of its thread or owner.
type OwnerKey = (i64, i64);

/// Returns the version of a thread's record; `None` if the record does not exist at `now`.
pub(crate) fn thread_record_version(
    connection: &Connection,
    thread_no: i64,
    name: &RecordName,
    now: Timestamp,
) -> error::Result<Option<TaggedNumber>> {
    find_version(connection, (THREAD_KIND, thread_no), &name.namespace, &name.key, now)
}

fn find_version(
    connection: &Connection,
    (kind, owner_no): OwnerKey,
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> error::Result<Option<TaggedNumber>> {
    let sql = "SELECT version, tag FROM documents WHERE kind = ?1 AND owner_no = ?2 AND namespace = ?3 AND key = ?4 \
               AND (expires_at IS NULL OR expires_at > ?5)";
    let mut statement = connection.prepare_cached(sql)?;
    let arguments = params![kind, owner_no, namespace.to_string(), key, now.as_micros()];
    let mut rows = statement.query(arguments)?;
    let tagged = |row: &Row<'_>| Ok(TaggedNumber { number: row::unsigned(row, 0)?, tag: row::tag(row, 1)? });
    rows.next()?.map(tagged).transpose()
}

pub(crate) fn put_thread_record(
    connection: &Connection,
    thread_no: i64,
    put: &PutRecord,
    version: TaggedNumber,
) -> error::Result<()> {
    let record = Record {
        namespace: put.name.namespace.clone(),
        key: put.name.key.clone(),
        value: put.value.clone(),
        version: version.number,
        tag: version.tag,
        expires_at: put.expires_at,
    };
    put_verbatim(connection, (THREAD_KIND, thread_no), &record)
}

pub(crate) fn put_owner_record(connection: &Connection, owner_no: i64, record: &Record) -> error::Result<()> {
    put_verbatim(connection, (OWNER_KIND, owner_no), record)
}

pub(crate) fn restore_thread_record(connection: &Connection, thread_no: i64, record: &Record) -> error::Result<()> {
    put_verbatim(connection, (THREAD_KIND, thread_no), record)
}

fn put_verbatim(connection: &Connection, (kind, owner_no): OwnerKey, record: &Record) -> error::Result<()> {
    residue::record(connection, Residue::Pages)?;
    // An existing row is updated in place, which leaves the index of names unchanged.
    let sql = "INSERT INTO documents (kind, owner_no, namespace, key, version, expires_at, value, tag) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (kind, owner_no, namespace, key) \
               DO UPDATE SET version = excluded.version, tag = excluded.tag, expires_at = excluded.expires_at, value = excluded.value";
    connection.prepare_cached(sql)?.execute(params![
        kind,
        owner_no,
        record.namespace.to_string(),
        record.key,
        record.version as i64,
        record.expires_at.map(Timestamp::as_micros),
        record.value.as_str(),
        record.tag.map(ChangeTag::to_stored),
    ])?;
    Ok(())
}

pub(crate) fn delete_thread_record(connection: &Connection, thread_no: i64, name: &RecordName) -> error::Result<()> {
    delete(connection, (THREAD_KIND, thread_no), &name.namespace, &name.key)
}

fn delete(connection: &Connection, (kind, owner_no): OwnerKey, namespace: &Namespace, key: &str) -> error::Result<()> {
    let sql = "DELETE FROM documents WHERE kind = ?1 AND owner_no = ?2 AND namespace = ?3 AND key = ?4";
    if connection.prepare_cached(sql)?.execute(params![kind, owner_no, namespace.to_string(), key])? > 0 {
        residue::record(connection, Residue::Pages)?;
    }
    Ok(())
}

pub(crate) async fn write(
    shared: &Arc<Shared>,
    scope: &Scope,
    write: RecordWrite,
    now: Timestamp,
) -> Result<WriteOutcome> {
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
    let (store, tenant) = (Arc::clone(shared), scope.tenant_id().clone());
    let wake_up = WakeUp::of_record(scope, &write);
    let outcome = writer::write(shared, move |connection| {
        let owner_no = owners::find(&store, connection, tenant.as_str(), owners::stored_name(&owner))?;
        let actual = find_version(connection, (OWNER_KIND, owner_no), &write.namespace, &write.key, now)?;
        if write.expected.is_some_and(|expected| expected != actual.unwrap_or_default().number) {
            let RecordWrite { namespace, key, .. } = write;
            return Err(StoreError::from(Conflict::Record { namespace, key, actual }).into());
        }
        let Some(value) = write.value else {
            delete(connection, (OWNER_KIND, owner_no), &write.namespace, &write.key)?;
            return Ok(WriteOutcome { version: 0, tag: None });
        };
        let owner_no = owners::find_or_insert(&store, connection, tenant.as_str(), owners::stored_name(&owner))?;
        let version = next_version(connection)?;
        let RecordWrite { namespace, key, expires_at, .. } = write;
        put_owner_record(connection, owner_no, &Record { namespace, key, value, version, tag: None, expires_at })?;
        Ok(WriteOutcome { version, tag: None })
    })
    .await?;
    // Sending fails only without subscribers.
    drop(wake_up.map(|wake_up| shared.wake_ups.send(wake_up)));
    Ok(outcome)
}

/// Returns the next version. All records of users and tenants share one counter, so that a version is never used twice.
fn next_version(connection: &Connection) -> error::Result<u64> {
    let sql = "INSERT INTO marks (name, value) VALUES ('document_version', 1) \
               ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Raises the version counter to at least the version of a restored record.
pub(crate) fn raise_version(connection: &Connection, version: u64) -> error::Result<()> {
    let sql = "INSERT INTO marks (name, value) VALUES ('document_version', ?1) \
               ON CONFLICT DO UPDATE SET value = max(value, excluded.value)";
    connection.prepare_cached(sql)?.execute([version as i64])?;
    Ok(())
}

/// Finds the key of an owner's records; `None` if the scope may not read them.
fn find_owner_key(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    owner: &RecordOwner,
    now: Timestamp,
) -> error::Result<Option<OwnerKey>> {
    let tenant = scope.tenant_id().as_str();
    Ok(match owner {
        RecordOwner::Thread(thread) => {
            threads::find_row(shared, connection, scope, *thread, now)?.map(|(row, _)| (THREAD_KIND, row.number))
        }
        RecordOwner::User(user) => match scope.access(&Owner::User(user.clone())) {
            Access::Full => Some((OWNER_KIND, owners::find(shared, connection, tenant, user.as_str())?)),
            _ => None,
        },
        RecordOwner::Tenant => Some((OWNER_KIND, owners::find(shared, connection, tenant, "")?)),
    })
}

macro_rules! columns {
    () => {
        "SELECT namespace, key, version, expires_at, value, tag FROM documents"
    };
}

pub(crate) fn find(
    shared: &Shared,
    scope: &Scope,
    owner: &RecordOwner,
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> error::Result<Option<Record>> {
    shared.read(|connection| {
        let Some(owner_key) = find_owner_key(shared, connection, scope, owner, now)? else { return Ok(None) };
        find_by_name(connection, owner_key, namespace, key, now)
    })
}

pub(crate) fn find_thread_record(
    connection: &Connection,
    thread_no: i64,
    name: &RecordName,
    now: Timestamp,
) -> error::Result<Option<Record>> {
    find_by_name(connection, (THREAD_KIND, thread_no), &name.namespace, &name.key, now)
}

fn find_by_name(
    connection: &Connection,
    (kind, owner_no): OwnerKey,
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> error::Result<Option<Record>> {
    let sql = concat!(
        columns!(),
        " WHERE kind = ?1 AND owner_no = ?2 AND namespace = ?3 AND key = ?4",
        " AND (expires_at IS NULL OR expires_at > ?5)"
    );
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![kind, owner_no, namespace.to_string(), key, now.as_micros()])?;
    rows.next()?.map(read_record).transpose()
}

pub(crate) fn list(shared: &Shared, scope: &Scope, query: &RecordQuery, now: Timestamp) -> error::Result<Vec<Record>> {
    query.check()?;
    shared.read(|connection| list_in(shared, connection, scope, query, now))
}

/// Like [`list`], but uses a given connection.
pub(crate) fn list_in(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    query: &RecordQuery,
    now: Timestamp,
) -> error::Result<Vec<Record>> {
    let Some(owner_key) = find_owner_key(shared, connection, scope, &query.owner, now)? else { return Ok(Vec::new()) };
    read_page(connection, owner_key, query, now.as_micros())
}

/// Lists the threads that have a driver, with the record that names the driver.
pub(crate) fn list_driven_threads(
    shared: &Shared,
    after: Option<&DrivenThread>,
    limit: usize,
    now: Timestamp,
) -> error::Result<Vec<DrivenThread>> {
    // SQLite uses the partial index only if namespace and key are literals, as in the definition of the index.
    let sql = "SELECT d.namespace, d.key, d.version, d.expires_at, d.value, d.tag, tenant.tenant, t.id, owner.user \
               FROM documents d JOIN threads t ON t.no = d.owner_no \
               JOIN owners tenant ON tenant.no = t.tenant_no JOIN owners owner ON owner.no = t.owner_no \
               WHERE d.kind = 0 AND d.namespace = 'system/run' AND d.key = 'active' \
               AND (d.expires_at IS NULL OR d.expires_at > ?1) \
               AND t.restoring = 0 AND (t.expires_at IS NULL OR t.expires_at > ?1) \
               AND (?2 IS NULL OR (tenant.tenant, t.id) > (?2, ?3)) ORDER BY tenant.tenant, t.id LIMIT ?4";
    shared.read(|connection| {
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![
            now.as_micros(),
            after.map(|after| after.tenant.as_str()),
            after.map(|after| after.thread.0.as_bytes().as_slice()),
            i64::try_from(limit).unwrap_or(i64::MAX),
        ])?;
        let mut driven = Vec::new();
        while let Some(row) = rows.next()? {
            driven.push(DrivenThread {
                tenant: TenantId::from_stored(row::text(row, 6)?)?,
                thread: ThreadId(row::uuid(row, 7)?),
                owner: owners::parse_owner(row.get(8)?)?,
                record: read_record(row)?,
            });
        }
        Ok(driven)
    })
}

/// Adds all records of a thread to `chunk`, including expired records. Lists unreadable records in `chunk.unreadable`.
pub(crate) fn dump_thread_records(connection: &Connection, thread_no: i64, chunk: &mut Dump) -> error::Result<()> {
    let sql = concat!(columns!(), " WHERE kind = 0 AND owner_no = ?1 ORDER BY namespace, key");
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([thread_no])?;
    loop {
        match rows.next() {
            Ok(None) => return Ok(()),
            Ok(Some(row)) => match read_record(row) {
                Ok(record) => chunk.records.push(record),
                Err(error) if error.is_damage() => chunk.unreadable.push(format!("record: {}", error.detail())),
                Err(error) => return Err(error),
            },
            Err(error) => {
                let error = error::SqliteError::from(error);
                if !error.is_damage() {
                    return Err(error);
                }
                chunk.unreadable.push(format!("records after the first {}: {}", chunk.records.len(), error.detail()));
                return Ok(());
            }
        }
    }
}

/// Adds a thread's records to `chunk`. The salvage has located them, so that the index of `documents` is not needed.
pub(crate) fn salvage_thread_records(connection: &Connection, thread_no: i64, chunk: &mut Dump) -> error::Result<()> {
    let mut found = connection.prepare_cached("SELECT no FROM temp.found_documents WHERE owner_no = ?1")?;
    let numbers = found.query_map([thread_no], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut statement = connection.prepare_cached(concat!(columns!(), " WHERE no = ?1"))?;
    for number in numbers {
        let mut rows = statement.query([number])?;
        let read = rows.next().map_err(error::SqliteError::from).and_then(|row| row.map(read_record).transpose());
        match read {
            Ok(record) => chunk.records.extend(record),
            Err(error) if error.is_damage() => chunk.unreadable.push(format!("record: {}", error.detail())),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Selects all records between two row numbers.
pub(crate) const ALL_BY_NUMBER: &str = "SELECT no, kind, owner_no, namespace, key, version, expires_at, value, tag \
                                        FROM documents WHERE no BETWEEN ?1 AND ?2 ORDER BY no";

/// Reads the owner's number and the record from a row of [`ALL_BY_NUMBER`]; `None` for a thread's record.
pub(crate) fn read_owner_record(row: &Row<'_>) -> error::Result<Option<(i64, Record)>> {
    if row.get::<_, i64>(1)? == THREAD_KIND {
        return Ok(None);
    }
    Ok(Some((row.get(2)?, read_record_at(row, 3)?)))
}

fn read_page(
    connection: &Connection,
    (kind, owner_no): OwnerKey,
    query: &RecordQuery,
    now: i64,
) -> error::Result<Vec<Record>> {
    // There are two statements, so that SQLite uses the index to seek to the namespace if one is given.
    let namespace_condition = match &query.namespace {
        Some(_) => "namespace = ?3 AND key >= ?9",
        None => "?3 IS NULL AND ?9 IS NOT NULL",
    };
    let sql = format!(
        "{} WHERE kind = ?1 AND owner_no = ?2 AND {namespace_condition} \
         AND (?4 IS NULL OR (namespace, key) > (?4, ?5)) AND (expires_at IS NULL OR expires_at > ?6) \
         AND substr(CAST(key AS BLOB), 1, length(?7)) = ?7 ORDER BY namespace, key LIMIT ?8",
        columns!()
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let (after_namespace, after_key) = match &query.after {
        Some((namespace, key)) => (Some(namespace.to_string()), Some(key.as_str())),
        None => (None, None),
    };
    let mut rows = statement.query(params![
        kind,
        owner_no,
        query.namespace.as_ref().map(ToString::to_string),
        after_namespace,
        after_key,
        now,
        query.key_prefix.as_bytes(),
        i64::try_from(query.limit).unwrap_or(i64::MAX),
        query.key_prefix.as_str(),
    ])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(read_record(row)?);
    }
    Ok(records)
}

pub(crate) fn read_record(row: &Row<'_>) -> error::Result<Record> {
    read_record_at(row, 0)
}

fn read_record_at(row: &Row<'_>, first_column: usize) -> error::Result<Record> {
    let corrupt = |_| StoreError::corrupt("record", "cannot be decoded");
    let expires_at: Option<i64> = row.get(first_column + 3)?;
    Ok(Record {
        namespace: row::text(row, first_column)?.parse().map_err(corrupt)?,
        key: row.get(first_column + 1)?,
        value: JsonText::from_stored(row::text(row, first_column + 4)?).map_err(corrupt)?,
        version: row::unsigned(row, first_column + 2)?,
        tag: row::tag(row, first_column + 5)?,
        expires_at: expires_at.map(row::timestamp).transpose()?,
    })
}
