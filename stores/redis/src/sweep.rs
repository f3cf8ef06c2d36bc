//! Removes expired and obsolete data, and the remains of deleted threads and messages.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::try_join_all;
use threadkeep_core::{
    DumpEntry, Reason, RecordName, Result, StoreError, SweepReport, TenantId, ThreadId, Timestamp, limits,
};

use crate::commit::remove_entry;
use crate::encoding::decode_commit;
use crate::keys::{index_part, owner_name, parse_owner};
use crate::marks::Touch;
use crate::recovery::AFTER_ALL_WRITES;
use crate::reply::Reply;
use crate::row::{Grave, Row, has_expired, is_beyond_window};
use crate::shared::{Request, Shared, View, WriteEffects, Writes, until_written};
use crate::threads::{PARTS, bury, grave_base};

/// The maximum number of messages that one call removes.
const STEP_MESSAGES: u64 = 500;
/// The maximum number of changes that one call removes.
const STEP_CHANGES: u64 = 500;
/// The maximum number of concurrent index corrections.
const CONCURRENT_EDITS: usize = 32;
/// How long replicas may take to apply what was removed.
const REPLICA_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a rewrite of the append-only file may take.
const REWRITE_TIMEOUT: Duration = Duration::from_secs(600);
/// The interval at which its completion is polled.
const REWRITE_POLL: Duration = Duration::from_millis(20);

/// What a step of a sweep did to a thread.
enum Step {
    /// It wrote to the thread.
    Written,
    /// Another process wrote to the thread, so the step has to be repeated.
    Repeat,
    /// There is nothing to do.
    Done,
}

impl Shared {
    pub(crate) async fn sweep(&self, now: Timestamp) -> Result<SweepReport> {
        let mut report = SweepReport::default();
        let (mut after, mut rewritten) = (None, Vec::new());
        loop {
            let tenants = self.list_tenants(after.as_ref(), limits::PAGE).await?;
            for tenant in &tenants {
                self.sweep_tenant(tenant, now, &mut report).await?;
                rewritten.extend(self.garbage_mark(tenant).await?.map(|mark| (tenant.clone(), mark)));
            }
            after = tenants.last().cloned();
            if tenants.len() < limits::PAGE {
                break;
            }
        }
        if !rewritten.is_empty() {
            self.rewrite_logs().await?;
            for (tenant, mark) in rewritten {
                self.clear_garbage_mark(&tenant, &mark).await?;
            }
        }
        Ok(report)
    }

    async fn sweep_tenant(&self, tenant: &TenantId, now: Timestamp, report: &mut SweepReport) -> Result<()> {
        // Also settles marks.
        self.list_unindexed(tenant, "", 1).await?;
        let base = self.keys.tenant(tenant);
        let mut swept = HashSet::new();
        loop {
            let due = self.due(&format!("{base}:z"), now, swept.len()).await?;
            let due: Vec<ThreadId> = due.iter().filter_map(|id| id.parse().ok()).collect();
            let new: Vec<ThreadId> = due.into_iter().filter(|thread| swept.insert(*thread)).collect();
            if new.is_empty() {
                break;
            }
            for thread in new {
                self.sweep_thread(tenant, thread, now, report).await?;
            }
        }
        self.sweep_owners(tenant, now, report).await
    }

    async fn sweep_owners(&self, tenant: &TenantId, now: Timestamp, report: &mut SweepReport) -> Result<()> {
        let list = format!("{}:e", self.keys.tenant(tenant));
        for name in self.due(&list, now, 0).await? {
            let Some(owner) = parse_owner(&name) else { continue };
            // Removed first, so that a record that is written meanwhile adds its owner again.
            let mut remove = redis::cmd("ZREM");
            remove.arg(&list).arg(owner_name(&owner));
            self.connections.run(&remove, true).await?;
            let removed = self.sweep_records(tenant, &owner, now).await?;
            report.expired_records += removed;
            if removed > 0 {
                self.note_removed_text(tenant).await?;
            }
        }
        Ok(())
    }

    /// Returns the members of a list that are due: at most a page more than the `known` ones.
    async fn due(&self, list: &str, now: Timestamp, known: usize) -> Result<Vec<String>> {
        let mut read = redis::cmd("ZRANGEBYSCORE");
        read.arg(list).arg("-inf").arg(now.as_micros()).arg("LIMIT").arg(0).arg(known + limits::PAGE);
        let members = self.connections.look_up(&read).await?.items()?.into_iter().map(Reply::text);
        Ok(members.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
    }

    async fn sweep_thread(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        now: Timestamp,
        report: &mut SweepReport,
    ) -> Result<()> {
        until_written!({
            loop {
                let Some(view) = self.read(tenant, thread, &Request::row()).await? else {
                    let effects = WriteEffects { last_write: AFTER_ALL_WRITES, ..WriteEffects::default() };
                    let gone = Touch::new(thread, None, &effects);
                    self.touch(tenant, &[gone], &[]).await?;
                    // If the id was used again in between, the new thread is listed again.
                    if let Some(view) = self.read(tenant, thread, &Request::row()).await? {
                        let touch = Touch::new(thread, Some(&view.row), &WriteEffects::default());
                        self.touch(tenant, &[touch], &[]).await?;
                    }
                    return Ok(Some(()));
                };
                match self.sweep_step(tenant, thread, view, now, report).await? {
                    Step::Written => {}
                    Step::Repeat => return Ok(None),
                    Step::Done => return Ok(Some(())),
                }
            }
        })
    }

    async fn sweep_step(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        view: View,
        now: Timestamp,
        report: &mut SweepReport,
    ) -> Result<Step> {
        let View { revision, row, .. } = view;
        let sweep = Sweep { shared: self, tenant, thread, revision: &revision, now };
        let positions = row.positions();
        if row.live(now).is_none() && row.thread.is_some() {
            return sweep.expire(row, report).await;
        }
        if let Some(grave) = row.graves.first().cloned() {
            return sweep.remove_grave(row, &grave, report).await;
        }
        if row.edited.is_some() {
            self.index_thread(tenant, thread, u64::MAX).await?;
            let again = self.read(tenant, thread, &Request::row()).await?;
            let is_done = again.is_none_or(|again| again.row.edited.is_none());
            return Ok(if is_done { Step::Written } else { Step::Repeat });
        }
        if row.thread.is_some() && row.low < positions.first_seq {
            return sweep.remove_trimmed(row, report).await;
        }
        if row.log_at.is_some_and(|at| is_beyond_window(at, now)) {
            return sweep.remove_changes(row, report).await;
        }
        if has_expired(row.records_expire_at, now) {
            return sweep.remove_records(row, report).await;
        }
        match (row.thread.is_some(), row.deleted_at) {
            (true, _) => {}
            (false, Some(at)) if !is_beyond_window(at, now) => {}
            (false, _) => return sweep.forget(&row, report).await,
        }
        Ok(Step::Done)
    }

    async fn garbage_mark(&self, tenant: &TenantId) -> Result<Option<String>> {
        let mut read = redis::cmd("HGET");
        read.arg(format!("{}:n", self.keys.tenant(tenant))).arg("garbage");
        self.connections.look_up(&read).await?.text()
    }

    async fn clear_garbage_mark(&self, tenant: &TenantId, mark: &str) -> Result<()> {
        // A mark that was set after the rewrite began remains.
        if self.garbage_mark(tenant).await?.as_deref() == Some(mark) {
            let mut clear = redis::cmd("HDEL");
            clear.arg(format!("{}:n", self.keys.tenant(tenant))).arg("garbage");
            self.connections.run(&clear, true).await?;
        }
        Ok(())
    }

    /// Rewrites the append-only files of all nodes, because they still contain removed text.
    async fn rewrite_logs(&self) -> Result<()> {
        let (is_enabled, _) = self.persistence().await?;
        if !is_enabled {
            return Ok(());
        }
        self.wait_for_replicas().await?;
        // A rewrite that is in progress may have begun before the text was removed.
        self.wait_for_rewrites().await?;
        let end = tokio::time::Instant::now() + REWRITE_TIMEOUT;
        let rewrite = redis::cmd("BGREWRITEAOF");
        while let Err(error) = self.connections.run_on_all(&rewrite).await {
            if tokio::time::Instant::now() >= end || !error.is_retryable() && !is_in_progress(&error) {
                return Err(error);
            }
            tokio::time::sleep(REWRITE_POLL).await;
        }
        self.wait_for_rewrites().await
    }

    /// Waits until the replicas have applied all removals. A replica that rewrote its file before would write the text again.
    async fn wait_for_replicas(&self) -> Result<()> {
        let end = tokio::time::Instant::now() + REPLICA_TIMEOUT;
        let written = self.replication().await?;
        loop {
            let current = self.replication().await?;
            let has_applied = |primary: &Replication| {
                let same = current.iter().find(|other| other.id == primary.id);
                same.is_some_and(|now| now.applied.iter().all(|offset| *offset >= primary.offset))
            };
            if written.iter().all(has_applied) {
                return Ok(());
            }
            if tokio::time::Instant::now() >= end {
                return Err(StoreError::unavailable(Reason::Timeout));
            }
            tokio::time::sleep(REWRITE_POLL).await;
        }
    }

    /// Returns the replication of each primary.
    async fn replication(&self) -> Result<Vec<Replication>> {
        let mut info = redis::cmd("INFO");
        info.arg("replication");
        let mut primaries = Vec::new();
        for reply in self.connections.run_on_all(&info).await? {
            primaries.extend(reply.text()?.and_then(|text| Replication::parse(&text)));
        }
        Ok(primaries)
    }

    async fn wait_for_rewrites(&self) -> Result<()> {
        let end = tokio::time::Instant::now() + REWRITE_TIMEOUT;
        while self.persistence().await?.1 {
            if tokio::time::Instant::now() >= end {
                return Err(StoreError::unavailable(Reason::Timeout));
            }
            tokio::time::sleep(REWRITE_POLL).await;
        }
        Ok(())
    }

    /// Returns whether any node has an append-only file, and whether any node is rewriting it.
    async fn persistence(&self) -> Result<(bool, bool)> {
        let mut info = redis::cmd("INFO");
        info.arg("persistence");
        let (mut is_enabled, mut is_rewriting) = (false, false);
        for reply in self.connections.run_on_all(&info).await? {
            let text = reply.text()?.unwrap_or_default();
            let is_set = |name: &str| text.lines().any(|line| line.trim() == format!("{name}:1"));
            is_enabled |= is_set("aof_enabled");
            is_rewriting |= is_set("aof_rewrite_in_progress") || is_set("aof_rewrite_scheduled");
        }
        Ok((is_enabled, is_rewriting))
    }
}

fn is_in_progress(error: &StoreError) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.to_string().contains("in progress"))
}

/// How far the log of a primary was applied.
#[derive(Debug, PartialEq, Eq)]
struct Replication {
    /// The id of the log.
    id: String,
    /// The end of the log.
    offset: u64,
    /// How far each replica has applied it. A replica that is still copying the primary has applied nothing.
    applied: Vec<u64>,
}

impl Replication {
    /// Parses the replication section of `INFO`; returns `None` for a replica.
    fn parse(info: &str) -> Option<Self> {
        let value = |name: &str| info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'));
        if value("role")? != "master" {
            return None;
        }
        let lines = info.lines().map(str::trim).filter(|line| line.starts_with("slave") && line.contains(",state="));
        let applied =
            lines.filter_map(|line| line.split(',').find_map(|part| part.strip_prefix("offset="))?.parse().ok());
        Some(Self {
            id: value("master_replid")?.to_owned(),
            offset: value("master_repl_offset")?.parse().ok()?,
            applied: applied.collect(),
        })
    }
}

/// A step of the sweep of one thread.
struct Sweep<'a> {
    shared: &'a Shared,
    tenant: &'a TenantId,
    thread: ThreadId,
    revision: &'a str,
    now: Timestamp,
}

impl Sweep<'_> {
    fn base(&self) -> String {
        self.shared.keys.thread(self.tenant, self.thread)
    }

    async fn write(&self, mut row: Row, writes: Writes, removed_text: bool) -> Result<Step> {
        row.writes += 1;
        let effects = WriteEffects { is_quiet: true, removed_text, ..WriteEffects::default() };
        let written =
            self.shared.write(self.tenant, self.thread, Some(self.revision), Some(&row), writes, effects).await?;
        Ok(if written { Step::Written } else { Step::Repeat })
    }

    async fn expire(&self, row: Row, report: &mut SweepReport) -> Result<Step> {
        let mut writes = Writes::new();
        let key = row.thread.as_ref().and_then(|thread| thread.key.clone());
        let owner = row.owner.clone();
        let graves = bury(&mut writes, &self.base(), &row);
        let row = Row {
            thread: None,
            deleted_at: None,
            count: 0,
            log_at: None,
            records_expire_at: None,
            gaps: Vec::new(),
            edited: None,
            is_driven: false,
            graves,
            ..row
        };
        let step = self.write(row, writes, true).await?;
        if matches!(step, Step::Written) {
            report.expired_threads += 1;
            if let Some(key) = key {
                self.shared.release_claim(self.tenant, &owner, &key, self.thread).await?;
            }
        }
        Ok(step)
    }

    /// Removes a former thread from the index, then removes its messages.
    async fn remove_grave(&self, mut row: Row, grave: &Grave, report: &mut SweepReport) -> Result<Step> {
        let base = grave_base(&self.base(), &grave.born);
        let part = self.shared.keys.index(self.tenant, index_part(&grave.owner, self.thread));
        if let Some(former) = self.shared.read_at(&base, &Request::row()).await? {
            self.remove_corrections(&base, &part, &former.row).await?;
            let indexed = self.shared.indexed_position(&part, &grave.born).await?;
            let mut low = former.row.low;
            while low <= former.row.positions().seq {
                let (entries, next) = self.read_step(&base, &former.row, low, former.row.positions().seq + 1).await?;
                report.leftover_messages += count_messages(&entries);
                if low <= indexed {
                    self.remove_from_index(&part, &former.row, &entries).await?;
                }
                low = next;
            }
        }
        self.shared.drop_from_index(&part, &grave.born).await?;
        let mut writes = Writes::new();
        writes.unlink(&format!("{base}:t"));
        for part in PARTS {
            writes.unlink(&format!("{base}{part}"));
        }
        row.graves.retain(|other| other.born != grave.born);
        self.write(row, writes, true).await
    }

    /// Removes text from the index that was replaced before the thread was deleted.
    async fn remove_corrections(&self, base: &str, part: &str, row: &Row) -> Result<()> {
        let mut read = redis::cmd("LRANGE");
        read.arg(format!("{base}:p")).arg(0).arg(-1);
        for edit in self.shared.connections.look_up(&read).await?.items()? {
            let edit = edit.text()?.unwrap_or_default();
            let Some((seq, body)) = edit.split_once('\n') else { continue };
            let Ok(seq) = seq.parse() else { continue };
            self.shared.correct(part, row, seq, body, None).await?;
        }
        Ok(())
    }

    async fn remove_from_index(&self, part: &str, row: &Row, entries: &[DumpEntry]) -> Result<()> {
        for entries in entries.chunks(CONCURRENT_EDITS) {
            let corrections = entries.iter().filter_map(|entry| match entry {
                DumpEntry::Message { seq, body, .. } => Some(self.shared.remove_from_index(part, row, *seq, body)),
                _ => None,
            });
            try_join_all(corrections).await?;
        }
        Ok(())
    }

    /// Reads rows from a position up to `end` (exclusive). Also returns the position at which to continue.
    async fn read_step(&self, base: &str, row: &Row, low: u64, end: u64) -> Result<(Vec<DumpEntry>, u64)> {
        let mut seqs = Vec::new();
        let mut at = low;
        while at < end && (seqs.len() as u64) < STEP_MESSAGES {
            match row.gaps.iter().find(|(first, last)| (*first..=*last).contains(&at)) {
                Some((_, last)) => at = last + 1,
                None => {
                    seqs.push(at);
                    at += 1;
                }
            }
        }
        Ok((self.shared.read_entries(base, seqs).await?, at.min(end)))
    }

    async fn remove_trimmed(&self, mut row: Row, report: &mut SweepReport) -> Result<Step> {
        let base = self.base();
        let (entries, next) = self.read_step(&base, &row, row.low, row.positions().first_seq).await?;
        let part = self.shared.keys.index(self.tenant, index_part(&row.owner, self.thread));
        if row.low <= self.shared.indexed_position(&part, &row.born).await? {
            self.remove_from_index(&part, &row, &entries).await?;
        }
        let mut writes = Writes::new();
        for entry in &entries {
            remove_entry(&mut writes, &base, entry);
        }
        row.low = next;
        row.gaps.retain(|(_, last)| *last >= next);
        let step = self.write(row, writes, true).await?;
        if matches!(step, Step::Written) {
            report.leftover_messages += count_messages(&entries);
        }
        Ok(step)
    }

    async fn remove_changes(&self, mut row: Row, report: &mut SweepReport) -> Result<Step> {
        let base = self.base();
        let numbers: Vec<u64> = (row.log_from..=row.positions().change).take(STEP_CHANGES as usize + 1).collect();
        let mut read = redis::cmd("HMGET");
        read.arg(format!("{base}:c")).arg(&numbers);
        let commits = self.shared.connections.look_up(&read).await?.items()?;
        let mut writes = Writes::new();
        let mut removed = 0;
        row.log_at = None;
        for (number, commit) in numbers.into_iter().zip(commits) {
            row.log_from = number;
            let Some(json) = commit.bytes()? else { continue };
            let commit = decode_commit(&json)?;
            if !is_beyond_window(commit.at, self.now) || removed == STEP_CHANGES {
                row.log_at = Some(commit.at);
                break;
            }
            let mut newest = redis::cmd("HGET");
            newest.arg(format!("{base}:k")).arg(commit.key.to_bytes());
            if self.shared.connections.look_up(&newest).await?.text()? == Some(number.to_string()) {
                writes.command("HDEL", &format!("{base}:k"), [commit.key.to_bytes()]);
            }
            writes.command("HDEL", &format!("{base}:c"), [number.to_string()]);
            removed += 1;
        }
        let step = self.write(row, writes, false).await?;
        if matches!(step, Step::Written) {
            report.commit_records += removed;
        }
        Ok(step)
    }

    async fn remove_records(&self, mut row: Row, report: &mut SweepReport) -> Result<Step> {
        let base = self.base();
        let mut writes = Writes::new();
        let (mut from, mut removed) = (b"-".to_vec(), 0);
        row.records_expire_at = None;
        loop {
            let (page, last) = self.shared.read_records(&base, &from, b"+", limits::PAGE).await?;
            for record in page {
                if has_expired(record.expires_at, self.now) {
                    let name = RecordName { namespace: record.namespace, key: record.key };
                    writes.remove_record(&base, &name);
                    row.is_driven &= name != RecordName::driver();
                    removed += 1;
                } else {
                    row.note_record(&record);
                }
            }
            match last {
                Some(last) => from = [b"(".as_slice(), &last].concat(),
                None => break,
            }
        }
        let step = self.write(row, writes, removed > 0).await?;
        if matches!(step, Step::Written) {
            report.expired_records += removed;
        }
        Ok(step)
    }

    /// Removes the last trace of a thread.
    async fn forget(&self, row: &Row, report: &mut SweepReport) -> Result<Step> {
        let (deleted_at, last_write) = (row.deleted_at, row.writes + 1);
        let effects = WriteEffects { is_quiet: true, last_write, ..WriteEffects::default() };
        let written =
            self.shared.write(self.tenant, self.thread, Some(self.revision), None, Writes::new(), effects).await?;
        if written {
            report.deleted_ids += u64::from(deleted_at.is_some());
            return Ok(Step::Written);
        }
        Ok(Step::Repeat)
    }
}

fn count_messages(entries: &[DumpEntry]) -> u64 {
    entries.iter().filter(|entry| matches!(entry, DumpEntry::Message { .. })).count() as u64
}

#[cfg(test)]
mod tests {
    use super::Replication;

    #[test]
    fn the_replication_of_a_primary_names_what_replicas_have_applied() {
        let info = "# Replication\r\nrole:master\r\nconnected_slaves:2\r\n\
                    slave0:ip=127.0.0.1,port=7001,state=online,offset=140,lag=0\r\n\
                    slave1:ip=127.0.0.1,port=7002,state=wait_bgsave,offset=0,lag=0\r\n\
                    master_replid:a1b2\r\nmaster_repl_offset:154\r\n";
        let expected = Replication { id: "a1b2".to_owned(), offset: 154, applied: vec![140, 0] };
        assert_eq!(Replication::parse(info), Some(expected));
        assert_eq!(Replication::parse("role:slave\r\nmaster_replid:a1b2\r\nmaster_repl_offset:154\r\n"), None);
    }
}
