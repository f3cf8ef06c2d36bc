//! Digests of threads and records. They do not depend on the sizes of the chunks in which a thread is read.

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use threadkeep_core::{
    Backend, Dump, DumpEntry, ListedThread, Record, RecordOwner, Result, Runtime, Snapshot, StoreError, TenantId,
    ThreadId,
};

use super::walk;

/// The counts of a thread's data, and a hash of all the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadDigest {
    pub(super) messages: u64,
    pub(super) tombstones: u64,
    pub(super) commits: u64,
    pub(super) records: u64,
    pub(super) hash: [u8; 32],
    /// Descriptions of damaged data.
    pub(super) damage: Vec<String>,
}

/// The sum of several hashes, which does not depend on their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum([u64; 4]);

impl Sum {
    pub(super) fn add(&mut self, hash: [u8; 32]) {
        for (word, bytes) in self.0.iter_mut().zip(hash.chunks_exact(8)) {
            let bytes = bytes.try_into().expect("a chunk of eight bytes");
            *word = word.wrapping_add(u64::from_be_bytes(bytes));
        }
    }

    pub(super) fn to_hex(self) -> String {
        self.0.iter().map(|word| format!("{word:016x}")).collect()
    }
}

/// Computes the digest of a thread in a snapshot. `first` is the thread's first chunk.
pub(super) async fn digest_listed_thread(
    runtime: &dyn Runtime,
    snapshot: &dyn Snapshot,
    listed: &ListedThread,
    first: Dump,
) -> Result<ThreadDigest> {
    let mut builder = DigestBuilder::new(&listed.tenant, listed.thread.id);
    let mut after = first.next;
    builder.add(first)?;
    while let Some(seq) = after {
        let chunk = walk::next_chunk(runtime, snapshot, listed.number, Some(seq)).await?;
        after = chunk.as_ref().and_then(|chunk| chunk.next);
        chunk.map_or(Ok(()), |chunk| builder.add(chunk))?;
    }
    Ok(builder.finish())
}

/// Computes the digest of the current data of a thread in a store; `None` if the thread does not exist.
pub(super) async fn digest_stored_thread(
    runtime: &dyn Runtime,
    backend: &Backend,
    tenant: &TenantId,
    thread: ThreadId,
) -> Result<Option<ThreadDigest>> {
    let mut builder = DigestBuilder::new(tenant, thread);
    let mut chunks = walk::Chunks::of(runtime, backend, tenant, thread);
    loop {
        match chunks.next().await {
            Ok(Some(chunk)) => builder.add(chunk)?,
            Ok(None) => return Ok(Some(builder.finish())),
            Err(StoreError::NotFound(_)) => return Ok(None),
            Err(error) => return Err(error),
        }
    }
}

/// Builds the digest of a thread from its chunks.
struct DigestBuilder {
    hasher: Sha256,
    digest: ThreadDigest,
}

impl DigestBuilder {
    fn new(tenant: &TenantId, thread: ThreadId) -> Self {
        let mut hasher = start_hash(tenant);
        hasher.update(thread.0.as_bytes());
        Self { hasher, digest: ThreadDigest::default() }
    }

    fn add(&mut self, chunk: Dump) -> Result<()> {
        self.digest.damage.extend(chunk.damage());
        add_chunk(&mut self.hasher, &mut self.digest, chunk)
    }

    fn finish(self) -> ThreadDigest {
        ThreadDigest { hash: self.hasher.finalize().into(), ..self.digest }
    }
}

pub(super) fn hash_record(tenant: &TenantId, owner: &RecordOwner, record: &Record) -> Result<[u8; 32]> {
    let mut hasher = start_hash(tenant);
    add_value(&mut hasher, owner)?;
    add_value(&mut hasher, record)?;
    Ok(hasher.finalize().into())
}

fn start_hash(tenant: &TenantId) -> Sha256 {
    let mut hasher = Sha256::new();
    hasher.update((tenant.as_str().len() as u64).to_be_bytes());
    hasher.update(tenant.as_str());
    hasher
}

fn add_chunk(hasher: &mut Sha256, digest: &mut ThreadDigest, chunk: Dump) -> Result<()> {
    let Dump { thread, records, commits, entries, .. } = chunk;
    if let Some(thread) = &thread {
        add_value(hasher, thread)?;
    }
    for record in sort_records(records) {
        digest.records += 1;
        add_value(hasher, &record)?;
    }
    for commit in &commits {
        digest.commits += 1;
        add_value(hasher, commit)?;
    }
    for entry in &entries {
        match entry {
            DumpEntry::Message { .. } => digest.messages += 1,
            DumpEntry::Tombstone { .. } => digest.tombstones += 1,
            DumpEntry::Lost { .. } => {}
        }
        add_value(hasher, entry)?;
    }
    Ok(())
}

/// Sorts records, because stores may return them in different orders.
pub(super) fn sort_records(mut records: Vec<Record>) -> Vec<Record> {
    records.sort_by_cached_key(|record| (record.namespace.to_string(), record.key.clone()));
    records
}

/// Adds the JSON of a value, preceded by its length, which makes the concatenation unambiguous.
fn add_value<T: Serialize>(hasher: &mut Sha256, value: &T) -> Result<()> {
    let text = serde_json::to_vec(value).map_err(|error| StoreError::invalid("dump", error.to_string()))?;
    hasher.update((text.len() as u64).to_be_bytes());
    hasher.update(&text);
    Ok(())
}
