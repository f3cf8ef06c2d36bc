//! Finds the files to import.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use threadkeep_formats::{Format, FormatError, Reader};

use crate::failure::Failure;

/// Extensions of files that are imported from folders.
const EXTENSIONS: [&str; 4] = [".json", ".jsonl", ".ndjson", ".gz"];

/// A file to import.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct File {
    source: Source,
    pub(super) origin: Origin,
    bytes: u64,
}

#[derive(Debug, PartialEq, Eq)]
enum Source {
    Path(PathBuf),
    StandardInput,
    /// A file that is part of the program.
    BuiltIn(&'static str),
}

/// How a file was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// The user gave the file. Then it is an error if the file contains no conversations.
    Named,
    /// The file is in a folder that the user gave.
    Folder,
}

impl File {
    /// Returns a file that is part of the program.
    pub(crate) fn built_in(text: &'static str) -> Self {
        Self { source: Source::BuiltIn(text), origin: Origin::Named, bytes: text.len() as u64 }
    }

    /// Returns a file given by the user.
    pub(crate) fn named(path: PathBuf) -> Self {
        let bytes = std::fs::metadata(&path).map_or(0, |found| found.len());
        Self { source: Source::Path(path), origin: Origin::Named, bytes }
    }

    /// Returns the path of a file on disk.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::Path(path) => Some(path),
            Source::StandardInput | Source::BuiltIn(_) => None,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn open(&self, format: Option<Format>) -> Result<Reader, FormatError> {
        match &self.source {
            Source::Path(path) => threadkeep_formats::open(path, format),
            Source::StandardInput => threadkeep_formats::open_stream(Box::new(io::stdin()), format),
            Source::BuiltIn(text) => threadkeep_formats::open_stream(Box::new(text.as_bytes()), format),
        }
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Path(path) => path.display().fmt(f),
            Source::StandardInput => f.write_str("standard input"),
            Source::BuiltIn(_) => f.write_str("the demo"),
        }
    }
}

/// Returns the given files, and the files in the given folders. Folders are walked in the order of names. The second value
/// contains a note for each skipped file.
pub(super) fn find(paths: &[PathBuf]) -> Result<(Vec<File>, Vec<String>)> {
    let (mut files, mut skipped) = (Vec::new(), Vec::new());
    for path in paths {
        if path.as_os_str() == "-" {
            files.push(File { source: Source::StandardInput, origin: Origin::Named, bytes: 0 });
            continue;
        }
        match std::fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                walk(path, &mut files, &mut skipped).with_context(|| format!("cannot read {}", path.display()))?;
            }
            Ok(_) => files.push(File::named(path.clone())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let failure = Failure::user_error(format!("no such file or folder: {}", path.display()));
                return Err(failure.hint("check the name; nothing was imported").into());
            }
            Err(error) => {
                let failure = Failure::user_error(format!("cannot read {}: {error}", path.display()));
                return Err(failure.hint("check its permissions; nothing was imported").into());
            }
        }
    }
    if files.is_empty() {
        let failure = Failure::user_error("no data files found in the given paths");
        return Err(failure.hint(format!("supported extensions: {}", EXTENSIONS.join(", "))).into());
    }
    Ok((files, skipped))
}

fn walk(folder: &Path, files: &mut Vec<File>, skipped: &mut Vec<String>) -> io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if name.starts_with('.') {
            continue;
        }
        // Links to folders are not followed, because they may lead to a parent folder.
        if entry.file_type()?.is_dir() {
            walk(&path, files, skipped)?;
        } else if !path.is_file() {
            skipped.push(format!("skipped {}: not a file", path.display()));
        } else if EXTENSIONS.iter().any(|end| name.to_lowercase().ends_with(end)) {
            files.push(File { origin: Origin::Folder, ..File::named(path) });
        } else {
            skipped.push(format!("skipped {}: not a data file", path.display()));
        }
    }
    Ok(())
}
