//! Backing up a whole store as lines of text, and restoring it. The lines are in a variant of the export format that preserves
//! all data verbatim.

use std::sync::Arc;

use serde::Serialize;
use sha2::{Digest as _, Sha256};
use threadkeep_core::exchange::{BACKUP_VERSION, BackupLine};
use threadkeep_core::{
    Backend, Consistency, Dump, ListedThread, OwnedRecord, Runtime, Snapshot, SnapshotTotals, StoreError, Timestamp,
};

use super::{Damage, Progress, walk};
use crate::retry::retry;
use crate::{MemoryError, Platform, Result};

/// Maximum size of a JSON object that spans several lines, in bytes.
const MAX_OBJECT_BYTES: usize = 256 * 1024 * 1024;

/// Writes a backup of all data in a store as lines, from one snapshot. Only part of the data is in memory at a time.
#[derive(Debug)]
pub struct BackupLines {
    snapshot: Arc<dyn Snapshot>,
    now: Timestamp,
    platform: Platform,
    totals: SnapshotTotals,
    hasher: Sha256,
    done: Progress,
    damage: Damage,
}

/// The result of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackupSummary {
    /// The amount of data that was written.
    #[serde(flatten)]
    pub written: Progress,
    /// Whether all data is consistent as of one instant, or only each thread by itself.
    pub as_of: Consistency,
    /// The growth of the store's write-ahead log during the backup, in bytes; `None` if the store has no log that grows while the
    /// snapshot is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_growth_bytes: Option<u64>,
    /// Damaged data in the store. It was written unchanged, or omitted if it cannot be read.
    #[serde(skip_serializing_if = "Damage::is_empty")]
    pub damage: Damage,
}

/// Restores the lines of a backup into a new store.
#[derive(Debug)]
pub struct BackupReader {
    backend: Backend,
    platform: Platform,
    hasher: Sha256,
    lines: u64,
    objects: u64,
    /// The beginning of an object that continues in the next line.
    partial: Option<PartialObject>,
    done: Progress,
    has_ended: bool,
}

/// The first lines of an object. An object spans several lines if it includes stored JSON text with line breaks.
#[derive(Debug)]
struct PartialObject {
    text: String,
    /// The number of brackets that are not closed yet.
    depth: i64,
}

impl BackupLines {
    /// Takes a snapshot of a store at the current time of the platform's clock. Later writes are not in the backup.
    ///
    /// # Errors
    /// Errors from the store.
    pub async fn begin(backend: &Backend, platform: &Platform) -> Result<Self> {
        let (now, runtime) = (platform.clock.now(), &*platform.runtime);
        let snapshot: Arc<dyn Snapshot> = Arc::from(retry(runtime, || backend.maintenance.snapshot(now)).await?);
        let totals = retry(runtime, || snapshot.totals()).await?;
        Ok(Self {
            snapshot,
            now,
            platform: platform.clone(),
            totals,
            hasher: Sha256::new(),
            done: Progress::default(),
            damage: Damage::default(),
        })
    }

    /// The number of threads and messages to write.
    #[must_use]
    pub fn totals(&self) -> SnapshotTotals {
        self.totals
    }

    /// Calls `write` with each line, excluding the line break, and the current progress. Others may write to the store meanwhile.
    ///
    /// # Errors
    /// Errors from `write` and from the store.
    pub async fn write<E: From<MemoryError>>(
        mut self,
        mut write: impl FnMut(&str, Progress) -> Result<(), E>,
    ) -> Result<BackupSummary, E> {
        let (snapshot, as_of) = (Arc::clone(&self.snapshot), self.snapshot.consistency());
        let (version, made_at) = (BACKUP_VERSION, self.now);
        let runtime = Arc::clone(&self.platform.runtime);
        self.write_line(&BackupLine::ThreadkeepBackup { version, made_at, as_of: Some(as_of) }, &mut write)?;
        let mut threads = walk::Threads::of(&*runtime, &*snapshot);
        while let Some(page) = threads.next_page().await.map_err(MemoryError::from)? {
            let mut chunks = walk::FirstChunks::of(&*runtime, &*snapshot, page.iter().map(|listed| listed.number));
            for listed in &page {
                let first = chunks.next().await.map_err(MemoryError::from)?;
                self.write_thread(listed, first, &mut write).await?;
            }
        }
        let mut records = walk::Records::of(&*runtime, &*snapshot);
        while let Some(page) = records.next_page().await.map_err(MemoryError::from)? {
            for OwnedRecord { tenant, owner, record } in page {
                self.done.records += 1;
                self.write_line(&BackupLine::Record { tenant, owner, record }, &mut write)?;
            }
        }
        let Progress { threads, records, .. } = self.done;
        let hash = hex(self.hasher.clone());
        self.write_line(&BackupLine::End { threads, records, hash }, &mut write)?;
        let mut damage = self.damage;
        damage.add_unreadable(&*snapshot);
        Ok(BackupSummary { written: self.done, as_of, log_growth_bytes: snapshot.log_growth_bytes(), damage })
    }

    async fn write_thread<E: From<MemoryError>>(
        &mut self,
        listed: &ListedThread,
        first: Option<Dump>,
        write: &mut impl FnMut(&str, Progress) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut chunk = first;
        while let Some(dump) = chunk.take() {
            let next = dump.next;
            self.done.threads += u64::from(next.is_none());
            self.done.messages += dump.entries.iter().filter(|entry| walk::is_message(entry)).count() as u64;
            let (tenant, thread) = (listed.tenant.clone(), listed.thread.id);
            self.damage.add_chunk(&tenant, thread, &dump);
            self.write_line(&BackupLine::Chunk { tenant, thread, dump }, write)?;
            if next.is_some() {
                let (runtime, snapshot): (&dyn Runtime, _) = (&*self.platform.runtime, &*self.snapshot);
                chunk = walk::next_chunk(runtime, snapshot, listed.number, next).await.map_err(MemoryError::from)?;
            }
        }
        Ok(())
    }

    fn write_line<E: From<MemoryError>>(
        &mut self,
        line: &BackupLine,
        write: &mut impl FnMut(&str, Progress) -> Result<(), E>,
    ) -> Result<(), E> {
        let text = serde_json::to_string(line);
        let text = text.map_err(|error| MemoryError::from(StoreError::invalid("dump", error.to_string())))?;
        self.hasher.update(&text);
        self.hasher.update(b"\n");
        write(&text, self.done)
    }
}

impl BackupReader {
    /// Creates a reader that restores into a store.
    #[must_use]
    pub fn into(backend: Backend, platform: &Platform) -> Self {
        let (hasher, done) = (Sha256::new(), Progress::default());
        let platform = platform.clone();
        Self { backend, platform, hasher, lines: 0, objects: 0, partial: None, done, has_ended: false }
    }

    /// Restores one line, which must not include the line break. Returns the progress so far.
    ///
    /// # Errors
    /// `Incompatible` if a later version wrote the backup; `Corrupt`, with the line number, if the data is not a backup or was
    /// changed; errors from the store.
    pub async fn line(&mut self, text: &str) -> Result<Progress> {
        self.lines += 1;
        let Some(mut partial) = self.partial.take() else { return self.restore_object(text).await };
        partial.text.push('\n');
        partial.text.push_str(text);
        partial.depth += nesting(text);
        if partial.depth <= 0 {
            return self.restore_object(&partial.text).await;
        }
        if partial.text.len() > MAX_OBJECT_BYTES {
            return Err(self.corrupt("the object is too large, or its end is missing"));
        }
        self.partial = Some(partial);
        Ok(self.done)
    }

    async fn restore_object(&mut self, text: &str) -> Result<Progress> {
        let line: BackupLine = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) if error.is_eof() && nesting(text) > 0 => {
                self.partial = Some(PartialObject { text: text.to_owned(), depth: nesting(text) });
                return Ok(self.done);
            }
            Err(error) => return Err(self.corrupt(&error.to_string())),
        };
        self.objects += 1;
        match line {
            BackupLine::ThreadkeepBackup { version, .. } if version > BACKUP_VERSION => {
                let reason = format!("the backup has version {version}; this program supports up to {BACKUP_VERSION}");
                return Err(StoreError::Incompatible(reason).into());
            }
            BackupLine::ThreadkeepBackup { .. } if self.objects == 1 => {}
            _ if self.has_ended => return Err(self.corrupt("data after the end")),
            _ if self.objects == 1 => return Err(self.corrupt("the header of a backup is missing")),
            BackupLine::ThreadkeepBackup { .. } => return Err(self.corrupt("unexpected second header")),
            BackupLine::Chunk { tenant, thread, dump } => {
                let is_last = dump.next.is_none();
                let messages = dump.entries.len() as u64;
                let restored = self.backend.maintenance.restore_thread(&tenant, thread, dump).await;
                restored.map_err(|error| self.chunk_error(error))?;
                self.done.threads += u64::from(is_last);
                self.done.messages += messages;
            }
            BackupLine::Record { tenant, owner, record } => {
                let restore = || self.backend.maintenance.restore_record(&tenant, &owner, record.clone());
                retry(&*self.platform.runtime, restore).await?;
                self.done.records += 1;
            }
            BackupLine::End { threads, records, hash } => {
                if (threads, records) != (self.done.threads, self.done.records) || hash != hex(self.hasher.clone()) {
                    return Err(self.corrupt("lines were added, removed or changed"));
                }
                self.has_ended = true;
            }
        }
        self.hasher.update(text);
        self.hasher.update(b"\n");
        Ok(self.done)
    }

    /// Checks that the backup is complete.
    ///
    /// # Errors
    /// `Corrupt` for a truncated backup.
    pub fn finish(self) -> Result<Progress> {
        if self.has_ended { Ok(self.done) } else { Err(self.corrupt("the end is missing: the file is truncated")) }
    }

    /// Converts an error from restoring a chunk. If a chunk is repeated or its predecessor is missing, the backup is corrupt.
    fn chunk_error(&self, error: StoreError) -> MemoryError {
        match error {
            StoreError::Conflict(_) | StoreError::Invalid { .. } => self.corrupt(&error.to_string()),
            error => error.into(),
        }
    }

    fn corrupt(&self, detail: &str) -> MemoryError {
        StoreError::corrupt("backup", format!("line {}: {detail}", self.lines)).into()
    }
}

/// The number of brackets that a line opens minus the number that it closes. A line starts outside of strings, because a JSON
/// string never contains a line break.
fn nesting(line: &str) -> i64 {
    let (mut depth, mut in_string, mut escaped) = (0, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth -= 1,
            _ => {}
        }
    }
    depth
}

fn hex(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
