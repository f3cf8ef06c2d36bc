//! Which files there are to add.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use threadkeep::memory::DOCUMENT_ID_BYTES;
use threadkeep_formats::DocumentFormat;

use crate::failure::Failure;

/// Folders within folders that are looked into.
const DEPTH: usize = 32;
/// Files that are added at once.
const FILES: usize = 100_000;

/// A file to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// Its path from the root of the file system.
    pub(super) id: String,
    /// Its name; in a folder that was named, its path from there.
    pub(super) title: String,
}

/// Finds the files that some paths stand for, folders walked in the order of names.
pub(super) fn find(paths: &[PathBuf]) -> Result<Vec<File>> {
    let mut files = Vec::new();
    for path in paths {
        let found = std::fs::metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let failure = Failure::yours(format!("there is no file or folder {}", path.display()));
                failure.hint("check the name; nothing was added")
            }
            _ => Failure::yours(format!("{} cannot be read: {error}", path.display())),
        })?;
        if found.is_dir() {
            let unread = || format!("{} cannot be read", path.display());
            let root = path.canonicalize().with_context(unread)?;
            let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
            walk((path, &root), &name.unwrap_or_default(), DEPTH, &mut files).with_context(unread)?;
        } else if !found.is_file() {
            return Err(Failure::yours(format!("{} is neither a file nor a folder", path.display())).into());
        } else {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            files.extend(file(path, name));
        }
    }
    if files.len() > FILES {
        return Err(Failure::yours(format!("there are more than {FILES} files")).into());
    }
    if files.is_empty() {
        let failure = Failure::yours("there is no document in what was named");
        return Err(failure.hint("documents end in .txt, .md, .markdown, .html or .htm").into());
    }
    Ok(files)
}

/// The id of a file's document; `None` where there is no such file.
pub(super) fn id(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?.to_string_lossy().into_owned();
    if path.len() <= DOCUMENT_ID_BYTES {
        return Some(path);
    }
    // The end tells more than the beginning, and the hash keeps two of one end apart.
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
        // A link may lead back up, and whoever gave the folder has no say about files beside it.
        let is_inside = || !path.is_symlink() || path.canonicalize().is_ok_and(|target| target.starts_with(root));
        if entry.file_type()?.is_dir() {
            if depth > 0 {
                walk((&path, root), &title, depth - 1, files)?;
            }
        } else if path.is_file() && is_inside() && DocumentFormat::of_path(&path).is_some() {
            files.extend(file(&path, title));
        }
    }
    Ok(())
}
