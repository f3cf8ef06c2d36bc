//! Finds files of the program that other users of this machine can read.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::arguments::quoted;
use crate::commands::App;
use crate::erasures::key_file;
use crate::settings::{SETTINGS, Settings};

/// An existing file that other users can read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ExposedFile {
    path: PathBuf,
    /// Its permissions, such as `0644`.
    mode: String,
    /// The command that restricts the permissions.
    fix: String,
}

impl std::fmt::Display for ExposedFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, mode, fix } = self;
        write!(f, "{} can be read by others (mode {mode}): {fix}", path.display())
    }
}

/// Returns the files with data that other users can read: the store, its log, the erasure ledger and the ledger's key.
pub(crate) fn data_files(app: &App) -> Vec<ExposedFile> {
    let location = app.location().ok();
    let store = location.as_ref().and_then(|location| location.file());
    let mut files: Vec<PathBuf> = Vec::new();
    if let Some(store) = store {
        files.extend(["", "-wal", "-shm"].map(|end| with_end(store, end)));
    }
    if let Some(ledger) = app.erasure_ledger().file() {
        files.extend([ledger.to_owned(), key_file(ledger)]);
    }
    files.iter().filter_map(|file| exposed(file)).collect()
}

/// Returns the files with secrets that other users can read.
pub(crate) fn secret_files(settings: &Settings) -> Vec<ExposedFile> {
    let named = SETTINGS.iter().filter_map(|setting| settings.get(&setting.file_name()?));
    let files = named.chain(settings.get("THREADKEEP_TLS_KEY"));
    files.filter_map(|file| exposed(Path::new(&file))).collect()
}

fn with_end(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

#[cfg(unix)]
fn exposed(file: &Path) -> Option<ExposedFile> {
    use std::os::unix::fs::MetadataExt;
    let path = file.canonicalize().ok()?;
    let mode = std::fs::metadata(&path).ok().filter(std::fs::Metadata::is_file)?.mode() & 0o777;
    // A folder that other users cannot enter protects everything below it.
    let is_enterable = |folder: &Path| std::fs::metadata(folder).is_ok_and(|metadata| metadata.mode() & 0o011 != 0);
    if mode & 0o044 == 0 || !path.ancestors().skip(1).all(is_enterable) {
        return None;
    }
    let fix = format!("chmod 600 {}", quoted(&file.display().to_string()));
    Some(ExposedFile { path: file.to_owned(), mode: format!("{mode:04o}"), fix })
}

#[cfg(not(unix))]
fn exposed(_: &Path) -> Option<ExposedFile> {
    None
}
