//! Appends entries to the ledger.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use threadkeep::core::{Reason, RecordOwner};
use threadkeep::memory::{ErasedItem, Erasure, ErasureLog, ErasureReceipt};
use threadkeep::{StoreError, Timestamp};

use super::contents::hashes;
use super::key::{Key, random_hex};
use super::line::{Entry, Item, Line, VERSION};
use crate::private;

/// The ledger file, for recording erasures in one store.
#[derive(Clone, Debug)]
pub(crate) struct ErasureLedger {
    file: PathBuf,
    /// The location of the store, without secrets.
    store: String,
}

/// An error that prevented writing to the ledger.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to the erasure ledger {}, so nothing was erased: {source}", file.display())]
pub(crate) struct LedgerWriteError {
    file: PathBuf,
    #[source]
    source: io::Error,
}

impl ErasureLedger {
    pub(crate) fn new(file: PathBuf, store: String) -> Self {
        Self { file, store }
    }

    /// Checks that entries can be written. Writes none.
    pub(crate) fn try_open(&self) -> Result<(), LedgerWriteError> {
        let opened = private::make_parent_folder(&self.file).and_then(|()| private::open_to_append(&self.file));
        opened.map(drop).map_err(|source| LedgerWriteError { file: self.file.clone(), source })
    }

    async fn append(&self, lines: impl FnOnce(&Key) -> Vec<Line> + Send + 'static) -> Result<(), StoreError> {
        let file = self.file.clone();
        let appended = tokio::task::spawn_blocking(move || append(&file, lines)).await;
        let appended = appended.unwrap_or_else(|failed| Err(io::Error::other(failed)));
        appended.map_err(|source| StoreError::Unavailable {
            reason: if source.kind() == io::ErrorKind::StorageFull { Reason::Full } else { Reason::Io },
            maybe_applied: false,
            source: Some(Box::new(LedgerWriteError { file: self.file.clone(), source })),
        })
    }
}

#[async_trait::async_trait]
impl ErasureLog for ErasureLedger {
    async fn record(&self, erasures: Vec<Erasure>, at: Timestamp) -> Result<ErasureReceipt, StoreError> {
        let id = random_hex::<8>().map_err(|_| StoreError::unavailable(Reason::Io))?;
        let (receipt, store) = (ErasureReceipt(id.clone()), self.store.clone());
        self.append(move |key| {
            let store = hashes::store(key, &store);
            let entry = |erasure| Entry { id: id.clone(), at, store: store.clone(), item: item(key, &erasure) };
            erasures.into_iter().map(|erasure| Line::Erased(entry(erasure))).collect()
        })
        .await?;
        Ok(receipt)
    }

    async fn withdraw(&self, receipt: ErasureReceipt) -> Result<(), StoreError> {
        self.append(move |_| vec![Line::Void { id: receipt.0 }]).await
    }
}

fn item(key: &Key, erasure: &Erasure) -> Item {
    let tenant = &erasure.tenant;
    match &erasure.item {
        ErasedItem::User { user, shared_messages, record_version } => Item::User {
            hash: hashes::user(key, tenant, user),
            shared_messages: *shared_messages,
            record_version: *record_version,
        },
        ErasedItem::Thread(thread) => Item::Thread { hash: hashes::thread(key, tenant, *thread) },
        ErasedItem::Message { thread, message, change } => Item::Message {
            thread: hashes::thread(key, tenant, *thread),
            hash: hashes::message(key, tenant, *thread, *message),
            change: *change,
        },
        ErasedItem::Record { owner, namespace, key: record, version } => Item::Record {
            thread: match owner {
                RecordOwner::Thread(thread) => Some(hashes::thread(key, tenant, *thread)),
                _ => None,
            },
            hash: hashes::record(key, tenant, owner, namespace, record),
            version: *version,
        },
    }
}

/// Appends lines and syncs them to disk. Locks the file against other processes.
fn append(path: &Path, lines: impl FnOnce(&Key) -> Vec<Line>) -> io::Result<()> {
    private::make_parent_folder(path)?;
    let mut file = private::open_to_append(path)?;
    file.lock()?;
    let length = file.metadata()?.len();
    let key = match Key::find(path)? {
        Some(key) => key,
        None if length == 0 => Key::create(path)?,
        None => return Err(io::Error::new(io::ErrorKind::NotFound, "the key is missing")),
    };
    if length > 0 {
        check_first_line(&mut file, &key)?;
    }
    let mut text = String::new();
    let mut add = |line: &Line| line.encode(&key).map(|line| text.push_str(&line)).map_err(io::Error::other);
    if length == 0 {
        add(&Line::Header { version: VERSION })?;
    }
    let is_truncated = length > 0 && !ends_with_newline(&mut file)?;
    if is_truncated {
        add(&Line::Truncated {})?;
    }
    lines(&key).iter().try_for_each(add)?;
    if is_truncated {
        text.insert(0, '\n');
    }
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    if length == 0 { private::sync_folder(path) } else { Ok(()) }
}

/// Checks the key against the first line, because lines written with another key could not be distinguished from damaged
/// ones.
fn check_first_line(file: &mut File, key: &Key) -> io::Result<()> {
    let mut first = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    BufReader::new(&*file).take(1024).read_until(b'\n', &mut first)?;
    // A crash truncated the first line. The caller appends a line that says so.
    if !first.ends_with(b"\n") {
        return Ok(());
    }
    let first = std::str::from_utf8(&first).unwrap_or_default().trim_end();
    match Line::decode(first, key) {
        Ok(_) => Ok(()),
        Err(_) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the first line is damaged, or the key belongs to another ledger",
        )),
    }
}

/// Whether the last line is complete. A crash may have truncated it.
fn ends_with_newline(file: &mut File) -> io::Result<bool> {
    let mut last = [0];
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
