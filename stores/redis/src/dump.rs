//! Dumps and restores threads verbatim.
//!
//! A thread that is being restored is stored under temporary keys in the same hash slot. They are renamed when it is complete.

use redis::Value;
use threadkeep_core::{
    Conflict, Dump, DumpEntry, DumpedCommit, DumpedThread, Kind, Positions, Record, RecordName, Result, StoreError,
    TenantId, ThreadId, limits,
};

use crate::commit::{put_commit, put_entries, thread_wake_up};
use crate::encoding::decode_commit;
use crate::reply::Reply;
use crate::row::Row;
use crate::shared::{
    Request, RowRange, Shared, View, WriteEffects, Writes, parse_entries, parse_record, until_written,
};
use crate::threads::PARTS;

/// The maximum total size of the rows that one call reads, in bytes.
const MAX_BYTES: usize = 64 * 1024 * 1024;

impl Shared {
    pub(crate) async fn dump_thread(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Dump> {
        limits::check_page(limit)?;
        until_written!(self.try_dump(tenant, thread, after, limit).await)
    }

    async fn try_dump(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Option<Dump>> {
        let rows = RowRange {
            is_newest_first: false,
            first: after.map_or(0, |after| after + 1),
            last: limits::LAST_POSITION,
            limit: limit + 1,
            bytes: MAX_BYTES,
            with_tombstones: true,
        };
        let view = self.read(tenant, thread, &Request::rows(rows)).await?;
        let not_found = || StoreError::NotFound(Kind::Thread);
        let View { revision, row, rows, next, .. } = view.ok_or_else(not_found)?;
        let row_of_thread = row.thread.clone().ok_or_else(not_found)?;
        let mut dump = Dump::default();
        if after.is_none() {
            let base = self.keys.thread(tenant, thread);
            self.dump_log(&base, row_of_thread, &mut dump).await?;
            let again = self.read(tenant, thread, &Request::row()).await?;
            if again.is_none_or(|again| again.revision != revision) {
                return Ok(None);
            }
        }
        let has_more = rows.len() > limit || next.is_some();
        for (_, entry) in parse_entries(&rows).take(limit) {
            match entry {
                Ok(entry) => dump.entries.push(entry),
                Err(error) => dump.unreadable.push(error.to_string()),
            }
        }
        dump.next = rows.iter().take(limit).next_back().map(|(seq, _)| *seq).filter(|_| has_more);
        Ok(Some(dump.with_lost(after.unwrap_or(0), row.positions())))
    }

    async fn dump_log(&self, base: &str, row: DumpedThread, dump: &mut Dump) -> Result<()> {
        for value in self.values(&format!("{base}:c")).await? {
            match value.bytes().and_then(|json| decode_commit(&json.unwrap_or_default())) {
                Ok(commit) => dump.commits.push(commit),
                Err(error) => dump.unreadable.push(error.to_string()),
            }
        }
        dump.commits.sort_by_key(|commit| commit.change);
        for value in self.values(&format!("{base}:d")).await? {
            match parse_record(value) {
                Ok(record) => dump.records.extend(record),
                Err(error) => dump.unreadable.push(error.to_string()),
            }
        }
        dump.records.sort_by(|one, other| (&one.namespace, &one.key).cmp(&(&other.namespace, &other.key)));
        dump.thread = Some(row);
        Ok(())
    }

    pub(crate) async fn values(&self, key: &str) -> Result<Vec<Value>> {
        let mut read = redis::cmd("HVALS");
        read.arg(key);
        self.connections.look_up(&read).await?.items()
    }

    pub(crate) async fn restore_thread(&self, tenant: &TenantId, thread: ThreadId, chunk: Dump) -> Result<()> {
        chunk.check()?;
        let _lock = self.lock(thread).await;
        let base = format!("{}:new", self.keys.thread(tenant, thread));
        let is_last = chunk.next.is_none();
        let row = until_written!(self.try_restore_chunk(&base, &chunk).await)?;
        let key = row.thread.as_ref().and_then(|thread| thread.key.clone());
        let conflict = match &key {
            Some(key) => match self.find_id(tenant, &row.owner, key).await? {
                Some(other) if other != thread => self.has_thread(tenant, other).await?,
                _ => false,
            },
            None => false,
        };
        if conflict || self.has_thread(tenant, thread).await? {
            self.discard(&base).await?;
            return Err(Conflict::Thread.into());
        }
        if !is_last {
            return Ok(());
        }
        if let Some(key) = &key {
            self.take_claim(tenant, &row.owner, key, thread).await?;
        }
        until_written!(self.try_finish(tenant, thread, &base, row.clone()).await)
    }

    async fn has_thread(&self, tenant: &TenantId, thread: ThreadId) -> Result<bool> {
        let view = self.read(tenant, thread, &Request::row()).await?;
        Ok(view.is_some_and(|view| view.row.thread.is_some()))
    }

    /// Adds a chunk to a thread that is being restored.
    async fn try_restore_chunk(&self, base: &str, chunk: &Dump) -> Result<Option<Row>> {
        let mut writes = Writes::new();
        let (expected, mut row) = match (&chunk.thread, self.read_at(base, &Request::row()).await?) {
            (Some(thread), view) => {
                for part in PARTS {
                    writes.unlink(&format!("{base}{part}"));
                }
                (view.map(|view| view.revision), Row::new(thread.clone(), writes.revision.clone()))
            }
            (None, Some(view)) => (Some(view.revision), view.row),
            (None, None) => {
                return Err(StoreError::invalid(
                    "dump",
                    "the thread's first chunk was not restored; restore the chunks in order",
                ));
            }
        };
        restore_log(&mut writes, base, &mut row, &chunk.records, &chunk.commits);
        restore_entries(&mut writes, base, &mut row, &chunk.entries);
        let args = writes.into_args(base, expected.as_deref(), Some(&row));
        let is_written = self.connections.write("apply", &format!("{base}:t"), &args).await?.number()? == 1;
        Ok(is_written.then_some(row))
    }

    /// Makes a restored thread visible.
    async fn try_finish(&self, tenant: &TenantId, thread: ThreadId, base: &str, mut row: Row) -> Result<Option<()>> {
        let view = self.read(tenant, thread, &Request::row()).await?;
        if let Some(view) = &view {
            row.writes = view.row.writes + 1;
            row.graves.clone_from(&view.row.graves);
        }
        let Positions { first_seq, seq, .. } = row.positions();
        add_gap(&mut row, seq + 1);
        row.gaps.retain(|(first, last)| *first >= first_seq && last <= &seq);
        row.restored_to = None;
        let mut writes = Writes::new();
        let target = self.keys.thread(tenant, thread);
        for part in PARTS {
            writes.rename(&format!("{base}{part}"), &format!("{target}{part}"));
        }
        writes.unlink(&format!("{base}:t"));
        let wake_up = Some(thread_wake_up(tenant, &row, thread));
        let effects = WriteEffects { has_unindexed: true, wake_up, ..WriteEffects::default() };
        let expected = view.as_ref().map(|view| view.revision.as_str());
        Ok(self.write(tenant, thread, expected, Some(&row), writes, effects).await?.then_some(()))
    }

    async fn discard(&self, base: &str) -> Result<()> {
        let mut unlink = redis::cmd("UNLINK");
        unlink.arg(format!("{base}:t"));
        for part in PARTS {
            unlink.arg(format!("{base}{part}"));
        }
        self.connections.run(&unlink, true).await.map(|_| ())
    }
}

fn restore_log(writes: &mut Writes, base: &str, row: &mut Row, records: &[Record], commits: &[DumpedCommit]) {
    for record in records {
        writes.put_record(base, record);
        row.note_record(record);
        let name = RecordName { namespace: record.namespace.clone(), key: record.key.clone() };
        row.is_driven |= name == RecordName::driver();
    }
    for commit in commits {
        put_commit(writes, base, commit);
        if row.log_at.is_none() || commit.change < row.log_from {
            (row.log_from, row.log_at) = (commit.change, Some(commit.at));
        }
    }
}

fn restore_entries(writes: &mut Writes, base: &str, row: &mut Row, entries: &[DumpEntry]) {
    put_entries(writes, base, entries);
    for entry in entries {
        row.count += u64::from(matches!(entry, DumpEntry::Message { .. }));
        if matches!(entry, DumpEntry::Lost { .. }) {
            continue;
        }
        add_gap(row, entry.seq());
        row.restored_to = Some(entry.seq());
    }
}

/// Records the positions between the last restored one and `next` as lost.
fn add_gap(row: &mut Row, next: u64) {
    let expected = row.restored_to.map_or(row.positions().first_seq, |last| last + 1);
    if next > expected {
        row.gaps.push((expected, next - 1));
    }
}
