mod portable;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::core::{Severity, VerifyReport};
use threadkeep::{Memory, StoreError};
use threadkeep_store_sqlite::{SqliteOptions, SqliteStore};

use super::backup::{UnfinishedFile, copy_store};
use super::import::{self, Import, Selection};
use super::{App, Status};
use crate::clock::clock;
use crate::erasures::{self, Applied, LedgerContents};
use crate::failure::Failure;
use crate::private;
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;

/// The maximum time to wait until a store that is no longer used is closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The first bytes of a SQLite file.
const SQLITE_HEADER: &[u8] = b"SQLite format 3\0";

/// Restore the store from a backup
///
/// Data that was erased after the backup was made is erased again, as recorded in the erasure ledger. The backup is first read
/// completely; a damaged one is refused, and the store does not change. A portable backup (.jsonl.gz) is added to the existing
/// data of any store, unless that store has other data under the same ids. An export file is imported in the same way.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep restore monday.db
  threadkeep restore monday.jsonl.gz --store postgres://threadkeep@db.example/app
  threadkeep restore everything.jsonl.gz")]
pub(crate) struct Arguments {
    /// A file written by `threadkeep backup` or `threadkeep export`
    file: PathBuf,
    /// Do not ask for confirmation before replacing a store that contains data
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct RestoreJson {
    store: PathBuf,
    threads: u64,
    messages: u64,
    erasures: Applied,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let Arguments { file, yes } = arguments;
    if !is_database(&file)? {
        if portable::is_portable_backup(&file)? {
            return portable::restore(app, &file).await;
        }
        let import = Import::begin(app, app.open(Purpose::CreateOrWrite).await?.memory, Selection::verbatim())?;
        let report = import.run(&[import::named(file)]).await?;
        report.print(&app.output)?;
        return Ok(report.status());
    }
    let location = app.location()?;
    let Some(target) = location.file() else {
        let failure = Failure::usage("a SQLite backup can only be restored to a SQLite file");
        let hint = format!("`threadkeep migrate --from {} --to URL` copies it to any store", file.display());
        return Err(failure.hint(hint).into());
    };
    let is_same = matches!((target.canonicalize(), file.canonicalize()), (Ok(one), Ok(other)) if one == other);
    if is_same {
        return Err(Failure::usage("the backup and the store are the same file")
            .hint("choose another store with --store")
            .into());
    }
    if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private::make_folder(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    }
    let known = erasures::load(app, &location)?;
    let unfinished = UnfinishedFile::next_to(app, target)?;
    let (report, erasures) = prepare(app, &file, &unfinished, known).await?;
    confirm_replacing(app, target, yes).await?;
    if target.exists() {
        unfinished.finish_as(target)?;
    } else {
        unfinished.finish(target)?;
    }
    let removed = erasures.removed;
    let (threads, messages) =
        (report.threads.saturating_sub(removed.threads), report.messages.saturating_sub(removed.messages));
    let status = erasures.status();
    if app.output.is_json() {
        app.output.json(&RestoreJson { store: target.to_owned(), threads, messages, erasures })?;
    } else {
        let (threads, messages) = (counted(threads, "thread"), counted(messages, "message"));
        app.output.line(format_args!("restored {threads}, {messages} to {}", target.display()))?;
        erasures.print(app)?;
    }
    Ok(status)
}

fn is_database(file: &Path) -> Result<bool> {
    let mut start = Vec::new();
    let opened = File::open(file).and_then(|file| file.take(SQLITE_HEADER.len() as u64).read_to_end(&mut start));
    if let Err(error) = opened {
        let failure = Failure::user_error(format!("cannot read {}: {error}", file.display()));
        return Err(failure.hint("check its name and permissions").into());
    }
    Ok(start == SQLITE_HEADER)
}

/// Creates a complete, verified store from a backup. Does not change the backup.
///
/// # Errors
/// The backup is damaged.
async fn prepare(
    app: &App,
    file: &Path,
    unfinished: &UnfinishedFile,
    mut known: Option<LedgerContents>,
) -> Result<(VerifyReport, Applied)> {
    let cannot_restore = || format!("cannot restore {}", file.display());
    let copy = unfinished.sibling("backup.db");
    // If the backup is a copy made by hand, its last commits may be in its write-ahead log.
    for suffix in ["", "-wal"] {
        let from = with_suffix(file, suffix);
        if suffix.is_empty() || from.exists() {
            std::fs::copy(&from, with_suffix(&copy, suffix)).with_context(cannot_restore)?;
        }
    }
    let store = SqliteStore::open(&copy, SqliteOptions { background: false, ..SqliteOptions::default() });
    let store = store.with_context(cannot_restore)?;
    let spinner = progress::spinner("reading the backup…");
    let report = store.backend().maintenance.verify().await;
    spinner.finish_and_clear();
    let report = report.with_context(cannot_restore)?;
    if let Some(damage) = report.findings.iter().find(|finding| finding.severity == Severity::Damage) {
        let failure = Failure::system_error(format!("{} is damaged: {}", file.display(), damage.detail));
        return Err(failure.hint("restore another backup, or recover what is readable with `threadkeep check --store FILE --salvage NEW`; the store was not changed").into());
    }
    // Erasures are applied before the final copy is made, so that the copy never contains erased data.
    let restored = Memory::with_clock(store.backend(), clock(app.global.now));
    let erasures = erasures::apply(app, known.as_mut(), &restored, None).await?;
    // The store copies itself, so that the result is a single file, and so that cursors of other restored copies are not
    // valid for it.
    copy_store(store, unfinished.path()).await.with_context(cannot_restore)?;
    Ok((report, erasures))
}

/// Checks that the store can be replaced: it is a Threadkeep store, the user agrees, and no other program has it open.
async fn confirm_replacing(app: &App, target: &Path, yes: bool) -> Result<()> {
    if !target.exists() {
        return Ok(());
    }
    let question = format!("Replace the store {}?", target.display());
    match SqliteStore::open(target, SqliteOptions { background: false, ..SqliteOptions::default() }) {
        Ok(store) => {
            let tenants = store.backend().maintenance.list_tenants(None, 1).await?;
            if !tenants.is_empty() {
                app.confirm(&question, yes)?;
            }
        }
        Err(StoreError::Corrupt { .. }) => {
            app.confirm(&question, yes)?;
            remove_logs(target)?;
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot replace {}", target.display()));
        }
    }
    // The last program that closes a store removes its log. If the log remains, another program has the store open and would
    // continue to write to the replaced file. The store opened above may be closed with a delay, by its background thread.
    let log = with_suffix(target, "-wal");
    let log_removal = async {
        while log.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(CLOSE_TIMEOUT, log_removal).await.is_err() {
        let failure = Failure::system_error(format!("the store {} is in use", target.display()));
        return Err(failure.hint("stop the other program that has it open, then restore again").into());
    }
    Ok(())
}

/// Removes the write-ahead log of a file that cannot be opened. Otherwise SQLite would apply the log to the new file.
fn remove_logs(target: &Path) -> Result<()> {
    for suffix in ["-wal", "-shm"] {
        match std::fs::remove_file(with_suffix(target, suffix)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("cannot remove {}{suffix}", target.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
