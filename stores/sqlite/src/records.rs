use std::sync::Arc;

use rusqlite::{Connection, Row, params};
use threadkeep_core::{
    Access, ChangeTag, Conflict, DrivenThread, Dump, JsonText, Kind, Namespace, Owner, PutRecord, Record, RecordName,
    RecordOwner, RecordQuery, RecordWrite, Result, Scope, StoreError, Tagged, TenantId, ThreadId, Timestamp, WakeUp,
    WriteOutcome,
};

use crate::connection::Shared;
use crate::error;
use crate::residue::{self, Residue};
use crate::{owners, row, threads, writer};

const OF_THREAD: i64 = 0;
const OF_OWNER: i64 = 1;

/// The version that a thread's record has at `now`.
pub(crate) fn version_of_thread(
    connection: &Connection,
    thread_no: i64,
    name: &RecordName,
    now: Timestamp,
) -> error::Result<Option<Tagged>> {
    version(connection, (OF_THREAD, thread_no), &name.namespace, &name.key, now)
}

fn version(
    connection: &Connection,
    (kind, owner_no): (i64, i64),
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> error::Result<Option<Tagged>> {
    let sql = "SELECT version, tag FROM documents WHERE kind = ?1 AND owner_no = ?2 AND namespace = ?3 AND key = ?4 \
               AND (expires_at IS NULL OR expires_at > ?5)";
    let mut statement = connection.prepare_cached(sql)?;
    let arguments = params![kind, owner_no, namespace.to_string(), key, now.as_micros()];
    let mut rows = statement.query(arguments)?;
    let tagged = |row: &Row<'_>| Ok(Tagged { number: row::unsigned(row, 0)?, tag: row::tag(row, 1)? });
    rows.next()?.map(tagged).transpose()
}

pub(crate) fn put_of_thread(
    connection: &Connection,
    thread_no: i64,
    put: &PutRecord,
    version: Tagged,
) -> error::Result<()> {
    let record = Record {
        namespace: put.name.namespace.clone(),
        key: put.name.key.clone(),
        value: put.value.clone(),
        version: version.number,
        tag: version.tag,
        expires_at: put.expires_at,
    };
    put_verbatim(connection, OF_THREAD, thread_no, &record)
}

pub(crate) fn put_of_owner(connection: &Connection, owner_no: i64, record: &Record) -> error::Result<()> {
    put_verbatim(connection, OF_OWNER, owner_no, record)
}

pub(crate) fn restore_of_thread(connection: &Connection, thread_no: i64, record: &Record) -> error::Result<()> {
    put_verbatim(connection, OF_THREAD, thread_no, record)
}

fn put_verbatim(connection: &Connection, kind: i64, owner_no: i64, record: &Record) -> error::Result<()> {
    residue::note(connection, Residue::Pages)?;
    // An update in place, where there is one: it leaves the index of names as it is.
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

pub(crate) fn delete_of_thread(connection: &Connection, thread_no: i64, name: &RecordName) -> error::Result<()> {
    delete(connection, (OF_THREAD, thread_no), &name.namespace, &name.key)
}

fn delete(
    connection: &Connection,
    (kind, owner_no): (i64, i64),
    namespace: &Namespace,
    key: &str,
) -> error::Result<()> {
    let sql = "DELETE FROM documents WHERE kind = ?1 AND owner_no = ?2 AND namespace = ?3 AND key = ?4";
    if connection.prepare_cached(sql)?.execute(params![kind, owner_no, namespace.to_string(), key])? > 0 {
        residue::note(connection, Residue::Pages)?;
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
        Access::Append => return Err(StoreError::Denied("writing the tenant's documents")),
        Access::None => return Err(StoreError::NotFound(Kind::Record)),
    }
    let (inside, tenant) = (Arc::clone(shared), scope.tenant_id().clone());
    let wake_up = WakeUp::of_record(scope, &write);
    let written = writer::write(shared, move |connection| {
        let owner_no = owners::find(&inside, connection, tenant.as_str(), owners::name(&owner))?;
        let actual = version(connection, (OF_OWNER, owner_no), &write.namespace, &write.key, now)?;
        if write.expected.is_some_and(|expected| expected != actual.unwrap_or_default().number) {
            let RecordWrite { namespace, key, .. } = write;
            return Err(StoreError::from(Conflict::Record { namespace, key, actual }).into());
        }
        let Some(value) = write.value else {
            delete(connection, (OF_OWNER, owner_no), &write.namespace, &write.key)?;
            return Ok(WriteOutcome { version: 0, tag: None });
        };
        let owner_no = owners::number(&inside, connection, tenant.as_str(), owners::name(&owner))?;
        let version = next_version(connection)?;
        let RecordWrite { namespace, key, expires_at, .. } = write;
        put_of_owner(connection, owner_no, &Record { namespace, key, value, version, tag: None, expires_at })?;
        Ok(WriteOutcome { version, tag: None })
    })
    .await?;
    // Nobody listening is no failure.
    drop(wake_up.map(|wake_up| shared.wake_ups.send(wake_up)));
    Ok(written)
}

/// One counter for all records of users and tenants, so that no version ever comes back.
fn next_version(connection: &Connection) -> error::Result<u64> {
    let sql = "INSERT INTO marks (name, value) VALUES ('document_version', 1) \
               ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value";
    Ok(connection.prepare_cached(sql)?.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
}

/// Keeps the counter beyond a version that a restored record brought.
pub(crate) fn raise_version(connection: &Connection, version: u64) -> error::Result<()> {
    let sql = "INSERT INTO marks (name, value) VALUES ('document_version', ?1) \
               ON CONFLICT DO UPDATE SET value = max(value, excluded.value)";
    connection.prepare_cached(sql)?.execute([version as i64])?;
    Ok(())
}

/// Under which kind and number an owner's records lie; `None` where the scope sees none.
fn place(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    owner: &RecordOwner,
    now: Timestamp,
) -> error::Result<Option<(i64, i64)>> {
    let tenant = scope.tenant_id().as_str();
    Ok(match owner {
        RecordOwner::Thread(thread) => {
            threads::find_row(shared, connection, scope, *thread, now)?.map(|(row, _)| (OF_THREAD, row.no))
        }
        RecordOwner::User(user) => match scope.access(&Owner::User(user.clone())) {
            Access::Full => Some((OF_OWNER, owners::find(shared, connection, tenant, user.as_str())?)),
            _ => None,
        },
        RecordOwner::Tenant => Some((OF_OWNER, owners::find(shared, connection, tenant, "")?)),
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
        let Some(place) = place(shared, connection, scope, owner, now)? else { return Ok(None) };
        find_at(connection, place, namespace, key, now)
    })
}

pub(crate) fn find_of_thread(
    connection: &Connection,
    thread_no: i64,
    name: &RecordName,
    now: Timestamp,
) -> error::Result<Option<Record>> {
    find_at(connection, (OF_THREAD, thread_no), &name.namespace, &name.key, now)
}

fn find_at(
    connection: &Connection,
    (kind, owner_no): (i64, i64),
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
    rows.next()?.map(record).transpose()
}

pub(crate) fn list(shared: &Shared, scope: &Scope, query: &RecordQuery, now: Timestamp) -> error::Result<Vec<Record>> {
    query.check()?;
    shared.read(|connection| page_of(shared, connection, scope, query, now))
}

/// As [`list`], with a connection that is at hand.
pub(crate) fn page_of(
    shared: &Shared,
    connection: &Connection,
    scope: &Scope,
    query: &RecordQuery,
    now: Timestamp,
) -> error::Result<Vec<Record>> {
    let Some(place) = place(shared, connection, scope, &query.owner, now)? else { return Ok(Vec::new()) };
    page(connection, place, query, now.as_micros())
}

/// The records of all threads that say who drives them, each with its thread.
pub(crate) fn list_of_drivers(
    shared: &Shared,
    after: Option<&DrivenThread>,
    limit: usize,
    now: Timestamp,
) -> error::Result<Vec<DrivenThread>> {
    // Named as the index has it, or it would not be used.
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
                owner: owners::owner(row.get(8)?)?,
                record: record(row)?,
            });
        }
        Ok(driven)
    })
}

/// All records of a thread, expired ones included. One that cannot be read is left out and named.
pub(crate) fn all_of_thread(connection: &Connection, thread_no: i64, chunk: &mut Dump) -> error::Result<()> {
    let sql = concat!(columns!(), " WHERE kind = 0 AND owner_no = ?1 ORDER BY namespace, key");
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([thread_no])?;
    loop {
        match rows.next() {
            Ok(None) => return Ok(()),
            Ok(Some(row)) => match record(row) {
                Ok(record) => chunk.records.push(record),
                Err(error) if error.is_damage() => chunk.unreadable.push(format!("a document: {}", error.told())),
                Err(error) => return Err(error),
            },
            Err(error) => {
                let error = error::SqliteError::from(error);
                if !error.is_damage() {
                    return Err(error);
                }
                chunk.unreadable.push(format!("documents after {}: {}", chunk.records.len(), error.told()));
                return Ok(());
            }
        }
    }
}

/// The records of a thread that a salvage has found, without the table's index.
pub(crate) fn found_of_thread(connection: &Connection, thread_no: i64, chunk: &mut Dump) -> error::Result<()> {
    let mut found = connection.prepare_cached("SELECT no FROM temp.found_documents WHERE owner_no = ?1")?;
    let numbers = found.query_map([thread_no], |row| row.get::<_, i64>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut statement = connection.prepare_cached(concat!(columns!(), " WHERE no = ?1"))?;
    for no in numbers {
        let mut rows = statement.query([no])?;
        let read = rows.next().map_err(error::SqliteError::from).and_then(|row| row.map(record).transpose());
        match read {
            Ok(record) => chunk.records.extend(record),
            Err(error) if error.is_damage() => chunk.unreadable.push(format!("a document: {}", error.told())),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// All records by their numbers, between two of them.
pub(crate) const ALL_BY_NUMBER: &str = "SELECT no, kind, owner_no, namespace, key, version, expires_at, value, tag \
                                        FROM documents WHERE no BETWEEN ?1 AND ?2 ORDER BY no";

/// The owner's number and the record of a row of [`ALL_BY_NUMBER`]; `None` for a thread's record.
pub(crate) fn of_owner(row: &Row<'_>) -> error::Result<Option<(i64, Record)>> {
    if row.get::<_, i64>(1)? == OF_THREAD {
        return Ok(None);
    }
    Ok(Some((row.get(2)?, record_at(row, 3)?)))
}

fn page(
    connection: &Connection,
    (kind, owner_no): (i64, i64),
    query: &RecordQuery,
    now: i64,
) -> error::Result<Vec<Record>> {
    // Two statements, so that one family is found without walking past the others, of which a thread has one for each turn.
    let family = match &query.namespace {
        Some(_) => "namespace = ?3 AND key >= ?9",
        None => "?3 IS NULL AND ?9 IS NOT NULL",
    };
    let sql = format!(
        "{} WHERE kind = ?1 AND owner_no = ?2 AND {family} \
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
        records.push(record(row)?);
    }
    Ok(records)
}

pub(crate) fn record(row: &Row<'_>) -> error::Result<Record> {
    record_at(row, 0)
}

fn record_at(row: &Row<'_>, first_column: usize) -> error::Result<Record> {
    let corrupt = |_| StoreError::corrupt("document", "not as written");
    let expires_at: Option<i64> = row.get(first_column + 3)?;
    Ok(Record {
        namespace: row::text(row, first_column)?.parse().map_err(corrupt)?,
        key: row.get(first_column + 1)?,
        value: JsonText::stored(row::text(row, first_column + 4)?).map_err(corrupt)?,
        version: row::unsigned(row, first_column + 2)?,
        tag: row::tag(row, first_column + 5)?,
        expires_at: expires_at.map(row::timestamp).transpose()?,
    })
}
