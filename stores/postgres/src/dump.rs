//! Dumps threads verbatim.

use threadkeep_core::{
    Checksum, Dump, DumpEntry, DumpedCommit, DumpedThread, Fingerprint, IdempotencyKey, Kind, MessageId, StoreError,
    TenantId, ThreadId, ThreadKey, limits,
};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::error::{PostgresError, Result};
use crate::pool::{Caller, Parameter, Shared};
use crate::records::record;
use crate::row::{self, get, instant, message_columns, positions, signed, timestamp, unsigned};

/// Selects the number of a thread that is not being restored.
const NUMBER: &str = "(SELECT t.no FROM threadkeep.threads t WHERE t.tenant = $1 AND t.id = $2 AND NOT t.restoring)";

pub(crate) async fn dump(
    shared: &Shared,
    tenant: &TenantId,
    thread: ThreadId,
    after: Option<u64>,
    limit: usize,
) -> Result<Dump> {
    limits::check_page(limit)?;
    let tenant = tenant.as_str();
    let thread_sql = "SELECT t.owner, t.key, t.body, t.seq, t.change, t.first_seq, t.tag, t.created_at, \
                      t.updated_at, t.expires_at FROM threadkeep.threads t WHERE t.tenant = $1 AND t.id = $2 AND NOT t.restoring";
    let entries_sql = format!(
        "SELECT {}, m.checksum FROM threadkeep.messages m WHERE m.thread_no = {NUMBER} AND m.seq > greatest($3, \
         (SELECT first_seq - 1 FROM threadkeep.threads t WHERE t.no = m.thread_no)) ORDER BY m.seq LIMIT $4",
        message_columns!()
    );
    let records_sql = format!(
        "SELECT d.namespace, d.key, d.version, d.expires_at, d.value, d.tag FROM threadkeep.thread_documents d \
         WHERE d.thread_no = {NUMBER} ORDER BY d.namespace, d.key"
    );
    let commits_sql = format!(
        "SELECT c.change, c.at, c.key, c.fingerprint, c.first_seq, c.count, c.effects FROM threadkeep.commits c \
         WHERE c.thread_no = {NUMBER} ORDER BY c.change"
    );
    let values: [Parameter<'_>; 4] = [
        (&tenant, Type::TEXT),
        (&thread.0, Type::UUID),
        (&signed(after.unwrap_or(0)), Type::INT8),
        (&signed(limit as u64 + 1), Type::INT8),
    ];
    let mut statements = vec![(thread_sql, &values[..2]), (entries_sql.as_str(), &values[..])];
    if after.is_none() {
        statements.extend([(records_sql.as_str(), &values[..2]), (commits_sql.as_str(), &values[..2])]);
    }
    let answers = shared.read(&Caller::maintenance(), &statements).await?;
    let thread_row = answers[0].first().ok_or(StoreError::NotFound(Kind::Thread))?;
    let positions = positions(thread_row, 3)?;
    let entries = answers[1].iter().take(limit).map(entry).collect::<Result<Vec<_>>>()?;
    let next = entries.last().map(DumpEntry::seq).filter(|_| answers[1].len() > limit);
    if after.is_some() {
        return Ok(Dump { entries, next, ..Dump::default() }.with_lost(after.unwrap_or(0), positions));
    }
    let mut chunk = Dump { thread: Some(dumped_thread(thread_row)?), entries, next, ..Dump::default() };
    answers[2].iter().try_for_each(|row| add_record(&mut chunk, row))?;
    answers[3].iter().try_for_each(|row| add_commit(&mut chunk, row))?;
    Ok(chunk.with_lost(0, positions))
}

/// Adds a record, or lists it as unreadable.
pub(crate) fn add_record(chunk: &mut Dump, row: &Row) -> Result<()> {
    match record(row) {
        Ok(record) => chunk.records.push(record),
        Err(PostgresError::Store(error @ StoreError::Corrupt { .. })) => {
            chunk.unreadable.push(format!("record: {error}"));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

/// Adds a change log entry, or lists it as unreadable.
pub(crate) fn add_commit(chunk: &mut Dump, row: &Row) -> Result<()> {
    match dumped_commit(row) {
        Ok(commit) => chunk.commits.push(commit),
        Err(PostgresError::Store(error @ StoreError::Corrupt { .. })) => {
            chunk.unreadable.push(format!("change log entry: {error}"));
        }
        Err(error) => return Err(error),
    }
    Ok(())
}

pub(crate) fn dumped_thread(row: &Row) -> Result<DumpedThread> {
    let key: Option<String> = get(row, 1)?;
    let expires_at: Option<i64> = get(row, 9)?;
    Ok(DumpedThread {
        owner: row::owner(get(row, 0)?)?,
        key: key.map(ThreadKey::new).transpose()?,
        body: get(row, 2)?,
        positions: positions(row, 3)?,
        created_at: timestamp(row, 7)?,
        updated_at: timestamp(row, 8)?,
        expires_at: expires_at.map(instant).transpose()?,
    })
}

fn dumped_commit(row: &Row) -> Result<DumpedCommit> {
    Ok(DumpedCommit {
        change: unsigned(row, 0)?,
        at: timestamp(row, 1)?,
        key: IdempotencyKey::from_bytes(get(row, 2)?)?,
        fingerprint: Fingerprint(get::<i64>(row, 3)?.to_be_bytes()),
        first_seq: unsigned(row, 4)?,
        count: unsigned(row, 5)?,
        effects: row::decode_effects(get(row, 6)?)?,
    })
}

pub(crate) fn entry(row: &Row) -> Result<DumpEntry> {
    let (seq, id, at) = (unsigned(row, 0)?, MessageId(get(row, 1)?), timestamp(row, 4)?);
    Ok(match get::<Option<String>>(row, 5)? {
        None => DumpEntry::Tombstone { seq, id, erased_at: at },
        Some(body) => DumpEntry::Message {
            seq,
            id,
            external_id: get(row, 2)?,
            revision: get::<i32>(row, 3)?.unsigned_abs(),
            created_at: at,
            body,
            checksum: get::<Option<i32>>(row, 6)?.map(Checksum::from_stored),
        },
    })
}
