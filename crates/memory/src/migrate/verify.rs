use futures::StreamExt;
use serde::Serialize;
use threadkeep_core::{ChunkSize, Dump, ListedThread, OwnedRecord, Result};

use super::digest::{self, Sum, ThreadDigest};
use super::{Damage, Differences, Item, Migration, Progress, survey, walk};
use crate::retry::retry;

/// Maximum number of threads that are read concurrently.
const CONCURRENT_READS: usize = 4;

/// The result of comparing all data in source and target.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Verification {
    /// The data in the source.
    pub source: Totals,
    /// The data in the target under the same ids.
    pub target: Totals,
    /// The differences.
    pub differences: Differences,
    /// Damaged data in the source, which was copied unchanged or omitted.
    #[serde(skip_serializing_if = "Damage::is_empty")]
    pub damage: Damage,
    /// Number of threads that exist only in the target. This is not an error.
    pub only_in_target: u64,
}

/// The counts of all data, and a hash of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Number of threads.
    pub threads: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of tombstones of erased messages.
    pub tombstones: u64,
    /// Number of commits, which are the entries of the change log with their idempotency records.
    pub commits: u64,
    /// Number of records of threads, users and tenants.
    #[serde(rename = "documents")]
    pub records: u64,
    /// The sum of the SHA-256 hashes of all threads and records, in hexadecimal. It does not depend on their order.
    pub hash: String,
    #[serde(skip)]
    sum: Sum,
}

impl Migration {
    /// Reads all data in source and target. Compares every thread and record in the snapshot with the current one in the target:
    /// threads by counts and hash, records by their content.
    ///
    /// # Errors
    /// Errors from the stores.
    pub async fn verify(&self, mut progress: impl FnMut(Progress)) -> Result<Verification> {
        let mut found = Verification::default();
        let mut done = Progress::default();
        let mut threads = walk::Threads::of(self.runtime(), &*self.source);
        while let Some(page) = threads.next_page().await? {
            let first_chunks =
                walk::FirstChunks::of(self.runtime(), &*self.source, page.iter().map(|listed| listed.number));
            let threads_with_chunks = futures::stream::iter(page).zip(first_chunks.into_stream());
            let pairs = threads_with_chunks.map(async |(listed, first)| self.verify_thread(listed, first?).await);
            let mut pairs = std::pin::pin!(pairs.buffer_unordered(CONCURRENT_READS));
            while let Some(pair) = pairs.next().await {
                let pair = pair?;
                done.threads += 1;
                done.messages += pair.source.messages;
                found.add_thread(pair);
                progress(done);
            }
        }
        self.verify_records(&mut found, &mut done).await?;
        progress(done);
        let target = self.to.maintenance.snapshot(self.now).await?.totals().await?;
        found.only_in_target = target.threads.saturating_sub(found.target.threads);
        found.damage.add_unreadable(&*self.source);
        for totals in [&mut found.source, &mut found.target] {
            totals.hash = totals.sum.to_hex();
        }
        Ok(found)
    }

    async fn verify_thread(&self, listed: ListedThread, first: Dump) -> Result<Pair> {
        let mut source = digest::digest_listed_thread(self.runtime(), &*self.source, &listed, first).await?;
        let mut target =
            digest::digest_stored_thread(self.runtime(), &self.to, &listed.tenant, listed.thread.id).await?;
        let damage = std::mem::take(&mut source.damage);
        if let Some(target) = &mut target {
            target.damage.clear();
        }
        let difference = match &target {
            None => Some("missing from the target".to_owned()),
            Some(target) if source == *target => None,
            Some(_) => Some(self.find_difference(&listed).await?),
        };
        Ok(Pair { listed, source, target, difference, damage })
    }

    /// Reads the thread chunk by chunk from source and target, and describes the first difference.
    async fn find_difference(&self, listed: &ListedThread) -> Result<String> {
        let size = ChunkSize { entries: 100, bytes: usize::MAX };
        let (tenant, thread) = (&listed.tenant, listed.thread.id);
        let (numbers, mut after) = ([listed.number], None);
        loop {
            let source = retry(self.runtime(), || self.source.dump_threads(&numbers, after, size)).await?;
            let read_target = || self.to.maintenance.dump_thread(tenant, thread, after, size.entries);
            let (source, target) = (source.into_iter().next(), retry(self.runtime(), read_target).await?);
            let next = source.as_ref().and_then(|source| source.next);
            if let Some(difference) = source.and_then(|source| describe_chunk_difference(source, target)) {
                return Ok(difference);
            }
            match next {
                Some(next) => after = Some(next),
                None => return Ok("it changed in the target while it was read".to_owned()),
            }
        }
    }

    async fn verify_records(&self, found: &mut Verification, done: &mut Progress) -> Result<()> {
        let mut records = walk::Records::of(self.runtime(), &*self.source);
        while let Some(page) = records.next_page().await? {
            for OwnedRecord { tenant, owner, record } in page {
                done.records += 1;
                found.source.records += 1;
                found.source.sum.add(digest::hash_record(&tenant, &owner, &record)?);
                let item = walk::record_item(&owner, &record);
                let Some(target) = self.find_target_record(&tenant, &owner, &record).await? else {
                    found.differences.add(&tenant, item, "missing from the target");
                    continue;
                };
                found.target.records += 1;
                found.target.sum.add(digest::hash_record(&tenant, &owner, &target)?);
                if target != record {
                    found.differences.add(&tenant, item, survey::describe_record_difference(&record, &target));
                }
            }
        }
        Ok(())
    }
}

/// A thread in source and target.
struct Pair {
    listed: ListedThread,
    source: ThreadDigest,
    target: Option<ThreadDigest>,
    difference: Option<String>,
    /// Descriptions of damaged data in the source.
    damage: Vec<String>,
}

impl Verification {
    fn add_thread(&mut self, pair: Pair) {
        for detail in &pair.damage {
            self.damage.add(Some(&pair.listed.tenant), Some(pair.listed.thread.id), detail.clone());
        }
        self.source.add_thread(&pair.source);
        if let Some(target) = &pair.target {
            self.target.add_thread(target);
        }
        if let Some(difference) = pair.difference {
            let ListedThread { tenant, thread, .. } = pair.listed;
            self.differences.add(&tenant, Item::Thread(thread.id), difference);
        }
    }
}

impl Totals {
    fn add_thread(&mut self, digest: &ThreadDigest) {
        self.threads += 1;
        self.messages += digest.messages;
        self.tombstones += digest.tombstones;
        self.commits += digest.commits;
        self.records += digest.records;
        self.sum.add(digest.hash);
    }
}

/// Describes the first difference between two chunks; `None` if they are equal.
fn describe_chunk_difference(source: Dump, target: Dump) -> Option<String> {
    if source.thread != target.thread {
        return Some(match (source.thread, target.thread) {
            (Some(source), Some(target)) if source.positions != target.positions => {
                let (source, target) = (source.positions, target.positions);
                let (seq, change) = (source.seq, source.change);
                format!(
                    "it is at message {seq}, change {change}; in the target at message {}, change {}",
                    target.seq, target.change
                )
            }
            _ => "its owner, key, title, metadata, state or dates differ in the target".to_owned(),
        });
    }
    if digest::sort_records(source.records) != digest::sort_records(target.records) {
        return Some("its records differ in the target".to_owned());
    }
    if source.commits != target.commits {
        return Some(format!("its log has {} commits; in the target {}", source.commits.len(), target.commits.len()));
    }
    let mut entries = source.entries.iter().zip(&target.entries);
    if let Some((source, _)) = entries.find(|(source, target)| source != target) {
        return Some(format!("message {} differs in the target", source.seq()));
    }
    let common_length = source.entries.len().min(target.entries.len());
    let extra = source.entries.get(common_length).or_else(|| target.entries.get(common_length));
    extra.map(|entry| format!("message {} is on one side only", entry.seq()))
}
