//! Finds the files to add.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use threadkeep::memory::DOCUMENT_ID_BYTES;
use threadkeep_formats::DocumentFormat;

use crate::failure::Failure;

/// The maximum depth of nested folders.
const DEPTH: usize = 32;
/// The maximum number of files per command.
const FILES: usize = 100_000;

/// A file to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// The absolute path of the file, shortened if it is too long.
    pub(super) id: String,
    /// The name of the file, or its path relative to the parent of the given folder.
    pub(super) title: String,
}

/// Returns the given files, and the documents in the given folders. Folders are walked in name order.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for path in paths {
        let found = std::fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let failure = Failure::user_error(format!("no such file or folder: {}", path.display()));
                failure.hint("check the name; nothing was added")
            }
            _ => Failure::user_error(format!("cannot read {}: {error}", path.display())),
        })?;
        if found.is_dir() {
            let cannot_read = || format!("cannot read {}", path.display());
            let root = path.canonicalize().with_context(cannot_read)?;
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
            walk((path, &root), &name.unwrap_or_default(), DEPTH, &mut files).with_context(cannot_read)?;
        } else if !found.is_file() {
            return Err(Failure::user_error(format!("{} is neither a file nor a folder", path.display())).into());
        } else {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            files.extend(file(path, name));
        }
    }
    if files.len() > FILES {
        return Err(Failure::user_error(format!("more than {FILES} files")).into());
    }
    if files.is_empty() {
        let failure = Failure::user_error("no documents found in the given paths");
        return Err(failure.hint("file names must end in .txt, .md, .markdown, .html or .htm").into());
    }
    Ok(files)
}

/// Returns the id of a file's document, or `None` if the file does not exist.
pub(super) fn id(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?.to_string_lossy().into_owned();
    if path.len() <= DOCUMENT_ID_BYTES {
        return Some(path);
    }
    // The end of a path is more specific than its beginning. The hash distinguishes paths with the same end.
    let hash: String = Sha256::digest(path.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let from = (path.len() + hash.len() + 1 - DOCUMENT_ID_BYTES..path.len()).find(|at| path.is_char_boundary(*at))?;
    Some(format!("{hash}:{}", &path[from..]))
}

fn file(path: &Path, title: String) -> Option<File> {
    Some(File { path: path.to_owned(), id: id(path)?, title })
}

fn walk((folder, root): (&Path, &Path), title: &str, depth: usize, files: &mut Vec<File>) -> io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        if name.starts_with('.') || files.len() > FILES {
            continue;
        }
        let title = if title.is_empty() { name } else { format!("{title}/{name}") };
        // Links to folders are not followed, because they may lead to a parent folder. Links to files outside the given folder
        // are skipped, because those files must not be added.
        let is_inside = || !path.is_symlink() || path.canonicalize().is_ok_and(|target| target.starts_with(root));
        if entry.file_type()?.is_dir() {
            if depth > 0 {
                walk((&path, root), &title, depth - 1, files)?;
            }
        } else if path.is_file() && is_inside() && DocumentFormat::from_path(&path).is_some() {
            files.extend(file(&path, title));
        }
    }
    Ok(())
}
