mod portable;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use indicatif::HumanBytes;
use serde::Serialize;
use threadkeep::core::{Consistency, Finding, Severity};
use threadkeep::memory::migrate::Progress;
use threadkeep::{Memory, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::{App, Status};
use crate::failure::Failure;
use crate::private;
use crate::progress;
use crate::store::Purpose;

/// Copy the store into a file, while others read and write
///
/// The copy holds the store as it was at one instant, however much is written meanwhile. A SQLite store is copied as it is: --store FILE opens the copy, `threadkeep restore FILE` puts it back. A name that ends
/// in .jsonl, .ndjson or .gz asks for lines of JSON instead, verbatim as well, which any store is written as and restored
/// from (docs/export-format.md).
///
/// What was written is read again and its checksums are held against it. Damage is named and the backup is kept, as it is
/// what there is; the exit code is 3.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep backup monday.db
  threadkeep backup monday.jsonl.gz      of any store, for any store")]
pub(crate) struct Arguments {
    /// The file to write; it must not be there yet
    file: PathBuf,
}

/// Findings that are told to a person; JSON tells more.
const TOLD: usize = 20;

#[derive(Serialize)]
struct BackedUp {
    file: PathBuf,
    bytes: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    written: Option<Progress>,
    /// What is as of one instant.
    as_of: Consistency,
    /// By how much the log beside a SQLite store grew, as it is not emptied while the store is read.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_growth_bytes: Option<u64>,
    /// What of it does not hold together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
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
    backed_up.print(app)?;
    Ok(if backed_up.is_damaged() { Status::Incomplete } else { Status::Done })
}

impl BackedUp {
    fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Damage)
    }

    fn print(&self, app: &App) -> Result<()> {
        if app.output.is_json() {
            return app.output.json(self);
        }
        let mut lines = app.output.lines();
        for finding in self.findings.iter().take(TOLD) {
            lines.line(super::check::told(finding))?;
        }
        let untold = self.findings.len().saturating_sub(TOLD);
        if untold > 0 {
            lines.line(format_args!("and {untold} more findings"))?;
        }
        let grown = self.log_growth_bytes.filter(|grown| *grown > 0);
        let grown = grown.map(|grown| format!("; the store's log grew by {} meanwhile", HumanBytes(grown)));
        let grown = grown.unwrap_or_default();
        lines.line(format_args!("backed up {} to {}{grown}", HumanBytes(self.bytes), self.file.display()))?;
        lines.finish()?;
        if self.is_damaged() {
            app.output.note(
                "hint: the store is damaged, and so is this copy of it: keep the older backups; \
                 `threadkeep check --salvage NEW` brings out what can be read",
            );
        }
        Ok(())
    }
}

/// Writes a store as lines.
pub(super) async fn write_lines(app: &App, memory: &Memory, file: &Path) -> Result<()> {
    portable::write(app, memory, file).await.map(drop)
}

/// Whether a file's name asks for lines.
pub(super) fn is_of_lines(file: &Path) -> bool {
    portable::is_asked_for(file)
}

async fn copy_pages(app: &App, store: SqliteStore, file: PathBuf) -> Result<BackedUp> {
    let copy = Unfinished::beside(app, &file)?;
    let log_bytes_before = store.log_bytes();
    copy_store(store.clone(), copy.path()).await.with_context(|| format!("{} cannot be written", file.display()))?;
    let log_growth_bytes = Some(store.log_bytes().saturating_sub(log_bytes_before));
    // What is damaged is the best copy there is: it is kept, and named.
    let findings = verify_copy(copy.path()).await;
    copy.finish(&file)?;
    let bytes = std::fs::metadata(&file).map_or(0, |found| found.len());
    Ok(BackedUp { file, bytes, written: None, as_of: Consistency::Store, log_growth_bytes, findings })
}

/// Reads the copy whole, as `check` does.
async fn verify_copy(copy: &Path) -> Vec<Finding> {
    let spinner = progress::spinner("reading the copy…");
    let options = SqliteOptions { background: false, ..SqliteOptions::default() };
    let verified = match SqliteStore::open(copy, options) {
        Ok(store) => store.backend().maintenance.verify().await,
        Err(StoreError::Corrupt { .. }) => threadkeep_store_sqlite::examine(copy),
        Err(error) => Err(error),
    };
    spinner.finish_and_clear();
    match verified {
        Ok(report) => report.findings,
        Err(error) => {
            let detail = format!("the copy cannot be read: {error}");
            vec![Finding { severity: Severity::Damage, thread: None, detail }]
        }
    }
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
