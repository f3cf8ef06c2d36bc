use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::HumanBytes;
use serde::Serialize;
use threadkeep_store_sqlite::SqliteStore;

use super::{App, Status};
use crate::failure::Failure;
use crate::progress;
use crate::store::Purpose;

/// Copy the store into a file, while others read and write
///
/// The copy is a whole store of its own: --store FILE opens it, `threadkeep restore FILE` puts it back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  threadkeep backup monday.db")]
pub(crate) struct Arguments {
    /// The file to write; it must not be there yet
    file: PathBuf,
}

#[derive(Serialize)]
struct BackedUp {
    file: PathBuf,
    bytes: u64,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let file = arguments.file;
    if file.exists() {
        let failure = Failure::yours(format!("there is a file {} already", file.display()));
        return Err(failure.hint("name another; a backup never overwrites").into());
    }
    let Some(store) = app.open(Purpose::Read).await?.sqlite else {
        let failure = Failure::yours("only a SQLite store is backed up into a file");
        return Err(failure.hint("`threadkeep export -o FILE` writes any store out").into());
    };
    let copy = Unfinished::beside(app, &file)?;
    let original = store.path().to_owned();
    copy_store(store, copy.path()).await.with_context(|| format!("{} cannot be written", file.display()))?;
    copy.finish(&file, &original)?;
    let bytes = std::fs::metadata(&file).map_or(0, |found| found.len());
    if app.output.is_json() {
        app.output.json(&BackedUp { file, bytes })?;
    } else {
        app.output.line(format_args!("backed up {} to {}", HumanBytes(bytes), file.display()))?;
    }
    Ok(Status::Done)
}

/// Copies a store where it holds up nobody, with progress.
pub(super) async fn copy_store(store: SqliteStore, target: &Path) -> Result<()> {
    let target = target.to_owned();
    let copied = tokio::task::spawn_blocking(move || {
        let bar = progress::count(0, "pages");
        let copied = store.backup_to(&target, |remaining, total| {
            bar.set_length(total);
            bar.set_position(total.saturating_sub(remaining));
        });
        bar.finish_and_clear();
        copied
    });
    Ok(copied.await??)
}

/// A file that has another name until it is whole, and is removed if it never is.
pub(super) struct Unfinished {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl Unfinished {
    /// Makes a place for it in the folder of its later name, so that renaming it is one step.
    pub(super) fn beside(app: &App, file: &Path) -> Result<Self> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = tempfile::Builder::new().prefix(".threadkeep-").tempdir_in(parent);
        let folder = folder.with_context(|| format!("{} cannot be written", file.display()))?;
        let unfinished = folder.path().join("unfinished.db");
        app.interrupt.remove_if_interrupted(folder.path());
        Ok(Self { folder, file: unfinished })
    }

    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    /// Another file in the same place, for steps on the way.
    pub(super) fn sibling(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Gives it its name, when all of it is on the disk, and the rights of another file: whoever could not read the one
    /// must not read the other.
    pub(super) fn finish(self, file: &Path, model: &Path) -> Result<()> {
        let unwritten = || format!("{} cannot be written", file.display());
        let rights = std::fs::metadata(model).with_context(unwritten)?.permissions();
        std::fs::set_permissions(&self.file, rights).with_context(unwritten)?;
        std::fs::File::open(&self.file).and_then(|copy| copy.sync_all()).with_context(unwritten)?;
        std::fs::rename(&self.file, file).with_context(unwritten)?;
        sync_folder(file).with_context(unwritten)
    }
}

/// A new name is on the disk only when its folder is.
#[cfg(unix)]
fn sync_folder(file: &Path) -> std::io::Result<()> {
    let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::File::open(parent)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_: &Path) -> std::io::Result<()> {
    Ok(())
}
