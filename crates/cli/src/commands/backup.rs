mod portable;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::HumanBytes;
use serde::Serialize;
use threadkeep::memory::migrate::Progress;
use threadkeep_store_sqlite::SqliteStore;

use super::{App, Status};
use crate::failure::Failure;
use crate::private;
use crate::progress;
use crate::store::Purpose;

/// Copy the store into a file, while others read and write
///
/// A SQLite store is copied as it is: --store FILE opens the copy, `threadkeep restore FILE` puts it back. A name that ends
/// in .jsonl, .ndjson or .gz asks for lines of JSON instead, verbatim as well, which any store is written as and restored
/// from (docs/export-format.md).
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep backup monday.db
  threadkeep backup monday.jsonl.gz      of any store, for any store")]
pub(crate) struct Arguments {
    /// The file to write; it must not be there yet
    file: PathBuf,
}

#[derive(Serialize)]
struct BackedUp {
    file: PathBuf,
    bytes: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    written: Option<Progress>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let file = arguments.file;
    if file.exists() {
        let failure = Failure::yours(format!("there is a file {} already", file.display()));
        return Err(failure.hint("name another; a backup never overwrites").into());
    }
    let store = app.open(Purpose::Read).await?;
    let backed_up = match store.sqlite {
        _ if portable::is_asked_for(&file) => portable::write(app, &store.memory, &file).await?,
        Some(sqlite) => copy_pages(app, sqlite, file).await?,
        None => {
            let failure = Failure::usage("only a SQLite store is copied into a file of its own kind");
            let hint = "name it FILE.jsonl.gz, or copy the store with `threadkeep migrate --from URL --to FILE`";
            return Err(failure.hint(hint).into());
        }
    };
    if app.output.is_json() {
        app.output.json(&backed_up)?;
    } else {
        let BackedUp { file, bytes, .. } = backed_up;
        app.output.line(format_args!("backed up {} to {}", HumanBytes(bytes), file.display()))?;
    }
    Ok(Status::Done)
}

async fn copy_pages(app: &App, store: SqliteStore, file: PathBuf) -> Result<BackedUp> {
    let copy = Unfinished::beside(app, &file)?;
    copy_store(store, copy.path()).await.with_context(|| format!("{} cannot be written", file.display()))?;
    copy.finish(&file)?;
    let bytes = std::fs::metadata(&file).map_or(0, |found| found.len());
    Ok(BackedUp { file, bytes, written: None })
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
        let folder = private::temporary_folder(".threadkeep-", Some(parent));
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

    /// Gives it its name, when all of it is on the disk. Nobody else may read it.
    pub(super) fn finish(self, file: &Path) -> Result<()> {
        private::close_to_others(&self.file).with_context(|| format!("{} cannot be written", file.display()))?;
        self.rename(file)
    }

    /// Gives it the name of a file that is there, and that file's rights.
    pub(super) fn finish_as(self, file: &Path) -> Result<()> {
        let unwritten = || format!("{} cannot be written", file.display());
        let rights = std::fs::metadata(file).with_context(unwritten)?.permissions();
        std::fs::set_permissions(&self.file, rights).with_context(unwritten)?;
        self.rename(file)
    }

    /// Gives it its name with the rights that it has.
    pub(super) fn rename(self, file: &Path) -> Result<()> {
        let unwritten = || format!("{} cannot be written", file.display());
        std::fs::File::open(&self.file).and_then(|copy| copy.sync_all()).with_context(unwritten)?;
        std::fs::rename(&self.file, file).with_context(unwritten)?;
        private::sync_folder(file).with_context(unwritten)
    }
}
