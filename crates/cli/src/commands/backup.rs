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

/// Back up the store to a file while other programs use it
///
/// The backup is a snapshot of the store as of one instant, whatever is written meanwhile. A SQLite store is copied page by
/// page: --store FILE opens the copy, `threadkeep restore FILE` restores it. If the name ends in .jsonl, .ndjson or .gz, a
/// portable backup in JSON Lines is written instead, from any store and for any store (docs/export-format.md).
///
/// The finished backup is read again and its checksums are verified. If it is damaged, the damage is listed and the exit code
/// is 3; the backup is kept, because it may be the best copy available.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep backup monday.db
  threadkeep backup monday.jsonl.gz      from any store, for any store")]
pub(crate) struct Arguments {
    /// The file to write; it must not exist
    file: PathBuf,
}

/// The maximum number of findings in the text output. The JSON output contains all findings.
const PRINTED_FINDINGS: usize = 20;

#[derive(Serialize)]
struct BackupReport {
    file: PathBuf,
    bytes: u64,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    written: Option<Progress>,
    /// Whether the whole store, or each thread separately, was read as of one instant.
    as_of: Consistency,
    /// The growth of a SQLite store's write-ahead log, which is not truncated while the store is being read.
    #[serde(skip_serializing_if = "Option::is_none")]
    log_growth_bytes: Option<u64>,
    /// The damage in the backup.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<Finding>,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let file = arguments.file;
    if file.exists() {
        let failure = Failure::user_error(format!("{} already exists", file.display()));
        return Err(failure.hint("choose another name; a backup never overwrites a file").into());
    }
    let store = app.open(Purpose::Read).await?;
    let report = match store.sqlite {
        _ if portable::is_portable(&file) => portable::write(app, &store.memory, &file).await?,
        Some(sqlite) => copy_pages(app, sqlite, file).await?,
        None => {
            let failure = Failure::usage("only a SQLite store can be backed up to a SQLite file");
            let hint =
                "use a name such as FILE.jsonl.gz, or copy the store with `threadkeep migrate --from URL --to FILE`";
            return Err(failure.hint(hint).into());
        }
    };
    report.print(app)?;
    Ok(if report.is_damaged() { Status::Incomplete } else { Status::Done })
}

impl BackupReport {
    fn is_damaged(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity == Severity::Damage)
    }

    fn print(&self, app: &App) -> Result<()> {
        if app.output.is_json() {
            return app.output.json(self);
        }
        let mut lines = app.output.lines();
        for finding in self.findings.iter().take(PRINTED_FINDINGS) {
            lines.line(super::check::describe(finding))?;
        }
        let more = self.findings.len().saturating_sub(PRINTED_FINDINGS);
        if more > 0 {
            lines.line(format_args!("and {more} more findings"))?;
        }
        let growth = self.log_growth_bytes.filter(|growth| *growth > 0);
        let growth = growth.map(|growth| format!("; the write-ahead log grew by {} meanwhile", HumanBytes(growth)));
        let growth = growth.unwrap_or_default();
        lines.line(format_args!("backed up {} to {}{growth}", HumanBytes(self.bytes), self.file.display()))?;
        lines.finish()?;
        if self.is_damaged() {
            app.output.note(
                "hint: the store is damaged, and so is this backup: keep older backups; \
                 `threadkeep check --salvage NEW` recovers what is readable",
            );
        }
        Ok(())
    }
}

/// Writes a portable backup of a store.
pub(super) async fn write_portable(app: &App, memory: &Memory, file: &Path) -> Result<()> {
    portable::write(app, memory, file).await.map(drop)
}

/// Whether the name of a file is that of a portable backup.
pub(super) fn is_portable(file: &Path) -> bool {
    portable::is_portable(file)
}

async fn copy_pages(app: &App, store: SqliteStore, file: PathBuf) -> Result<BackupReport> {
    let copy = UnfinishedFile::next_to(app, &file)?;
    let log_bytes_before = store.log_bytes();
    copy_store(store.clone(), copy.path()).await.with_context(|| format!("cannot write {}", file.display()))?;
    let log_growth_bytes = Some(store.log_bytes().saturating_sub(log_bytes_before));
    // A damaged backup is reported but not deleted, because it may be the best copy available.
    let findings = verify_copy(copy.path()).await;
    copy.finish(&file)?;
    let bytes = std::fs::metadata(&file).map_or(0, |found| found.len());
    Ok(BackupReport { file, bytes, written: None, as_of: Consistency::Store, log_growth_bytes, findings })
}

/// Reads the whole copy like `check`, and returns the findings.
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
            let detail = format!("cannot read the copy: {error}");
            vec![Finding { severity: Severity::Damage, thread: None, detail }]
        }
    }
}

/// Copies a store on a blocking thread, with a progress bar.
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

/// A file with a temporary name until it is complete. Dropping the value deletes an incomplete file.
pub(super) struct UnfinishedFile {
    folder: tempfile::TempDir,
    file: PathBuf,
}

impl UnfinishedFile {
    /// Creates a temporary folder next to the final file, so that renaming is atomic.
    pub(super) fn next_to(app: &App, file: &Path) -> Result<Self> {
        let parent = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let folder = private::temporary_folder(".threadkeep-", Some(parent));
        let folder = folder.with_context(|| format!("cannot write {}", file.display()))?;
        let unfinished = folder.path().join("unfinished.db");
        app.interrupt.remove_if_interrupted(folder.path());
        Ok(Self { folder, file: unfinished })
    }

    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    /// Returns the path of another temporary file in the same folder, for an intermediate step.
    pub(super) fn sibling(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Syncs the file and gives it its final name. Only the owner can read it.
    pub(super) fn finish(self, file: &Path) -> Result<()> {
        private::make_private(&self.file).with_context(|| format!("cannot write {}", file.display()))?;
        self.rename(file)
    }

    /// Syncs the file and replaces an existing file, whose permissions are kept.
    pub(super) fn finish_as(self, file: &Path) -> Result<()> {
        let cannot_write = || format!("cannot write {}", file.display());
        let permissions = std::fs::metadata(file).with_context(cannot_write)?.permissions();
        std::fs::set_permissions(&self.file, permissions).with_context(cannot_write)?;
        self.rename(file)
    }

    /// Syncs the file and gives it its final name. Does not change its permissions.
    pub(super) fn rename(self, file: &Path) -> Result<()> {
        let cannot_write = || format!("cannot write {}", file.display());
        std::fs::File::open(&self.file).and_then(|copy| copy.sync_all()).with_context(cannot_write)?;
        std::fs::rename(&self.file, file).with_context(cannot_write)?;
        private::sync_folder(file).with_context(cannot_write)
    }
}
