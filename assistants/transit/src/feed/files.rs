//! Where a feed's files come from: a zip archive in memory, or a folder.

use std::fs::File;
use std::io::{Cursor, ErrorKind, Read};
use std::path::{Path, PathBuf};

use zip::ZipArchive;
use zip::result::ZipError;

use super::error::FeedError;

/// No file of a feed may be larger when unpacked: New York's `stop_times.txt` has 33 MB.
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

    /// The content of a file, unpacked; `None` where the feed does not have it.
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

/// The size that an archive declares is not trusted: what is unpacked is counted.
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
    fn a_file_over_the_limit_is_refused_before_it_is_held_whole() {
        let error = read_bounded("stops.txt", std::io::repeat(b'x'), 10).unwrap_err();
        assert_eq!(error.to_string(), "stops.txt has more than 10 bytes");
        assert_eq!(read_bounded("stops.txt", std::io::repeat(b'x').take(10), 10).unwrap().len(), 10);
    }
}
