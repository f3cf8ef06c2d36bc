//! The search index of messages, which is updated outside the commit path.
//!
//! The index of a tenant is split across [`crate::keys::INDEX_PARTS`] hash slots, and the threads of one owner across
//! [`crate::keys::PARTS_OF_OWNER`] of them. A part has a list of messages for each owner, and one for all owners; `index.lua` describes them.
//! It contains no text, only short digests of terms. Each part knows how far it has indexed a thread, so an interrupted or repeated
//! call adds nothing twice. Text that was replaced or erased is kept with its thread until it is removed from the index.

pub(crate) mod postings;

use std::collections::{BTreeMap, BTreeSet};

use futures::future::try_join_all;
use threadkeep_core::{CatchUp, DumpEntry, Result, StoreError, TenantId, ThreadId, limits, text};

use self::postings::{Flush, Oldest, SIZES, bucket_field};
use crate::args::Args;
use crate::encoding::to_message;
use crate::keys::{EVERYONE, MessageTerm, incarnation, index_part, message_terms, owner_hash};
use crate::reply::{Reply, next, required_text};
use crate::row::Row;
use crate::shared::{Request, RowRange, Shared, View, Writes, parse_entries};

/// The maximum number of messages, and of bytes, in one call. A node does nothing else during a call, so calls take a few milliseconds.
const STEP_MESSAGES: usize = 25;
const STEP_BYTES: usize = 128 * 1024;
/// The maximum number of corrections in one call.
const STEP_EDITS: usize = 100;
/// The maximum number of concurrent calls.
const CONCURRENT_EDITS: usize = 32;

/// The version of the form of the index. An index of another form, or of other terms, is built again.
const LAYOUT: u32 = 2;
/// The keys of a part of the index, after their common start: those of this form, and those of the first one.
const SUFFIXES: [&str; 9] = [":c", ":d", ":h", ":b", ":l", ":w", ":n", ":t", ":o"];

/// How far one thread was indexed.
pub(crate) struct Progress {
    pub(crate) indexed: u64,
    pub(crate) is_done: bool,
}

impl Shared {
    /// Indexes at most about `limit` messages of all tenants.
    pub(crate) async fn catch_up(&self, limit: usize) -> Result<CatchUp> {
        let mut after = None;
        let mut indexed = 0;
        loop {
            let tenants = self.list_tenants(after.as_ref(), limits::PAGE).await?;
            for tenant in &tenants {
                let progress = self.catch_up_tenant(tenant, limit - indexed as usize).await?;
                indexed += progress.indexed;
                if !progress.is_done {
                    return Ok(CatchUp { indexed, done: false });
                }
            }
            if tenants.len() < limits::PAGE {
                return Ok(CatchUp { indexed, done: true });
            }
            after = tenants.into_iter().next_back();
        }
    }

    /// Indexes at most about `limit` messages of a tenant.
    pub(crate) async fn catch_up_tenant(&self, tenant: &TenantId, limit: usize) -> Result<Progress> {
        let mut progress = Progress { indexed: 0, is_done: true };
        for thread in self.list_unindexed(tenant, "", usize::MAX).await? {
            let rest = (limit as u64).saturating_sub(progress.indexed);
            if rest == 0 {
                return Ok(Progress { is_done: false, ..progress });
            }
            let step = self.index_thread(tenant, thread, rest).await?;
            progress.indexed += step.indexed;
            progress.is_done &= step.is_done;
        }
        Ok(progress)
    }

    /// Lists threads of an owner (`""` for all owners) that may have unindexed messages.
    pub(crate) async fn list_unindexed(&self, tenant: &TenantId, owner: &str, limit: usize) -> Result<Vec<ThreadId>> {
        self.flush(tenant).await?;
        let base = self.keys.tenant(tenant);
        let mut args = Args::new();
        args.add(owner).number(limit.min(1_000_000));
        let mut is_settled = false;
        loop {
            let mut parts = self.connections.read("unindexed", &base, &args).await?.items()?.into_iter();
            let threads = next(&mut parts)?.items()?;
            let marks = next(&mut parts)?.items()?;
            let now = next(&mut parts)?.number()?;
            if !marks.is_empty() && !is_settled {
                self.settle(tenant, marks, now, Some(owner).filter(|owner| !owner.is_empty())).await?;
                is_settled = true;
                continue;
            }
            let threads = threads.into_iter().map(Reply::text).collect::<Result<Vec<_>>>()?;
            return Ok(threads.into_iter().flatten().filter_map(|thread| thread.parse().ok()).collect());
        }
    }

    /// Indexes at most about `limit` messages of a thread, and corrects the index where text was replaced or removed.
    pub(crate) async fn index_thread(&self, tenant: &TenantId, thread: ThreadId, limit: u64) -> Result<Progress> {
        let _lock = self.index_lock.read().await;
        let mut indexed = 0;
        loop {
            let view = self.read(tenant, thread, &Request::row()).await?;
            let Some(view) = view.filter(|view| view.row.thread.is_some()) else {
                self.unlist(tenant, thread, 0).await?;
                return Ok(Progress { indexed, is_done: true });
            };
            let part = self.keys.index(tenant, index_part(&view.row.owner, thread));
            let watermark = self.indexed_position(&part, &view.row.born).await?;
            if watermark < view.row.positions().seq {
                if indexed >= limit {
                    return Ok(Progress { indexed, is_done: false });
                }
                let step = self.index_step(tenant, thread, &part, watermark, limit - indexed).await?;
                indexed += step.indexed;
                if step.is_done {
                    return Ok(Progress { indexed, is_done: true });
                }
            } else if view.row.edited.is_some() {
                self.apply_edits(tenant, thread, &part, view).await?;
            } else {
                self.unlist(tenant, thread, view.row.writes).await?;
                return Ok(Progress { indexed, is_done: true });
            }
        }
    }

    async fn unlist(&self, tenant: &TenantId, thread: ThreadId, writes: u64) -> Result<()> {
        let base = self.keys.tenant(tenant);
        if writes == 0 {
            let mut remove = redis::cmd("SREM");
            remove.arg(format!("{base}:u")).arg(thread.to_string());
            return self.connections.run(&remove, true).await.map(|_| ());
        }
        let args = Args::new().with(thread.to_string()).with(writes.to_string());
        self.connections.write("indexed", &base, &args).await.map(|_| ())
    }

    /// Returns the position up to which a part of the index covers a thread.
    pub(crate) async fn indexed_position(&self, part: &str, born: &str) -> Result<u64> {
        self.connections.read("index_position", part, &Args::new().with(incarnation(born))).await?.number()
    }

    /// Indexes the messages that follow a position. It is done if nothing else of the thread has to be indexed.
    async fn index_step(
        &self,
        tenant: &TenantId,
        thread: ThreadId,
        part: &str,
        watermark: u64,
        limit: u64,
    ) -> Result<Progress> {
        let range = RowRange {
            is_newest_first: false,
            first: watermark + 1,
            last: limits::LAST_POSITION,
            limit: STEP_MESSAGES.min(usize::try_from(limit).unwrap_or(STEP_MESSAGES)),
            bytes: STEP_BYTES,
            with_tombstones: false,
        };
        let Some(View { row, rows, next: rest, .. }) = self.read(tenant, thread, &Request::rows(range)).await? else {
            return Ok(Progress { indexed: 0, is_done: false });
        };
        let reached = rest.map_or(row.positions().seq, |rest| rest - 1);
        let mut args = Args::new();
        let owner = owner_hash(&row.owner);
        args.add(owner).add(incarnation(&row.born)).add(thread.0.as_bytes());
        args.number(watermark).number(reached);
        for (seq, entry) in parse_entries(&rows) {
            args.number(seq).add(joined(&entry.as_ref().map(terms_of).unwrap_or_default()));
        }
        let mut reply = self.connections.write("index_add", part, &args).await?.items()?.into_iter();
        let indexed = next(&mut reply)?.number()?;
        if next(&mut reply)?.number()? == 1 {
            self.flush_index(part, owner).await?;
        }
        // If the thread was replaced meanwhile, it may belong to another part.
        let is_same = *part == self.keys.index(tenant, index_part(&row.owner, thread));
        let is_done = is_same && rest.is_none() && indexed == reached && row.edited.is_none() && row.thread.is_some();
        if is_done {
            self.unlist(tenant, thread, row.writes).await?;
        }
        Ok(Progress { indexed: rows.len() as u64, is_done })
    }

    /// Moves messages from the logs of an owner and of all owners to their postings, until the logs are short.
    async fn flush_index(&self, part: &str, owner: [u8; 8]) -> Result<()> {
        for list in [owner, EVERYONE] {
            while self.flush_list(part, list).await? {}
        }
        Ok(())
    }

    /// Moves the oldest messages from a log to the postings. Returns `false` if the log is short.
    async fn flush_list(&self, part: &str, list: [u8; 8]) -> Result<bool> {
        let oldest = self.connections.read("index_oldest", part, &Args::new().with(list)).await?;
        let Some(oldest) = parse_oldest(oldest)? else { return Ok(false) };
        let numbers = oldest.buckets_to_read(SIZES)?;
        let mut buckets = BTreeMap::new();
        if !numbers.is_empty() {
            // Not a function, because Lua would hash all buckets. If the server has lost its data, the write below fails.
            let mut read = redis::cmd("HMGET");
            read.arg(format!("{part}:l"));
            for number in &numbers {
                read.arg([list.as_slice(), &bucket_field(*number)].concat());
            }
            let found = self.connections.run(&read, false).await?.items()?;
            for (number, bucket) in numbers.into_iter().zip(found) {
                buckets.insert(number, bucket.bytes()?.unwrap_or_default());
            }
        }
        let Flush { buckets, bytes, fields } = oldest.flush(buckets, SIZES)?;
        let mut args = Args::new();
        args.add(list).number(oldest.first).number(oldest.corrections).number(oldest.segments.len());
        args.number(buckets).number(bytes);
        for (field, content) in fields {
            args.add(field).add(content);
        }
        // If the list was flushed or corrected meanwhile, nothing is written, and the next round reads it again.
        self.connections.write("index_flush", part, &args).await?;
        Ok(true)
    }

    /// Removes the terms of text that was replaced or removed, and adds those of its replacement.
    async fn apply_edits(&self, tenant: &TenantId, thread: ThreadId, part: &str, view: View) -> Result<()> {
        let base = self.keys.thread(tenant, thread);
        let mut read = redis::cmd("LRANGE");
        read.arg(format!("{base}:p")).arg(0).arg(STEP_EDITS);
        let edits = self.connections.look_up(&read).await?.items()?.into_iter().map(Reply::text);
        let mut edits: Vec<String> = edits.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let is_last = edits.len() <= STEP_EDITS;
        edits.truncate(STEP_EDITS);
        for edits in edits.chunks(CONCURRENT_EDITS) {
            try_join_all(edits.iter().map(|edit| self.apply_edit(&base, part, &view.row, edit))).await?;
        }
        let mut row = view.row;
        row.edited = row.edited.filter(|_| !is_last);
        let mut writes = Writes::new();
        writes.command("LTRIM", &format!("{base}:p"), [edits.len().to_string(), "-1".to_owned()]);
        // Without a mark: a reader that settled it would list the thread as changed. If another process wrote to the thread meanwhile, the
        // next round repeats this one.
        self.write_quietly(tenant, thread, &view.revision, &row, writes).await.map(|_| ())
    }

    async fn apply_edit(&self, base: &str, part: &str, row: &Row, edit: &str) -> Result<()> {
        let (seq, body) = edit.split_once('\n').ok_or_else(|| StoreError::corrupt("correction", "no position"))?;
        let seq = seq.parse().map_err(|_| StoreError::corrupt("correction", "no position"))?;
        let current = self.read_entries(base, vec![seq]).await?.into_iter().next();
        let current = current.filter(|_| seq >= row.positions().first_seq);
        self.correct(part, row, seq, body, current.as_ref()).await
    }

    /// Corrects the index at one position, whose text was replaced or removed.
    pub(crate) async fn correct(
        &self,
        part: &str,
        row: &Row,
        seq: u64,
        old_body: &str,
        current: Option<&DumpEntry>,
    ) -> Result<()> {
        self.edit_index(part, row, seq, &terms_of_body(old_body), &current.map(terms_of).unwrap_or_default(), false)
            .await
    }

    /// Removes a message from the index. Its text has not been replaced since the index was last corrected.
    pub(crate) async fn remove_from_index(&self, part: &str, row: &Row, seq: u64, body: &str) -> Result<()> {
        self.edit_index(part, row, seq, &terms_of_body(body), &BTreeSet::new(), true).await
    }

    async fn edit_index(
        &self,
        part: &str,
        row: &Row,
        seq: u64,
        old: &BTreeSet<MessageTerm>,
        new: &BTreeSet<MessageTerm>,
        is_removed: bool,
    ) -> Result<()> {
        let owner = owner_hash(&row.owner);
        // A repeated call may have added the new terms.
        let all = joined(&old.union(new).copied().collect());
        let mut from = "0".to_owned();
        loop {
            let mut args = Args::new();
            args.add(owner).add(incarnation(&row.born)).number(seq).add(joined(new));
            args.number(u8::from(is_removed)).add(&from).add(&all);
            from = required_text(self.connections.write("index_edit", part, &args).await?)?;
            if from == "done" {
                return Ok(());
            }
        }
    }

    /// Removes a thread from the index, whose messages have been removed from it.
    pub(crate) async fn drop_from_index(&self, part: &str, born: &str) -> Result<()> {
        let mut from = String::new();
        while from != "done" {
            let args = Args::new().with(incarnation(born)).with(&from);
            from = required_text(self.connections.write("index_drop", part, &args).await?)?;
        }
        Ok(())
    }

    /// Deletes an index that a version with another form of the index, or with other terms, has built. The threads are indexed again.
    pub(crate) async fn prepare_index(&self) -> Result<()> {
        let mut read = redis::cmd("HGET");
        read.arg(self.keys.about()).arg("index");
        let known = self.connections.look_up(&read).await?.text()?;
        if known.as_ref() == Some(&index_version()) {
            return Ok(());
        }
        let mut after = None;
        loop {
            let tenants = self.list_tenants(after.as_ref(), limits::PAGE).await?;
            for tenant in &tenants {
                self.rebuild_index(tenant).await?;
                self.note_unindexed(tenant);
            }
            after = tenants.last().cloned();
            if tenants.len() < limits::PAGE {
                return self.note_index_version().await;
            }
        }
    }

    /// Notes that the index has the form of this version.
    pub(crate) async fn note_index_version(&self) -> Result<()> {
        let mut note = redis::cmd("HSET");
        note.arg(self.keys.about()).arg("index").arg(index_version());
        self.connections.run(&note, true).await.map(|_| ())
    }

    /// Deletes the index. The threads are indexed again.
    pub(crate) async fn rebuild_index(&self, tenant: &TenantId) -> Result<()> {
        let _lock = self.index_lock.write().await;
        let mut after = None;
        let mut threads = Vec::new();
        loop {
            let page = self.list_created(tenant, after.take()).await?;
            threads.extend(page.iter().map(|(id, _)| *id));
            match page.last() {
                Some((id, score)) if page.len() == limits::PAGE => after = Some((score.clone(), *id)),
                _ => break,
            }
        }
        for threads in threads.chunks(500) {
            let mut list = redis::cmd("SADD");
            list.arg(format!("{}:u", self.keys.tenant(tenant)));
            threads.iter().for_each(|thread| {
                list.arg(thread.to_string());
            });
            self.connections.run(&list, true).await?;
        }
        for number in 0..crate::keys::INDEX_PARTS {
            let part = self.keys.index(tenant, number);
            let mut unlink = redis::cmd("UNLINK");
            for suffix in SUFFIXES {
                unlink.arg(format!("{part}{suffix}"));
            }
            self.connections.run(&unlink, true).await?;
        }
        Ok(())
    }
}

/// Parses the reply of `index_oldest`; `None` if there is nothing to flush.
fn parse_oldest(reply: redis::Value) -> Result<Option<Oldest>> {
    let mut parts = reply.items()?.into_iter();
    let Some(first) = parts.next() else { return Ok(None) };
    let (corrections, buckets) = (next(&mut parts)?.number()?, next(&mut parts)?.number()?);
    let bytes = next(&mut parts)?.number()?;
    let segments = next(&mut parts)?.items()?.into_iter().map(|segment| Ok(segment.bytes()?.unwrap_or_default()));
    let segments = segments.collect::<Result<_>>()?;
    Ok(Some(Oldest { first: first.number()?, corrections, buckets, bytes, segments }))
}

fn index_version() -> String {
    format!("{LAYOUT}.{}", text::ANALYSIS_VERSION)
}

/// The terms of a message; none for a tombstone and for a message that cannot be decoded.
pub(crate) fn terms_of(entry: &DumpEntry) -> BTreeSet<MessageTerm> {
    match to_message(entry) {
        Some(Ok(message)) => message_terms(&message.plain_text()),
        _ => BTreeSet::new(),
    }
}

fn terms_of_body(body: &str) -> BTreeSet<MessageTerm> {
    threadkeep_core::codec::decode_content(body).map(|content| message_terms(&content.plain_text())).unwrap_or_default()
}

/// Joins terms to one text.
pub(crate) fn joined(terms: &BTreeSet<MessageTerm>) -> Vec<u8> {
    terms.iter().flatten().copied().collect()
}

#[cfg(test)]
mod tests;
