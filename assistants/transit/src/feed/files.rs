//! Access to a feed's files, in a zip archive in memory or in a folder.

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::error::FeedError;

/// The maximum size of a decompressed file. New York's `stop_times.txt` has 33 MB.
const FILE_LIMIT_BYTES: u64 = 512 << 20;

/// The files of one feed.
pub(super) enum Files {
    Archive(Box<ZipArchive<Cursor<Vec<u8>>>>),
    Folder(PathBuf),
}

impl Files {
    pub(super) fn in_archive(bytes: Vec<u8>) -> Result<Self, FeedError> {
        let archive = ZipArchive::new(Cursor::new(bytes));
        archive
            .map(|archive| Self::Archive(Box::new(archive)))
            .map_err(|source| FeedError::Archive { file: "the feed".to_owned(), source })
    }

    pub(super) fn in_folder(folder: &Path) -> Result<Self, FeedError> {
        std::fs::read_dir(folder)
            .map(|_| Self::Folder(folder.to_owned()))
            .map_err(|source| FeedError::Io { file: folder.display().to_string(), source })
    }

    /// Returns the decompressed content of a file, or `None` if the feed does not contain it.
    pub(super) fn find(&mut self, name: &'static str) -> Result<Option<Vec<u8>>, FeedError> {
        match self {
            Self::Archive(archive) => match archive.by_name(name) {
                Err(ZipError::FileNotFound) => Ok(None),
                Err(source) => Err(FeedError::Archive { file: name.to_owned(), source }),
                Ok(member) => read_bounded(name, member, FILE_LIMIT_BYTES).map(Some),
            },
            Self::Folder(folder) => match File::open(folder.join(name)) {
                Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(source) => Err(FeedError::Io { file: name.to_owned(), source }),
                Ok(file) => read_bounded(name, file, FILE_LIMIT_BYTES).map(Some),
            },
        }
    }
}

/// Reads at most `limit` bytes. The size declared in an archive is not trusted.
fn read_bounded(name: &str, file: impl Read, limit: u64) -> Result<Vec<u8>, FeedError> {
    let mut bytes = Vec::new();
    let read = file.take(limit + 1).read_to_end(&mut bytes);
    read.map_err(|source| FeedError::Io { file: name.to_owned(), source })?;
    if bytes.len() as u64 > limit {
        return Err(FeedError::TooLarge { file: name.to_owned(), limit, unit: "bytes" });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_over_the_limit_is_rejected_without_reading_all_of_it() {
        let error = read_bounded("stops.txt", std::io::repeat(b'x'), 10).unwrap_err();
        assert_eq!(error.to_string(), "stops.txt exceeds 10 bytes");
        assert_eq!(read_bounded("stops.txt", std::io::repeat(b'x').take(10), 10).unwrap().len(), 10);
    }
}
