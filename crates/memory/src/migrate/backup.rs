//! A whole store as lines of text, and back: the verbatim form of the documented export format.

use sha2::{Digest as _, Sha256};
use threadkeep_core::exchange::{BACKUP_VERSION, BackupLine};
use threadkeep_core::{Backend, Kind, StoreError, TenantId, Thread, ThreadName, Timestamp};

use super::{Progress, walk};
use crate::retry::repeat_simply;
use crate::{MemoryError, Result};

/// How often a thread is written anew because it changed meanwhile.
const ATTEMPTS: usize = 16;
/// Bytes of an object that stands on several lines.
const RECORD_BYTES: usize = 256 * 1024 * 1024;

/// Reads a store as the lines of a backup, every tenant's, in bounded memory.
#[derive(Debug)]
pub struct BackupLines {
    backend: Backend,
    now: Timestamp,
    hasher: Sha256,
    done: Progress,
}

/// Writes the lines of a backup into a store that is made for it.
#[derive(Debug)]
pub struct BackupReader {
    backend: Backend,
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
    /// Prepares to read what a store holds at the instant `now`.
    #[must_use]
    pub fn of(backend: Backend, now: Timestamp) -> Self {
        Self { backend, now, hasher: Sha256::new(), done: Progress::default() }
    }

    /// Gives each line, without its end, to `write`, and says what was written. Others may write meanwhile: each thread is
    /// as it was at one instant, but not all at the same.
    ///
    /// # Errors
    /// What `write` says; `Contended` for a thread that changes each time it is read; those of the store.
    pub async fn write<E: From<MemoryError>>(
        mut self,
        mut write: impl FnMut(&str, Progress) -> Result<(), E>,
    ) -> Result<Progress, E> {
        let header = BackupLine::ThreadkeepBackup { version: BACKUP_VERSION, made_at: self.now };
        self.line(&header, &mut write)?;
        for tenant in walk::tenants(&self.backend).await.map_err(MemoryError::from)? {
            let backend = self.backend.clone();
            let mut threads = walk::Threads::of(&backend, &tenant, self.now);
            while let Some(page) = threads.next_page().await.map_err(MemoryError::from)? {
                for thread in page {
                    self.thread(&tenant, thread, &mut write).await?;
                }
            }
            let mut documents = walk::Documents::of(&backend, &tenant, self.now);
            while let Some((owner, page)) = documents.next_page().await.map_err(MemoryError::from)? {
                for document in page {
                    self.done.documents += 1;
                    let (tenant, owner) = (tenant.clone(), owner.clone());
                    self.line(&BackupLine::Document { tenant, owner, document }, &mut write)?;
                }
            }
        }
        let Progress { threads, documents, .. } = self.done;
        let hash = hex(self.hasher.clone());
        self.line(&BackupLine::End { threads, documents, hash }, &mut write)?;
        Ok(self.done)
    }

    async fn thread<E: From<MemoryError>>(
        &mut self,
        tenant: &TenantId,
        listed: Thread,
        write: &mut impl FnMut(&str, Progress) -> Result<(), E>,
    ) -> Result<(), E> {
        for _ in 0..ATTEMPTS {
            match self.whole_thread(tenant, &listed, write).await? {
                Read::Whole => {
                    self.done.threads += 1;
                    self.done.messages += listed.message_count;
                    return Ok(());
                }
                Read::Gone => return Ok(()),
                Read::Changed => {}
            }
        }
        Err(MemoryError::Contended { what: "a thread", attempts: ATTEMPTS }.into())
    }

    async fn whole_thread<E: From<MemoryError>>(
        &mut self,
        tenant: &TenantId,
        listed: &Thread,
        write: &mut impl FnMut(&str, Progress) -> Result<(), E>,
    ) -> Result<Read, E> {
        let (backend, name, now) = (self.backend.clone(), ThreadName::Id(listed.id), self.now);
        let find = || walk::find_thread(&backend, tenant, &name, now);
        let before = find().await.map_err(MemoryError::from)?;
        let mut chunks = walk::Chunks::of(&backend, tenant, listed.id);
        loop {
            let chunk = match chunks.next().await {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return Ok(Read::Whole),
                Err(StoreError::NotFound(Kind::Thread)) => return Ok(Read::Gone),
                Err(error) => return Err(MemoryError::from(error).into()),
            };
            let is_last_of_many = chunk.thread.is_none() && chunk.next.is_none();
            // Without its last chunk a thread does not come to be, and a first one begins it anew.
            if is_last_of_many && find().await.map_err(MemoryError::from)? != before {
                return Ok(Read::Changed);
            }
            self.line(&BackupLine::Chunk { tenant: tenant.clone(), thread: listed.id, dump: chunk }, write)?;
        }
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

/// What became of reading a thread.
enum Read {
    Whole,
    /// It was deleted or expired meanwhile.
    Gone,
    Changed,
}

impl BackupReader {
    /// Prepares to fill a store.
    #[must_use]
    pub fn into(backend: Backend) -> Self {
        let (hasher, done) = (Sha256::new(), Progress::default());
        Self { backend, hasher, lines: 0, records: 0, begun: None, done, has_ended: false }
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
            BackupLine::Document { tenant, owner, document } => {
                let restore = || self.backend.maintenance.restore_document(&tenant, &owner, document.clone());
                repeat_simply(restore).await?;
                self.done.documents += 1;
            }
            BackupLine::End { threads, documents, hash } => {
                if (threads, documents) != (self.done.threads, self.done.documents) || hash != hex(self.hasher.clone())
                {
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
