//! Finds the files to import.

use std::fmt;
use std::fs::Metadata;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use threadkeep_formats::{Archive, ArchiveEntry, Format, FormatError, Reader};

use super::exclusions::Exclusions;
use crate::failure::{Failure, sentence};

/// Extensions of files that are imported from folders.
const EXTENSIONS: [&str; 6] = [".json", ".jsonl", ".ndjson", ".gz", ".zip", ".vscdb"];
/// Extensions of files in an archive that can contain conversations.
const ENTRY_EXTENSIONS: [&str; 3] = [".json", ".jsonl", ".ndjson"];
/// Extensions of files that can be archives.
const ARCHIVE_EXTENSIONS: [&str; 1] = [".zip"];
/// Extensions of databases of programs.
const DATABASE_EXTENSIONS: [&str; 1] = [".vscdb"];
/// The chat history of Aider, in the folder of a project.
pub(super) const AIDER_FILE: &str = ".aider.chat.history.md";
/// The maximum number of file names in a note.
const NAMES_LISTED: usize = 3;

/// A file to import.
#[derive(Clone, Debug)]
pub(crate) struct File {
    source: Source,
    pub(super) origin: Origin,
    bytes: u64,
    state: Option<FileState>,
}

/// What shows that a file has changed: its size and modification time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileState {
    pub(super) bytes: u64,
    /// In microseconds since the Unix epoch.
    pub(super) changed_at: u64,
}

impl FileState {
    /// Reads the state of a file; `None` if it cannot be read. New data of a database can be in the file of its write-ahead log.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let state = Self::of(&std::fs::metadata(path).ok()?);
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        let log = if is_editor_database(path) { std::fs::metadata(log).ok() } else { None };
        let Some(log) = log.as_ref().map(Self::of) else { return Some(state) };
        Some(Self { bytes: state.bytes + log.bytes, changed_at: state.changed_at.max(log.changed_at) })
    }

    fn of(metadata: &Metadata) -> Self {
        let changed_at = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let changed_at = changed_at.and_then(|since| u64::try_from(since.as_micros()).ok());
        Self { bytes: metadata.len(), changed_at: changed_at.unwrap_or_default() }
    }
}

#[derive(Clone, Debug)]
enum Source {
    Path(PathBuf),
    StandardInput,
    /// A file in an archive.
    Entry(Arc<Archive>, ArchiveEntry),
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
        Self { source: Source::BuiltIn(text), origin: Origin::Named, bytes: text.len() as u64, state: None }
    }

    /// Returns a file given by the user.
    pub(crate) fn named(path: PathBuf) -> Self {
        let state = FileState::read(&path);
        let bytes = state.map_or(0, |state| state.bytes);
        Self { source: Source::Path(path), origin: Origin::Named, bytes, state }
    }

    /// Returns the path of a file on disk.
    pub(super) fn path(&self) -> Option<&Path> {
        match &self.source {
            Source::Path(path) => Some(path),
            Source::StandardInput | Source::Entry(..) | Source::BuiltIn(_) => None,
        }
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the state of a file on disk when it was found.
    pub(super) fn state(&self) -> Option<FileState> {
        self.state
    }

    /// Reads the state of a file on disk again.
    pub(super) fn refresh(&mut self) {
        self.state = self.path().and_then(FileState::read);
    }

    pub(super) fn open(&self, format: Option<Format>) -> Result<Reader, FormatError> {
        match &self.source {
            Source::Path(path) => threadkeep_formats::open(path, format),
            Source::StandardInput => threadkeep_formats::open_stream(Box::new(io::stdin()), format),
            Source::Entry(archive, entry) => archive.read(entry, format),
            Source::BuiltIn(text) => threadkeep_formats::open_stream(Box::new(text.as_bytes()), format),
        }
    }
}

impl File {
    /// Opens the file for reading its documents; `None` for standard input, which can be read only once.
    pub(super) fn stream(&self) -> Option<Result<Box<dyn Read + Send>, FormatError>> {
        let open = |path: &PathBuf| match std::fs::File::open(path) {
            Ok(file) => Ok(Box::new(file) as _),
            Err(source) => Err(FormatError::Open { path: path.clone(), source }),
        };
        match &self.source {
            Source::Path(path) => Some(open(path)),
            Source::Entry(archive, entry) => Some(archive.stream(entry)),
            Source::StandardInput | Source::BuiltIn(_) => None,
        }
    }
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            Source::Path(path) => path.display().fmt(f),
            Source::StandardInput => f.write_str("standard input"),
            Source::Entry(archive, entry) => write!(f, "{}:{}", archive.path().display(), entry.name),
            Source::BuiltIn(_) => f.write_str("the demo"),
        }
    }
}

/// The files to import, and notes about what is skipped.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) files: Vec<File>,
    pub(super) skipped: Vec<String>,
    /// Archives and folders that cannot be read, with the reasons.
    pub(super) unreadable: Vec<(String, String)>,
}

/// Finds the given files, and the files in the given folders and archives. Folders are walked in the order of names.
pub(super) fn find(paths: &[PathBuf], exclusions: &Exclusions) -> Result<Found> {
    let mut found = Found::default();
    for path in paths {
        if path.as_os_str() == "-" {
            found.files.push(File { source: Source::StandardInput, origin: Origin::Named, bytes: 0, state: None });
            continue;
        }
        match std::fs::metadata(path) {
            Ok(_) if exclusions.matches(path) => {}
            Ok(metadata) if metadata.is_dir() => {
                found.walk(path, exclusions).with_context(|| format!("cannot read {}", path.display()))?;
            }
            Ok(_) => found.add(File::named(path.clone()), exclusions),
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
    if found.files.is_empty() && found.unreadable.is_empty() {
        let failure = Failure::user_error("no data files found in the given paths");
        return Err(failure.hint(format!("supported extensions: {}", EXTENSIONS.join(", "))).into());
    }
    Ok(found)
}

impl Found {
    fn walk(&mut self, folder: &Path, exclusions: &Exclusions) -> io::Result<()> {
        let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let is_history = name == AIDER_FILE;
            if (name.starts_with('.') && !is_history) || exclusions.matches(&path) {
                continue;
            }
            let kind = entry.file_type()?;
            // Links to folders are not followed, because they may lead to a parent folder.
            if kind.is_dir() {
                if let Err(error) = self.walk(&path, exclusions) {
                    self.unreadable.push((path.display().to_string(), format!("cannot read the folder: {error}")));
                }
            } else if !kind.is_file() && !path.is_file() {
                self.skipped.push(format!("skipped {}: not a file", path.display()));
            } else if is_history || has_extension(&name, &EXTENSIONS) {
                self.add(File { origin: Origin::Folder, ..File::named(path) }, exclusions);
            } else {
                self.skipped.push(format!("skipped {}: not a data file", path.display()));
            }
        }
        Ok(())
    }

    /// Adds a file, or the files of an archive.
    fn add(&mut self, file: File, exclusions: &Exclusions) {
        // Folders of programs are searched again and again, so their files are not opened only to see what they are.
        let may_be_archive =
            |path: &&Path| file.origin == Origin::Named || has_extension(&path.to_string_lossy(), &ARCHIVE_EXTENSIONS);
        let path = file.path().filter(may_be_archive);
        let archive = match path.filter(|path| Archive::is_archive(path)).map(Archive::open) {
            None => return self.files.push(file),
            Some(Ok(archive)) => Arc::new(archive),
            Some(Err(error)) => return self.unreadable.push((file.to_string(), sentence(&error.into()))),
        };
        let mut others = Vec::new();
        for entry in archive.entries() {
            if exclusions.matches(Path::new(&entry.name)) {
                continue;
            }
            if !has_extension(&entry.name, &ENTRY_EXTENSIONS) {
                others.push(entry.name.as_str());
                continue;
            }
            let source = Source::Entry(Arc::clone(&archive), entry.clone());
            self.files.push(File { source, origin: Origin::Folder, bytes: entry.packed_bytes, state: None });
        }
        if !others.is_empty() {
            let named: Vec<_> = others.iter().take(NAMES_LISTED).copied().collect();
            let more = if others.len() > named.len() { ", …" } else { "" };
            let count = crate::table::counted(others.len() as u64, "file");
            self.skipped
                .push(format!("{file}: {count} without conversations are not imported ({}{more})", named.join(", ")));
        }
    }
}

/// Whether a file is a database of an editor, by its name.
pub(super) fn is_editor_database(path: &Path) -> bool {
    has_extension(&path.to_string_lossy(), &DATABASE_EXTENSIONS)
}

fn has_extension(name: &str, extensions: &[&str]) -> bool {
    let name = name.to_lowercase();
    extensions.iter().any(|extension| name.ends_with(extension))
}
