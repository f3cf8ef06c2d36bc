//! Dumps and restores threads verbatim, and lists what a store contains.

use threadkeep_core::{
    Conflict, DrivenThread, Dump, DumpEntry, Kind, Owner, RecordOwner, Result, StoreError, TenantId, ThreadId,
    Timestamp, WakeUp, limits,
};

use crate::idb::Transaction;
use crate::keys::{self, index};
use crate::rows::{
    Counters, KnownOwner, RecordRow, ThreadRow, delete_parts, has_expired, parse_commit, parse_entry, to_text,
    write_commit, write_dumped_entry,
};

/// How many rows are read at once.
const BATCH: usize = 256;

/// The stored rows of a chunk.
#[derive(Default)]
pub(crate) struct Chunk {
    pub(crate) records: Vec<String>,
    pub(crate) commits: Vec<String>,
    /// One more than the chunk has, if there are more.
    pub(crate) entries: Vec<String>,
}

impl Chunk {
    /// Builds a dump with at most `limit` entries. Rows that cannot be parsed are reported, or become lost positions.
    pub(crate) fn into_dump(self, row: &ThreadRow, after: Option<u64>, limit: usize) -> Dump {
        let mut dump = Dump::default();
        if after.is_none() {
            dump.thread = Some(row.thread.clone());
            for text in &self.records {
                match RecordRow::parse(text) {
                    Ok(found) => dump.records.push(found.record),
                    Err(error) => dump.unreadable.push(error.to_string()),
                }
            }
            for text in &self.commits {
                match parse_commit(text) {
                    Ok(commit) => dump.commits.push(commit),
                    Err(error) => dump.unreadable.push(error.to_string()),
                }
            }
        }
        dump.entries = self.entries.iter().take(limit).filter_map(|text| parse_entry(text).ok()).collect();
        if self.entries.len() > limit {
            let last = dump.entries.last().map(DumpEntry::seq);
            dump.next = Some(last.unwrap_or_else(|| after.unwrap_or(0).saturating_add(limit as u64)));
        }
        dump.with_lost(after.unwrap_or(0), row.thread.positions)
    }
}

pub(crate) async fn dump_thread(
    transaction: &Transaction,
    tenant: &TenantId,
    id: ThreadId,
    after: Option<u64>,
    limit: usize,
) -> Result<Dump> {
    limits::check_page(limit)?;
    let row = ThreadRow::find(transaction, tenant, id).await?.ok_or(StoreError::NotFound(Kind::Thread))?;
    let mut chunk = Chunk::default();
    if after.is_none() {
        let owner = RecordOwner::Thread(id);
        chunk.records = transaction.range(&keys::records(tenant, &owner, None, ""), usize::MAX).await?;
        chunk.commits = transaction.range(&keys::commits(tenant, id), usize::MAX).await?;
    }
    let entries = keys::entries(tenant, id, after.map_or(0, |after| after.saturating_add(1)), u64::MAX);
    chunk.entries = transaction.range(&entries, limit + 1).await?;
    Ok(chunk.into_dump(&row, after, limit))
}

/// Until its last chunk is written, a thread has messages but no row, so no one sees it.
pub(crate) async fn restore_thread(
    transaction: &Transaction,
    tenant: &TenantId,
    id: ThreadId,
    chunk: Dump,
) -> Result<(bool, Option<WakeUp>)> {
    let unfinished_key = keys::unfinished(tenant, id);
    let unfinished = transaction.get(&unfinished_key).await?.map(|text| ThreadRow::parse(&text)).transpose()?;
    let Dump { thread, records, commits, entries, next, .. } = chunk;
    let is_first = thread.is_some();
    let mut row = match (thread, unfinished) {
        (Some(thread), _) => ThreadRow { tenant: tenant.clone(), id, thread, messages: 0, created: 0, stamp: 0 },
        (None, Some(unfinished)) => unfinished,
        (None, None) => {
            return Err(StoreError::invalid(
                "dump",
                "the thread's first chunk was not restored; restore the chunks in order",
            ));
        }
    };
    if is_in_use(transaction, &row).await? {
        transaction.delete(&unfinished_key)?;
        if ThreadRow::find(transaction, tenant, id).await?.is_none() {
            delete_parts(transaction, tenant, id)?;
        }
        return Ok((false, None));
    }
    if is_first {
        delete_parts(transaction, tenant, id)?;
    }
    for record in records {
        RecordRow { tenant: tenant.clone(), owner: RecordOwner::Thread(id), record }.write(transaction)?;
    }
    for commit in &commits {
        write_commit(transaction, tenant, id, commit)?;
    }
    for entry in &entries {
        row.messages += u64::from(matches!(entry, DumpEntry::Message { .. }));
        write_dumped_entry(transaction, tenant, id, entry)?;
    }
    if next.is_some() {
        transaction.put(&unfinished_key, &to_text(&row)?, &[])?;
        return Ok((true, None));
    }
    let mut counters = Counters::read(transaction).await?;
    row.created = counters.next_stamp();
    row.stamp = row.created;
    counters.write(transaction)?;
    transaction.delete(&unfinished_key)?;
    transaction.delete(&keys::deleted(tenant, id))?;
    KnownOwner::add(transaction, tenant, &row.thread.owner)?;
    row.write(transaction)?;
    let owner = row.thread.owner;
    Ok((true, Some(WakeUp::Thread { tenant: tenant.clone(), owner, thread: id, change: None })))
}

/// Whether an existing thread has the id or the key of a thread that is being restored.
async fn is_in_use(transaction: &Transaction, row: &ThreadRow) -> Result<bool> {
    if transaction.get(&keys::thread(&row.tenant, row.id)).await?.is_some() {
        return Ok(true);
    }
    let Some(key) = &row.thread.key else { return Ok(false) };
    Ok(transaction.get_indexed(&index::thread_key(&row.tenant, &row.thread.owner, key)).await?.is_some())
}

/// The error of a restoration that [`restore_thread`] refused.
pub(crate) fn refusal() -> StoreError {
    Conflict::Thread.into()
}

pub(crate) async fn list_tenants(
    transaction: &Transaction,
    after: Option<&TenantId>,
    limit: usize,
) -> Result<Vec<TenantId>> {
    limits::check_page(limit)?;
    let mut tenants: Vec<TenantId> = Vec::new();
    while tenants.len() < limit {
        let range = keys::tenants_after(tenants.last().or(after));
        let Some(first) = transaction.range(&range, 1).await?.into_iter().next() else { break };
        tenants.push(KnownOwner::parse(&first)?.tenant);
    }
    Ok(tenants)
}

pub(crate) async fn list_owners(
    transaction: &Transaction,
    tenant: &TenantId,
    after: Option<&Owner>,
    limit: usize,
) -> Result<Vec<Owner>> {
    limits::check_page(limit)?;
    let mut range = keys::known_owners(tenant);
    if let Some(after) = after {
        range = range.after(&keys::known_owner(tenant, after));
    }
    let texts = transaction.range(&range, limit).await?;
    texts.iter().map(|text| Ok(KnownOwner::parse(text)?.owner)).collect()
}

pub(crate) async fn list_driven_threads(
    transaction: &Transaction,
    after: Option<&DrivenThread>,
    limit: usize,
    now: Timestamp,
) -> Result<Vec<DrivenThread>> {
    limits::check_page(limit)?;
    let mut driven: Vec<DrivenThread> = Vec::new();
    let mut range = index::driven_after(after.map(|after| (&after.tenant, after.thread)));
    loop {
        let texts = transaction.range_indexed(&range, BATCH).await?;
        let mut last = None;
        for text in texts {
            let RecordRow { tenant, owner: RecordOwner::Thread(thread), record } = RecordRow::parse(&text)? else {
                continue;
            };
            last = Some(index::driven(&tenant, thread));
            let row = ThreadRow::find(transaction, &tenant, thread).await?.filter(|row| row.is_live(now));
            if let Some(row) = row.filter(|_| !has_expired(record.expires_at, now)) {
                driven.push(DrivenThread { tenant, thread, owner: row.thread.owner, record });
            }
        }
        match last {
            Some(last) if driven.len() < limit => range = range.after(&last),
            _ => break,
        }
    }
    driven.truncate(limit);
    Ok(driven)
}
