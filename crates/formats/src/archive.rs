//! Reads the files in a zip archive, the form in which services deliver their exports. Nothing is extracted to disk.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::Crc;
use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use crate::{FileName, Format, FormatError, Reader, open_named_stream};

/// The maximum number of files in an archive.
pub const ARCHIVE_ENTRIES: usize = 100_000;
/// The maximum total size of the files in an archive, as a multiple of the archive's size.
const EXPANSION: u64 = 200;
/// The total size in bytes that is allowed for any archive, however small.
const EXPANDED_BYTES: u64 = 64 * 1024 * 1024;
const MAGIC: &[u8] = b"PK\x03\x04";

/// A zip archive.
#[derive(Debug)]
pub struct Archive {
    path: PathBuf,
    entries: Vec<ArchiveEntry>,
    /// The number of decompressed bytes that may still be read.
    remaining: Arc<AtomicU64>,
}

/// A file in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveEntry {
    /// Its path in the archive. Never used as a path on the disk.
    pub name: String,
    /// Its size in the archive.
    pub packed_bytes: u64,
    start: Option<u64>,
    checksum: u32,
    method: CompressionMethod,
    is_encrypted: bool,
}

impl Archive {
    /// Whether a file is a zip archive, by its first bytes.
    #[must_use]
    pub fn is_archive(path: &Path) -> bool {
        let mut start = [0; MAGIC.len()];
        File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == MAGIC
    }

    /// Reads the list of the files in an archive.
    ///
    /// # Errors
    /// `Open` and `Read` for errors of the operating system, `Unrecognised` if the archive is damaged or has too many files.
    pub fn open(path: &Path) -> Result<Self, FormatError> {
        let file = File::open(path).map_err(|source| FormatError::Open { path: path.to_owned(), source })?;
        let bytes = file.metadata()?.len();
        let damaged = |_| FormatError::Unrecognised { found: "a damaged zip archive".to_owned() };
        let mut archive = ZipArchive::new(file).map_err(damaged)?;
        if archive.len() > ARCHIVE_ENTRIES {
            let found = format!("a zip archive with more than {ARCHIVE_ENTRIES} files");
            return Err(FormatError::Unrecognised { found });
        }
        let mut entries = Vec::new();
        for index in 0..archive.len() {
            let entry = archive.by_index_raw(index).map_err(damaged)?;
            if entry.is_dir() {
                continue;
            }
            entries.push(ArchiveEntry {
                name: entry.name().map_err(damaged)?.into_owned(),
                packed_bytes: entry.compressed_size(),
                start: entry.data_start(),
                checksum: entry.crc32(),
                method: entry.compression(),
                is_encrypted: entry.encrypted(),
            });
        }
        let allowed = bytes.saturating_mul(EXPANSION).max(EXPANDED_BYTES);
        Ok(Self { path: path.to_owned(), entries, remaining: Arc::new(AtomicU64::new(allowed)) })
    }

    /// Returns the path of the archive.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files in the order of the archive.
    #[must_use]
    pub fn entries(&self) -> &[ArchiveEntry] {
        &self.entries
    }

    /// Reads a file of the archive. The files of an archive are read only up to a multiple of the archive's size; after that,
    /// the reader ends with an error.
    ///
    /// # Errors
    /// As for [`crate::open`], and `Unrecognised` for an encrypted file or an unknown compression.
    pub fn read(&self, entry: &ArchiveEntry, format: Option<Format>) -> Result<Reader, FormatError> {
        open_named_stream(self.stream(entry)?, FileName::of_entry(Path::new(&entry.name)), format)
    }

    /// Returns the decompressed bytes of a file of the archive, with the same bounds as [`Archive::read`].
    ///
    /// # Errors
    /// As for [`Archive::read`].
    pub fn stream(&self, entry: &ArchiveEntry) -> Result<Box<dyn Read + Send>, FormatError> {
        let unreadable = |found: String| Err(FormatError::Unrecognised { found });
        if entry.is_encrypted {
            return unreadable("an encrypted file".to_owned());
        }
        let Some(start) = entry.start else { return unreadable("a damaged zip archive".to_owned()) };
        let mut file =
            File::open(&self.path).map_err(|source| FormatError::Open { path: self.path.clone(), source })?;
        file.seek(SeekFrom::Start(start))?;
        let packed = file.take(entry.packed_bytes);
        let text: Box<dyn Read + Send> = match entry.method {
            CompressionMethod::Stored => Box::new(packed),
            CompressionMethod::Deflated => Box::new(DeflateDecoder::new(packed)),
            method => return unreadable(format!("a file with an unsupported compression method ({method})")),
        };
        let bounded = Bounded { text, remaining: Arc::clone(&self.remaining) };
        Ok(Box::new(Checked { text: bounded, checksum: Crc::new(), expected: entry.checksum }))
    }
}

/// Compares the checksum at the end. What was read before is then imported already, but the damage is reported.
struct Checked {
    text: Bounded,
    checksum: Crc,
    expected: u32,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        self.checksum.update(&buffer[..read]);
        if read == 0 && !buffer.is_empty() && self.checksum.sum() != self.expected {
            return Err(io::Error::other("the archive is damaged: the checksum of the file is wrong"));
        }
        Ok(read)
    }
}

/// Reads until the archive has expanded too much.
struct Bounded {
    text: Box<dyn Read + Send>,
    remaining: Arc<AtomicU64>,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.text.read(buffer)?;
        let bytes = read as u64;
        let take = |remaining: u64| remaining.checked_sub(bytes);
        match self.remaining.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take) {
            Ok(_) => Ok(read),
            Err(_) => Err(io::Error::other(format!("the archive expands to more than {EXPANSION} times its size"))),
        }
    }
}
