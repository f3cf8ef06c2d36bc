//! Whether anybody wrote to the file, without asking SQLite: that takes a transaction, whose locks all threads share.
//!
//! SQLite's processes tell each other of commits in the header of the index of the write-ahead log, the file `-shm`. Every
//! reader goes by it: a commit that does not stand there is seen by nobody, and each one that does has changed it. The
//! header is 48 bytes, written twice, the second copy first: <https://sqlite.org/walformat.html>, section 2.1.

use std::ffi::OsString;
use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

const HEADER: usize = 48;
/// The version of the format that the header begins with.
const FORMAT: u32 = 3_007_000;
/// Where it says whether the header is there.
const IS_INITIALISED: usize = 12;

/// Looks at the header.
#[derive(Debug)]
pub(crate) struct Watch {
    path: PathBuf,
    /// Opened with the first look; the file stays the same one for as long as the database is open.
    file: OnceLock<Option<&'static File>>,
}

impl Watch {
    /// Watches the database at a path.
    pub(crate) fn of(path: &Path) -> Self {
        let mut name = OsString::from(path);
        name.push("-shm");
        Self { path: name.into(), file: OnceLock::new() }
    }

    /// A number that is another one after every commit; `None` while one is being told, and where nothing tells.
    pub(crate) fn stamp(&self) -> Option<u64> {
        let file = self.file.get_or_init(|| open_for_ever(&self.path)).as_ref()?;
        let mut copies = [0; HEADER * 2];
        if read(file, &mut copies)? < copies.len() {
            return None;
        }
        stamp_of(&copies)
    }
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

fn stamp_of(copies: &[u8; HEADER * 2]) -> Option<u64> {
    let (first, second) = copies.split_at(HEADER);
    let format = u32::from_ne_bytes(first.first_chunk().copied()?);
    if first != second || format != FORMAT || first[IS_INITIALISED] != 1 {
        return None;
    }
    // A counter of commits is among the bytes, and sums over pages that no one could repeat by accident.
    let mut hasher = DefaultHasher::new();
    first.hash(&mut hasher);
    Some(hasher.finish())
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
        let stamp = stamp_of(&copies);
        assert!(stamp.is_some());
        copies[HEADER + 8] += 1;
        assert_eq!(stamp_of(&copies), None);
        copies[8] += 1;
        assert!(stamp_of(&copies).is_some_and(|after| Some(after) != stamp));
        for copy in 0..2 {
            copies[copy * HEADER] ^= 1;
        }
        assert_eq!(stamp_of(&copies), None);
    }
}
