//! A whole store as lines of text, and back: the verbatim form of the documented export format.

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

/// Bytes of an object that stands on several lines.
const RECORD_BYTES: usize = 256 * 1024 * 1024;

/// Reads a store as the lines of a backup, every tenant's, in bounded memory, and all of it as of one instant.
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

/// What a backup of lines holds, and what it took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BackupSummary {
    /// What was written.
    #[serde(flatten)]
    pub written: Progress,
    /// What of it is as of one instant.
    pub as_of: Consistency,
    /// By how many bytes the log beside the store grew meanwhile, where there is one that waits for readers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_growth_bytes: Option<u64>,
    /// What of the store is damaged: written as it is, or left out where it cannot be read.
    #[serde(skip_serializing_if = "Damage::is_empty")]
    pub damage: Damage,
}

/// Writes the lines of a backup into a store that is made for it.
#[derive(Debug)]
pub struct BackupReader {
    backend: Backend,
    platform: Platform,
    hasher: Sha256,
    lines: u64,
    records: u64,
    /// An object that goes on in the next line.
    begun: Option<Begun>,
    done: Progress,
    has_ended: bool,
}

/// JSON that is kept byte for byte may stand on several lines, and so does the object that holds it.
#[derive(Debug)]
struct Begun {
    text: String,
    /// How many brackets are open.
    depth: i64,
}

impl BackupLines {
    /// Takes a snapshot of what a store holds now, by the clock of `platform`. Whatever is written from here on is not in the backup.
    ///
    /// # Errors
    /// Those of the store.
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

    /// How many threads and messages there are to write.
    #[must_use]
    pub fn totals(&self) -> SnapshotTotals {
        self.totals
    }

    /// Gives each line, without its end, to `write`, and says what was written. Others may write to the store meanwhile as
    /// much as they like.
    ///
    /// # Errors
    /// What `write` says; those of the store.
    pub async fn write<E: From<MemoryError>>(
        mut self,
        mut write: impl FnMut(&str, Progress) -> Result<(), E>,
    ) -> Result<BackupSummary, E> {
        let (snapshot, as_of) = (Arc::clone(&self.snapshot), self.snapshot.consistency());
        let (version, made_at) = (BACKUP_VERSION, self.now);
        let runtime = Arc::clone(&self.platform.runtime);
        self.line(&BackupLine::ThreadkeepBackup { version, made_at, as_of: Some(as_of) }, &mut write)?;
        let mut threads = walk::Threads::of(&*runtime, &*snapshot);
        while let Some(page) = threads.next_page().await.map_err(MemoryError::from)? {
            let mut chunks = walk::FirstChunks::of(&*runtime, &*snapshot, page.iter().map(|listed| listed.number));
            for listed in &page {
                let first = chunks.next().await.map_err(MemoryError::from)?;
                self.thread(listed, first, &mut write).await?;
            }
        }
        let mut records = walk::Records::of(&*runtime, &*snapshot);
        while let Some(page) = records.next_page().await.map_err(MemoryError::from)? {
            for OwnedRecord { tenant, owner, record } in page {
                self.done.records += 1;
                self.line(&BackupLine::Record { tenant, owner, record }, &mut write)?;
            }
        }
        let Progress { threads, records, .. } = self.done;
        let hash = hex(self.hasher.clone());
        self.line(&BackupLine::End { threads, records, hash }, &mut write)?;
        let mut damage = self.damage;
        damage.add_unreadable(&*snapshot);
        Ok(BackupSummary { written: self.done, as_of, log_growth_bytes: snapshot.log_growth_bytes(), damage })
    }

    async fn thread<E: From<MemoryError>>(
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
            self.line(&BackupLine::Chunk { tenant, thread, dump }, write)?;
            if next.is_some() {
                let (runtime, snapshot): (&dyn Runtime, _) = (&*self.platform.runtime, &*self.snapshot);
                chunk = walk::next_chunk(runtime, snapshot, listed.number, next).await.map_err(MemoryError::from)?;
            }
        }
        Ok(())
    }

    fn line<E: From<MemoryError>>(
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
    /// Prepares to fill a store on this platform.
    #[must_use]
    pub fn into(backend: Backend, platform: &Platform) -> Self {
        let (hasher, done) = (Sha256::new(), Progress::default());
        let platform = platform.clone();
        Self { backend, platform, hasher, lines: 0, records: 0, begun: None, done, has_ended: false }
    }

    /// Takes one line, without its end.
    ///
    /// # Errors
    /// `Incompatible` for a later version; `Corrupt`, with the line's number, for what is no backup or was changed; those
    /// of the store.
    pub async fn line(&mut self, text: &str) -> Result<Progress> {
        self.lines += 1;
        let Some(mut begun) = self.begun.take() else { return self.record(text).await };
        begun.text.push('\n');
        begun.text.push_str(text);
        begun.depth += nesting(text);
        if begun.depth <= 0 {
            return self.record(&begun.text).await;
        }
        if begun.text.len() > RECORD_BYTES {
            return Err(self.corrupt("an object that does not end"));
        }
        self.begun = Some(begun);
        Ok(self.done)
    }

    async fn record(&mut self, text: &str) -> Result<Progress> {
        let line: BackupLine = match serde_json::from_str(text) {
            Ok(line) => line,
            Err(error) if error.is_eof() && nesting(text) > 0 => {
                self.begun = Some(Begun { text: text.to_owned(), depth: nesting(text) });
                return Ok(self.done);
            }
            Err(error) => return Err(self.corrupt(&error.to_string())),
        };
        self.records += 1;
        match line {
            BackupLine::ThreadkeepBackup { version, .. } if version > BACKUP_VERSION => {
                let later = format!("the backup has version {version}, this program reads {BACKUP_VERSION}");
                return Err(StoreError::Incompatible(later).into());
            }
            BackupLine::ThreadkeepBackup { .. } if self.records == 1 => {}
            _ if self.has_ended => return Err(self.corrupt("more follows the end")),
            _ if self.records == 1 => return Err(self.corrupt("it does not begin with the header of a backup")),
            BackupLine::ThreadkeepBackup { .. } => return Err(self.corrupt("a second header")),
            BackupLine::Chunk { tenant, thread, dump } => {
                let is_last = dump.next.is_none();
                let messages = dump.entries.len() as u64;
                let restored = self.backend.maintenance.restore_thread(&tenant, thread, dump).await;
                restored.map_err(|error| self.refused(error))?;
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
                    return Err(self.corrupt("what stands before the end is not what was written"));
                }
                self.has_ended = true;
            }
        }
        self.hasher.update(text);
        self.hasher.update(b"\n");
        Ok(self.done)
    }

    /// Makes sure that the end has come.
    ///
    /// # Errors
    /// `Corrupt` for a backup that was cut.
    pub fn finish(self) -> Result<Progress> {
        if self.has_ended { Ok(self.done) } else { Err(self.corrupt("the end is missing: the file was cut")) }
    }

    /// What a backup repeats, or leaves out the beginning of.
    fn refused(&self, error: StoreError) -> MemoryError {
        match error {
            StoreError::Conflict(_) | StoreError::Invalid { .. } => self.corrupt(&error.to_string()),
            error => error.into(),
        }
    }

    fn corrupt(&self, detail: &str) -> MemoryError {
        StoreError::corrupt("backup", format!("line {}: {detail}", self.lines)).into()
    }
}

/// How many more brackets a line opens than it closes. A text of JSON ends on the line on which it begins.
fn nesting(line: &str) -> i64 {
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    for byte in line.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'[' | b'{' if !in_text => depth += 1,
            b']' | b'}' if !in_text => depth -= 1,
            _ => {}
        }
    }
    depth
}

fn hex(hasher: Sha256) -> String {
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
