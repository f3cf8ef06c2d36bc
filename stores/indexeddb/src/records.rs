//! Records of threads, users and tenants.

use futures::future::try_join;
use threadkeep_core::{
    Access, Conflict, DerivedWrite, Kind, Namespace, Record, RecordName, RecordOwner, RecordQuery, RecordWrite, Result,
    Scope, StoreError, TaggedNumber, TenantId, ThreadId, Timestamp, WakeUp, WriteOutcome,
};

use crate::idb::Transaction;
use crate::keys;
use crate::rows::{Counters, KnownOwner, RecordRow, ThreadRow, find_live, has_expired};

const BATCH: usize = 256;

async fn find_live_record(
    transaction: &Transaction,
    tenant: &TenantId,
    owner: &RecordOwner,
    name: (&Namespace, &str),
    now: Timestamp,
) -> Result<Option<Record>> {
    let text = transaction.get(&keys::record(tenant, owner, name.0, name.1)).await?;
    let record = text.map(|text| RecordRow::parse(&text)).transpose()?.map(|row| row.record);
    Ok(record.filter(|record| !has_expired(record.expires_at, now)))
}

pub(crate) async fn find_of_thread(
    transaction: &Transaction,
    row: &ThreadRow,
    name: &RecordName,
    now: Timestamp,
) -> Result<Option<Record>> {
    let name = (&name.namespace, name.key.as_str());
    find_live_record(transaction, &row.tenant, &RecordOwner::Thread(row.id), name, now).await
}

pub(crate) async fn find_record(
    transaction: &Transaction,
    scope: &Scope,
    owner: &RecordOwner,
    namespace: &Namespace,
    key: &str,
    now: Timestamp,
) -> Result<Option<Record>> {
    if !can_read(transaction, scope, owner, now).await? {
        return Ok(None);
    }
    find_live_record(transaction, scope.tenant_id(), owner, (namespace, key), now).await
}

pub(crate) async fn list_records(
    transaction: &Transaction,
    scope: &Scope,
    query: &RecordQuery,
    now: Timestamp,
) -> Result<Vec<Record>> {
    query.check()?;
    let (tenant, owner) = (scope.tenant_id(), &query.owner);
    if !can_read(transaction, scope, owner, now).await? {
        return Ok(Vec::new());
    }
    let mut range = keys::records(tenant, owner, query.namespace.as_ref(), &query.key_prefix);
    if let Some((namespace, key)) = &query.after {
        range = range.after(&keys::record(tenant, owner, namespace, key));
    }
    let mut records = Vec::new();
    loop {
        let texts = transaction.range(&range, BATCH).await?;
        let mut last = None;
        for text in texts {
            let row = RecordRow::parse(&text)?;
            last = Some(row.key());
            if !has_expired(row.record.expires_at, now) && row.record.key.starts_with(&query.key_prefix) {
                records.push(row.record);
            }
        }
        match last {
            Some(last) if records.len() < query.limit => range = range.after(&last),
            _ => break,
        }
    }
    records.truncate(query.limit);
    Ok(records)
}

async fn can_read(transaction: &Transaction, scope: &Scope, owner: &RecordOwner, now: Timestamp) -> Result<bool> {
    match owner {
        RecordOwner::Thread(thread) => match find_live(transaction, scope, *thread, now).await {
            Ok(_) => Ok(true),
            Err(StoreError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        },
        owner => Ok(owner.as_owner().is_some_and(|owner| scope.access(&owner) != Access::None)),
    }
}

pub(crate) async fn write_record(
    transaction: &Transaction,
    scope: &Scope,
    write: RecordWrite,
    now: Timestamp,
) -> Result<(WriteOutcome, Option<WakeUp>)> {
    let wake_up = WakeUp::of_record(scope, &write);
    check_write_access(scope, &write.owner)?;
    let tenant = scope.tenant_id();
    let RecordWrite { owner, namespace, key, expected, value, expires_at } = write;
    let (actual, mut counters) =
        try_join(find_live_record(transaction, tenant, &owner, (&namespace, &key), now), Counters::read(transaction))
            .await?;
    let actual = actual.map(|record| record.version);
    if expected.is_some_and(|expected| expected != actual.unwrap_or(0)) {
        return Err(Conflict::Record { namespace, key, actual: actual.map(TaggedNumber::from) }.into());
    }
    let Some(value) = value else {
        transaction.delete(&keys::record(tenant, &owner, &namespace, &key))?;
        return Ok((WriteOutcome { version: 0, tag: None }, wake_up));
    };
    counters.record_version += 1;
    let version = counters.record_version;
    counters.write(transaction)?;
    if let Some(owner) = owner.as_owner() {
        KnownOwner::add(transaction, tenant, &owner)?;
    }
    let record = Record { namespace, key, value, version, tag: None, expires_at };
    RecordRow { tenant: tenant.clone(), owner, record }.write(transaction)?;
    Ok((WriteOutcome { version, tag: None }, wake_up))
}

fn check_write_access(scope: &Scope, owner: &RecordOwner) -> Result<()> {
    match owner.as_owner().map_or(Access::None, |owner| scope.access(&owner)) {
        Access::Full => Ok(()),
        Access::Append => Err(StoreError::Denied("writing the tenant's records")),
        Access::None => Err(StoreError::NotFound(Kind::Record)),
    }
}

pub(crate) async fn write_derived(
    transaction: &Transaction,
    scope: &Scope,
    id: ThreadId,
    write: DerivedWrite,
    now: Timestamp,
) -> Result<(WriteOutcome, Option<WakeUp>)> {
    let (row, access) = find_live(transaction, scope, id, now).await?;
    if access < Access::Full {
        return Err(StoreError::Denied("changing a shared thread other than by adding messages"));
    }
    let (name, version) = (write.name(), write.version());
    let actual = find_of_thread(transaction, &row, &name, now).await?.map(|record| record.tagged());
    let positions = row.thread.positions;
    write.check_against(positions, actual)?;
    let RecordName { namespace, key } = name;
    let record = Record { namespace, key, value: write.value, version, tag: positions.tag, expires_at: None };
    RecordRow { tenant: row.tenant, owner: RecordOwner::Thread(id), record }.write(transaction)?;
    Ok((WriteOutcome { version, tag: positions.tag }, None))
}

pub(crate) async fn restore_record(
    transaction: &Transaction,
    tenant: &TenantId,
    owner: &RecordOwner,
    record: Record,
) -> Result<((), Option<WakeUp>)> {
    let Some(known) = owner.as_owner() else {
        return Err(StoreError::invalid("record owner", "a thread's records are restored with the thread"));
    };
    // Later writes must not reuse a version of the source store.
    let mut counters = Counters::read(transaction).await?;
    counters.record_version = counters.record_version.max(record.version);
    counters.write(transaction)?;
    KnownOwner::add(transaction, tenant, &known)?;
    RecordRow { tenant: tenant.clone(), owner: owner.clone(), record }.write(transaction)?;
    Ok(((), None))
}
