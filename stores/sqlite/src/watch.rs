//! Detects commits to the file. Does not use SQLite transactions, because all threads would contend for their locks.
//!
//! SQLite publishes every commit in the header of the WAL index, the file `-shm`: every commit changes the header, and no reader sees a
//! commit before the header has changed. The header has 48 bytes and is written twice, second copy first:
//! <https://sqlite.org/walformat.html>, section 2.1.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, PoisonError, RwLock};

use rusqlite::Connection;

const HEADER_BYTES: usize = 48;
type Header = [u8; HEADER_BYTES];
/// The format version at the start of the header.
const FORMAT_VERSION: u32 = 3_007_000;
/// The offset of the commit counter.
const COMMIT_COUNTER: usize = 8;
/// The offset of the flag that is 1 if the header is initialised.
const IS_INITIALISED: usize = 12;

/// Reads the header of the WAL index.
#[derive(Debug)]
pub(crate) struct CommitWatch {
    path: PathBuf,
    /// Opened by the first read; SQLite does not replace the file while the database is open.
    file: OnceLock<Option<&'static File>>,
    /// In a read-write lock, so that readers do not block each other.
    thread_only_commits: RwLock<Option<ThreadOnlyCommits>>,
}

/// What a transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    /// Only threads with their messages, records and change logs.
    Threads,
    /// Any data.
    Anything,
}

/// Consecutive commits by this process that wrote only threads, without a commit by another process in between.
#[derive(Debug)]
struct ThreadOnlyCommits {
    /// The stamp before the first of these commits.
    stamp: u64,
    /// The header after the last of these commits.
    header: Header,
}

/// The state when a transaction acquired the write lock.
#[derive(Debug)]
pub(crate) struct TransactionStart {
    header: Option<Header>,
    total_changes: u64,
}

impl CommitWatch {
    /// Creates a watch for the database at `path`.
    pub(crate) fn new(path: &Path) -> Self {
        let mut name = OsString::from(path);
        name.push("-shm");
        Self { path: name.into(), file: OnceLock::new(), thread_only_commits: RwLock::default() }
    }

    /// Returns a number that changes with every commit; `None` while a commit is being published, or if the header cannot be
    /// read.
    pub(crate) fn stamp(&self) -> Option<u64> {
        self.header().as_ref().map(stamp_of)
    }

    /// If the last commits are by this process and wrote only threads, returns the stamp before these commits; otherwise the current
    /// stamp.
    pub(crate) fn records_stamp(&self) -> Option<u64> {
        // The header is read under the lock, so that no commit by this process is recorded in between.
        let thread_only_commits = self.thread_only_commits.read().unwrap_or_else(PoisonError::into_inner);
        let header = self.header()?;
        match &*thread_only_commits {
            Some(commits) if commits.header == header => Some(commits.stamp),
            _ => Some(stamp_of(&header)),
        }
    }

    /// Reads the header within a transaction that holds the write lock. Does not open the file, because commits are not tracked before
    /// the first request for a stamp.
    pub(crate) fn begin(&self, writer: &Connection) -> TransactionStart {
        let header = self.file.get().and_then(|file| read_header(file.as_ref()?));
        TransactionStart { header, total_changes: writer.total_changes() }
    }

    /// Records that the transaction was committed. Another process may have committed in the meantime, so the header is known to be
    /// from this commit only if the transaction wrote something and the commit counter advanced by one.
    pub(crate) fn end(&self, writer: &Connection, start: &TransactionStart, kind: WriteKind) {
        let mut thread_only_commits = self.thread_only_commits.write().unwrap_or_else(PoisonError::into_inner);
        let after = start.header.and_then(|_| self.header());
        let (Some(before), Some(after)) = (start.header, after) else {
            *thread_only_commits = None;
            return;
        };
        if before == after {
            return;
        }
        let has_written = writer.total_changes() != start.total_changes;
        let is_only_commit = has_written && commit_counter(&after) == commit_counter(&before).wrapping_add(1);
        *thread_only_commits = (is_only_commit && kind == WriteKind::Threads).then(|| {
            let previous = thread_only_commits.as_ref().filter(|commits| commits.header == before);
            let stamp = previous.map_or_else(|| stamp_of(&before), |commits| commits.stamp);
            ThreadOnlyCommits { stamp, header: after }
        });
    }

    fn header(&self) -> Option<Header> {
        read_header(self.file.get_or_init(|| open_permanently(&self.path)).as_ref()?)
    }
}

/// Reads the header; `None` while it is being written.
fn read_header(file: &File) -> Option<Header> {
    let mut copies = [0; HEADER_BYTES * 2];
    if read_start(file, &mut copies)? < copies.len() {
        return None;
    }
    check_header(&copies)
}

/// Opens a file that is never closed. On POSIX, closing a file releases all locks that SQLite holds on it in this process. Each file is
/// therefore opened only once.
#[cfg(unix)]
fn open_permanently(path: &Path) -> Option<&'static File> {
    use std::collections::HashMap;
    use std::os::unix::fs::MetadataExt;
    use std::sync::{Mutex, PoisonError};

    static OPEN: Mutex<Option<HashMap<(u64, u64), &'static File>>> = Mutex::new(None);
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let metadata = std::fs::metadata(path).ok()?;
    let open = open.get_or_insert_with(HashMap::new);
    if let Some(file) = open.get(&(metadata.dev(), metadata.ino())) {
        return Some(file);
    }
    let file: &'static File = Box::leak(Box::new(File::open(path).ok()?));
    open.insert((metadata.dev(), metadata.ino()), file);
    Some(file)
}

#[cfg(not(unix))]
fn open_permanently(_: &Path) -> Option<&'static File> {
    None
}

/// Returns the header if both copies are equal and of the supported format.
fn check_header(copies: &[u8; HEADER_BYTES * 2]) -> Option<Header> {
    let (first, second) = copies.split_at(HEADER_BYTES);
    if first != second || number_at(first, 0) != FORMAT_VERSION || first[IS_INITIALISED] != 1 {
        return None;
    }
    first.try_into().ok()
}

fn stamp_of(header: &Header) -> u64 {
    // The header contains a commit counter and checksums over pages, so two states do not collide in practice.
    let mut hasher = DefaultHasher::new();
    header.hash(&mut hasher);
    hasher.finish()
}

fn commit_counter(header: &Header) -> u32 {
    number_at(header, COMMIT_COUNTER)
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |number| u32::from_ne_bytes(*number))
}

#[cfg(unix)]
fn read_start(file: &File, into: &mut [u8]) -> Option<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, 0).ok()
}

/// Not supported: on other systems, a read of the file need not be coherent with SQLite's memory mapping.
#[cfg(not(unix))]
fn read_start(_: &File, _: &mut [u8]) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_being_written_has_no_stamp() {
        let mut copies = [7; HEADER_BYTES * 2];
        for copy in 0..2 {
            copies[copy * HEADER_BYTES..copy * HEADER_BYTES + 4].copy_from_slice(&FORMAT_VERSION.to_ne_bytes());
            copies[copy * HEADER_BYTES + IS_INITIALISED] = 1;
        }
        let stamp = check_header(&copies).as_ref().map(stamp_of);
        assert!(stamp.is_some());
        copies[HEADER_BYTES + COMMIT_COUNTER] += 1;
        assert_eq!(check_header(&copies), None);
        copies[COMMIT_COUNTER] += 1;
        assert!(check_header(&copies).is_some_and(|after| Some(stamp_of(&after)) != stamp));
        for copy in 0..2 {
            copies[copy * HEADER_BYTES] ^= 1;
        }
        assert_eq!(check_header(&copies), None);
    }
}
