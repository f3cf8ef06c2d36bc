//! Dumps and restores threads verbatim.

use std::ops::ControlFlow;

use rusqlite::{Connection, Row, params};
use threadkeep_core::{
    Checksum, ChunkSize, Conflict, Dump, DumpEntry, DumpedCommit, DumpedThread, Fingerprint, IdempotencyKey, JsonText,
    Kind, MessageId, Owner, StoreError, TenantId, ThreadId, ThreadKey, Timestamp, codec, limits,
};

use crate::changes::decode_effects;
use crate::connection::Shared;
use crate::error::{self, Result};
use crate::row::{self, ThreadRow, thread_columns};
use crate::{owners, records, skip_damage, threads, writer};

pub(crate) fn dump(
    shared: &Shared,
    tenant: &TenantId,
    thread: ThreadId,
    after: Option<u64>,
    limit: usize,
) -> Result<Dump> {
    limits::check_page(limit)?;
    shared.read(|connection| {
        let transaction = connection.unchecked_transaction()?;
        let tenant_no = owners::find(shared, connection, tenant.as_str(), "")?;
        let row = find_thread(connection, tenant_no, thread, 0)?.ok_or(StoreError::NotFound(Kind::Thread))?;
        let size = ChunkSize { entries: limit, bytes: usize::MAX };
        let chunk = read_chunk(connection, &row, after, size)?;
        transaction.commit()?;
        Ok(chunk)
    })
}

/// Reads a chunk of a thread. The thread's row must be readable; the rest may be damaged.
pub(crate) fn read_chunk(
    connection: &Connection,
    thread: &ThreadRow,
    after: Option<u64>,
    size: ChunkSize,
) -> Result<Dump> {
    let mut chunk = Dump::default();
    if after.is_none() {
        chunk.thread = Some(read_thread(connection, thread, owners::find_by_number(connection, thread.owner_no)?)?);
        records::dump_thread_records(connection, thread.number, &mut chunk)?;
        read_commits(connection, thread, &mut chunk)?;
    }
    read_entries(connection, thread, after.unwrap_or(0), size, &mut chunk)?;
    Ok(chunk.with_lost(after.unwrap_or(0), thread.positions))
}

fn find_thread(connection: &Connection, tenant_no: i64, thread: ThreadId, restoring: i64) -> Result<Option<ThreadRow>> {
    let sql =
        concat!("SELECT ", thread_columns!(), " FROM threads WHERE tenant_no = ?1 AND id = ?2 AND restoring = ?3");
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![tenant_no, thread.0.as_bytes(), restoring])?;
    rows.next()?.map(row::thread_row).transpose()
}

pub(crate) fn read_thread(connection: &Connection, row: &ThreadRow, owner: Owner) -> Result<DumpedThread> {
    let sql = "SELECT key, body, created_at, updated_at, expires_at FROM threads WHERE no = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([row.number])?;
    let columns = rows.next()?.ok_or(StoreError::NotFound(Kind::Thread))?;
    let key: Option<String> = columns.get(0)?;
    let expires_at: Option<i64> = columns.get(4)?;
    Ok(DumpedThread {
        owner,
        key: key.map(ThreadKey::new).transpose()?,
        body: columns.get(1)?,
        positions: row.positions,
        created_at: row::timestamp(columns.get(2)?)?,
        updated_at: row::timestamp(columns.get(3)?)?,
        expires_at: expires_at.map(row::timestamp).transpose()?,
    })
}

pub(crate) fn read_commits(connection: &Connection, thread: &ThreadRow, chunk: &mut Dump) -> Result<()> {
    let sql = "SELECT position, at, key, fingerprint, first_seq, count, effects FROM commits \
               WHERE position BETWEEN ?1 AND ?2 ORDER BY position";
    let keys = row::key(thread.number, 0)..=row::key(thread.number, thread.positions.change.min(u64::from(u32::MAX)));
    let unread = skip_damage::read(connection, sql, keys, |row| {
        match read_commit(row) {
            Ok(commit) => chunk.commits.push(commit),
            Err(error) if error.is_damage() => chunk.unreadable.push(format!("change log entry: {}", error.detail())),
            Err(error) => return Err(error),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    chunk.unreadable.extend(unread.iter().map(|keys| {
        let (first, last) = (row::position_of_key(*keys.start()), row::position_of_key(*keys.end()));
        format!("the change log from {first} to {last} cannot be read")
    }));
    Ok(())
}

fn read_commit(row: &Row<'_>) -> Result<DumpedCommit> {
    let key: Vec<u8> = row.get(2)?;
    Ok(DumpedCommit {
        change: row::position_of_key(row.get(0)?),
        at: row::timestamp(row.get(1)?)?,
        key: IdempotencyKey::from_bytes(&key)?,
        fingerprint: Fingerprint(row.get::<_, i64>(3)?.to_be_bytes()),
        first_seq: row::unsigned(row, 4)?,
        count: row::unsigned(row, 5)?,
        effects: decode_effects(row.get(6)?)?,
    })
}

/// Reads entries up to `size`. Unreadable rows are listed in `chunk.unreadable`, and their positions count as lost.
pub(crate) fn read_entries(
    connection: &Connection,
    thread: &ThreadRow,
    after: u64,
    size: ChunkSize,
    chunk: &mut Dump,
) -> Result<()> {
    let from = (after + 1).max(thread.positions.first_seq);
    let last = thread.positions.seq.min(u64::from(u32::MAX));
    if from > last {
        return Ok(());
    }
    let sql = "SELECT position, id, external_id, revision, created_at, body, checksum FROM messages \
               WHERE position BETWEEN ?1 AND ?2 ORDER BY position";
    let mut bytes = 0_usize;
    skip_damage::read(connection, sql, row::key(thread.number, from)..=row::key(thread.number, last), |row| {
        match read_entry(row) {
            Ok(_) if !chunk.entries.is_empty() && (chunk.entries.len() >= size.entries || bytes >= size.bytes) => {
                chunk.next = chunk.entries.last().map(DumpEntry::seq);
                return Ok(ControlFlow::Break(()));
            }
            Ok(entry) => {
                bytes = bytes.saturating_add(text_bytes(&entry));
                chunk.entries.push(entry);
            }
            Err(error) if error.is_damage() => {
                let seq = row::position_of_key(row.get(0)?);
                chunk.unreadable.push(format!("position {seq}: {}", error.detail()));
            }
            Err(error) => return Err(error),
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}

fn read_entry(row: &Row<'_>) -> Result<DumpEntry> {
    let (seq, id) = (row::position_of_key(row.get(0)?), MessageId(row::uuid(row, 1)?));
    let at = row::timestamp(row.get(4)?)?;
    Ok(match row.get::<_, Option<String>>(5)? {
        None => DumpEntry::Tombstone { seq, id, erased_at: at },
        Some(body) => DumpEntry::Message {
            seq,
            id,
            external_id: row.get(2)?,
            revision: row.get(3)?,
            created_at: at,
            body,
            checksum: row::checksum(row, 6)?,
        },
    })
}

pub(crate) fn text_bytes(entry: &DumpEntry) -> usize {
    match entry {
        DumpEntry::Message { body, .. } => body.len(),
        DumpEntry::Tombstone { .. } | DumpEntry::Lost { .. } => 0,
    }
}

pub(crate) fn restore(shared: &Shared, tenant: &TenantId, thread: ThreadId, chunk: &Dump) -> Result<(), StoreError> {
    chunk.check()?;
    writer::write_blocking(shared, |connection| {
        let tenant_no = owners::find_or_insert(shared, connection, tenant.as_str(), "")?;
        if let Some(dumped) = &chunk.thread {
            begin_restore(shared, connection, tenant, tenant_no, thread, dumped)?;
        }
        let not_started =
            || StoreError::invalid("dump", "the thread's first chunk was not restored; restore the chunks in order");
        let row = find_thread(connection, tenant_no, thread, 1)?.ok_or_else(not_started)?;
        for record in &chunk.records {
            records::restore_thread_record(connection, row.number, record)?;
        }
        write_commits(connection, &row, chunk)?;
        chunk.entries.iter().try_for_each(|entry| write_entry(connection, row.number, entry))?;
        if chunk.next.is_none() {
            finish_restore(connection, &row)?;
        }
        Ok(())
    })
}

/// Creates the thread's row, which is hidden until the last chunk is restored.
fn begin_restore(
    shared: &Shared,
    connection: &Connection,
    tenant: &TenantId,
    tenant_no: i64,
    thread: ThreadId,
    dumped: &DumpedThread,
) -> Result<()> {
    if find_thread(connection, tenant_no, thread, 0)?.is_some() {
        return Err(StoreError::from(Conflict::Thread).into());
    }
    if let Some(unfinished) = find_thread(connection, tenant_no, thread, 1)? {
        threads::remove(connection, unfinished.number)?;
    }
    let owner_no = owners::find_or_insert(shared, connection, tenant.as_str(), owners::stored_name(&dumped.owner))?;
    let key = dumped.key.as_ref().map(ThreadKey::as_str);
    let sql = "SELECT 1 FROM threads WHERE owner_no = ?1 AND key = ?2";
    if key.is_some() && connection.prepare_cached(sql)?.exists(params![owner_no, key])? {
        return Err(StoreError::from(Conflict::Thread).into());
    }
    let sql = "DELETE FROM deleted_threads WHERE tenant_no = ?1 AND id = ?2";
    connection.prepare_cached(sql)?.execute(params![tenant_no, thread.0.as_bytes()])?;
    let positions = dumped.positions;
    let sql = "INSERT INTO threads (tenant_no, owner_no, id, seq, change, first_seq, log_from, message_count, stamp, \
               restoring, created_at, updated_at, expires_at, key, body) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?13, 0, ?7, 1, ?8, ?9, ?10, ?11, ?12)";
    connection.prepare_cached(sql)?.execute(params![
        tenant_no,
        owner_no,
        thread.0.as_bytes(),
        positions.seq as i64,
        row::stored_change(positions),
        positions.first_seq as i64,
        threads::next_stamp(connection)?,
        dumped.created_at.as_micros(),
        dumped.updated_at.as_micros(),
        dumped.expires_at.map(Timestamp::as_micros),
        key,
        dumped.body,
        positions.change as i64,
    ])?;
    Ok(())
}

fn write_commits(connection: &Connection, thread: &ThreadRow, chunk: &Dump) -> Result<()> {
    for commit in &chunk.commits {
        let effects = if commit.effects.is_empty() { None } else { Some(JsonText::of(&commit.effects)?) };
        let sql = "INSERT INTO commits (position, at, key, fingerprint, first_seq, count, effects) \
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        connection.prepare_cached(sql)?.execute(params![
            row::key(thread.number, commit.change),
            commit.at.as_micros(),
            commit.key.to_bytes(),
            i64::from_be_bytes(commit.fingerprint.0),
            commit.first_seq as i64,
            commit.count as i64,
            effects.as_ref().map(JsonText::as_str),
        ])?;
    }
    if let Some(first) = chunk.commits.first() {
        let sql = "UPDATE threads SET log_from = ?2 WHERE no = ?1";
        connection.prepare_cached(sql)?.execute(params![thread.number, first.change.saturating_sub(1) as i64])?;
    }
    Ok(())
}

fn write_entry(connection: &Connection, thread_no: i64, entry: &DumpEntry) -> Result<()> {
    let sql = "INSERT INTO messages (position, id, role, revision, created_at, external_id, body, checksum) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    let mut statement = connection.prepare_cached(sql)?;
    let key = row::key(thread_no, entry.seq());
    match entry {
        DumpEntry::Message { id, external_id, revision, created_at, body, checksum, .. } => {
            // A message that cannot be decoded has no role. Queries for any role report it.
            let role = codec::decode_content(body).ok().map(|content| content.role.to_stored());
            let (at, checksum) = (created_at.as_micros(), checksum.map(Checksum::to_stored));
            statement.execute(params![key, id.0.as_bytes(), role, revision, at, external_id, body, checksum])?;
        }
        DumpEntry::Tombstone { id, erased_at, .. } => {
            let (at, null) = (erased_at.as_micros(), rusqlite::types::Null);
            statement.execute(params![key, id.0.as_bytes(), null, 0, at, null, null, null])?;
        }
        DumpEntry::Lost { .. } => {}
    }
    Ok(())
}

fn finish_restore(connection: &Connection, thread: &ThreadRow) -> error::Result<()> {
    let sql = "UPDATE threads SET restoring = 0, stamp = ?4, message_count = \
               (SELECT count(*) FROM messages WHERE position BETWEEN ?2 AND ?3 AND body IS NOT NULL) WHERE no = ?1";
    connection.prepare_cached(sql)?.execute(params![
        thread.number,
        row::key(thread.number, 0),
        row::last_key(thread.number),
        threads::next_stamp(connection)?
    ])?;
    Ok(())
}
