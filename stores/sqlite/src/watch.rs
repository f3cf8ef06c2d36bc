//! Whether anybody wrote to the file, without asking SQLite: that takes a transaction, whose locks all threads share.
//!
//! SQLite's processes tell each other of commits in the header of the index of the write-ahead log, the file `-shm`. Every
//! reader goes by it: a commit that does not stand there is seen by nobody, and each one that does has changed it. The
//! header is 48 bytes, written twice, the second copy first: <https://sqlite.org/walformat.html>, section 2.1.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, PoisonError, RwLock};

use rusqlite::Connection;

const HEADER: usize = 48;
type Header = [u8; HEADER];
/// The version of the format that the header begins with.
const FORMAT: u32 = 3_007_000;
/// Where it counts commits.
const CHANGE: usize = 8;
/// Where it says whether the header is there.
const IS_INITIALISED: usize = 12;

/// Looks at the header.
#[derive(Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    /// Opened with the first look; the file stays the same one for as long as the database is open.
    file: OnceLock<Option<&'static File>>,
    /// Readers do not keep each other waiting.
    threads_only: RwLock<Option<ThreadsOnly>>,
}

/// What a transaction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// Nothing but threads and what belongs to them.
    Threads,
    /// Whatever else.
    Anything,
}

/// Commits of this process, one after the other with none of anybody else in between, that wrote threads alone.
#[derive(Debug)]
struct ThreadsOnly {
    /// The stamp that stood before them.
    stamp: u64,
    /// The header that the last one left.
    header: Header,
}

/// What stood there when a transaction had the lock of writers.
#[derive(Debug)]
pub(crate) struct Begun {
    header: Option<Header>,
    total_changes: u64,
}

impl Watch {
    /// Watches the database at a path.
    pub(crate) fn of(path: &Path) -> Self {
        let mut name = OsString::from(path);
        name.push("-shm");
        Self { path: name.into(), file: OnceLock::new(), threads_only: RwLock::default() }
    }

    /// A number that is another one after every commit; `None` while one is being told, and where nothing tells.
    pub(crate) fn stamp(&self) -> Option<u64> {
        self.header().as_ref().map(stamp_of)
    }

    /// The stamp, or the one that stood before the last commits where those were of this process and wrote threads alone.
    pub(crate) fn records_stamp(&self) -> Option<u64> {
        // Looked at under the lock, so that no commit of ours is noted in between.
        let threads_only = self.threads_only.read().unwrap_or_else(PoisonError::into_inner);
        let header = self.header()?;
        match &*threads_only {
            Some(ours) if ours.header == header => Some(ours.stamp),
            _ => Some(stamp_of(&header)),
        }
    }

    /// Looks at what stands there, within a transaction that nobody else can commit before. Nothing is opened for it: as long
    /// as nobody asked for a stamp, none has to be kept.
    pub(crate) fn begin(&self, writer: &Connection) -> Begun {
        let header = self.file.get().and_then(|file| header(file.as_ref()?));
        Begun { header, total_changes: writer.total_changes() }
    }

    /// Notes that the transaction was committed. Others may have followed already: it is ours alone where it wrote something
    /// and one commit was counted.
    pub(crate) fn end(&self, writer: &Connection, begun: &Begun, writes: Writes) {
        let mut threads_only = self.threads_only.write().unwrap_or_else(PoisonError::into_inner);
        let after = begun.header.and_then(|_| self.header());
        let (Some(before), Some(after)) = (begun.header, after) else {
            *threads_only = None;
            return;
        };
        if before == after {
            return;
        }
        let has_written = writer.total_changes() != begun.total_changes;
        let is_ours_alone = has_written && change(&after) == change(&before).wrapping_add(1);
        *threads_only = (is_ours_alone && writes == Writes::Threads).then(|| {
            let follows = threads_only.as_ref().filter(|ours| ours.header == before);
            ThreadsOnly { stamp: follows.map_or_else(|| stamp_of(&before), |ours| ours.stamp), header: after }
        });
    }

    fn header(&self) -> Option<Header> {
        header(self.file.get_or_init(|| open_for_ever(&self.path)).as_ref()?)
    }
}

/// The header as it stands; `None` while it is being written.
fn header(file: &File) -> Option<Header> {
    let mut copies = [0; HEADER * 2];
    if read(file, &mut copies)? < copies.len() {
        return None;
    }
    checked(&copies)
}

/// Opens a file that is never closed: closing it would release every lock that SQLite holds on it in this process, as
/// POSIX has it. So each file is opened once.
#[cfg(unix)]
fn open_for_ever(path: &Path) -> Option<&'static File> {
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
fn open_for_ever(_: &Path) -> Option<&'static File> {
    None
}

/// The header, if both copies say the same and are of a kind that is known.
fn checked(copies: &[u8; HEADER * 2]) -> Option<Header> {
    let (first, second) = copies.split_at(HEADER);
    if first != second || number_at(first, 0) != FORMAT || first[IS_INITIALISED] != 1 {
        return None;
    }
    first.try_into().ok()
}

fn stamp_of(header: &Header) -> u64 {
    // A counter of commits is among the bytes, and sums over pages that no one could repeat by accident.
    let mut hasher = DefaultHasher::new();
    header.hash(&mut hasher);
    hasher.finish()
}

fn change(header: &Header) -> u32 {
    number_at(header, CHANGE)
}

fn number_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |number| u32::from_ne_bytes(*number))
}

#[cfg(unix)]
fn read(file: &File, into: &mut [u8]) -> Option<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, 0).ok()
}

/// What is mapped into memory and what is read need not be the same elsewhere.
#[cfg(not(unix))]
fn read(_: &File, _: &mut [u8]) -> Option<usize> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_that_is_being_written_has_no_stamp() {
        let mut copies = [7; HEADER * 2];
        for copy in 0..2 {
            copies[copy * HEADER..copy * HEADER + 4].copy_from_slice(&FORMAT.to_ne_bytes());
            copies[copy * HEADER + IS_INITIALISED] = 1;
        }
        let stamp = checked(&copies).as_ref().map(stamp_of);
        assert!(stamp.is_some());
        copies[HEADER + CHANGE] += 1;
        assert_eq!(checked(&copies), None);
        copies[CHANGE] += 1;
        assert!(checked(&copies).is_some_and(|after| Some(stamp_of(&after)) != stamp));
        for copy in 0..2 {
            copies[copy * HEADER] ^= 1;
        }
        assert_eq!(checked(&copies), None);
    }
}
