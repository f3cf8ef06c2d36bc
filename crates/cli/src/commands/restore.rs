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

use super::backup::{Unfinished, copy_store};
use super::import::{self, Import};
use super::{App, Status};
use crate::clock::clock;
use crate::erasures::{self, Applied, Known};
use crate::failure::Failure;
use crate::private;
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;

/// How long a store that nobody uses takes to be closed, at most.
const CLOSING: Duration = Duration::from_secs(2);
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Put a backup back in the place of the store
///
/// What was erased since the backup was made is erased from it again, as the erasure ledger has it.
/// The backup is opened and read whole first; a damaged one is refused, and the store stays as it is. A backup of lines
/// (.jsonl.gz) goes into any store beside what is there, unless that holds other data under the same ids. An export file
/// is taken, too: its threads are then imported beside what is there.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep restore monday.db
  threadkeep restore monday.jsonl.gz --store postgres://threadkeep@db.example/app
  threadkeep restore everything.jsonl.gz")]
pub(crate) struct Arguments {
    /// A file of `threadkeep backup` or `threadkeep export`
    file: PathBuf,
    /// Overwrite a store that holds something without asking
    #[arg(long, short)]
    yes: bool,
}

#[derive(Serialize)]
struct Restored {
    store: PathBuf,
    threads: u64,
    messages: u64,
    erasures: Applied,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let Arguments { file, yes } = arguments;
    if !is_database(&file)? {
        if portable::is_one(&file)? {
            return portable::restore(app, &file).await;
        }
        let import = Import::begin(app, app.open(Purpose::Fill).await?.memory)?;
        let report = import.run(&[import::named(file)], None).await?;
        report.print(&app.output)?;
        return Ok(report.status());
    }
    let location = app.location()?;
    let Some(target) = location.file() else {
        let failure = Failure::usage("a backup is restored into a SQLite file only");
        let hint = format!("`threadkeep migrate --from {} --to URL` moves it into any store", file.display());
        return Err(failure.hint(hint).into());
    };
    let is_same = matches!((target.canonicalize(), file.canonicalize()), (Ok(one), Ok(other)) if one == other);
    if is_same {
        return Err(Failure::usage("the backup is the store itself").hint("name another store with --store").into());
    }
    if let Some(folder) = target.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        private::make_folder(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let known = erasures::load(app, &location)?;
    let unfinished = Unfinished::beside(app, target)?;
    let (report, erasures) = prepare(app, &file, &unfinished, known).await?;
    give_way(app, target, yes).await?;
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
        app.output.json(&Restored { store: target.to_owned(), threads, messages, erasures })?;
    } else {
        let (threads, messages) = (counted(threads, "thread"), counted(messages, "message"));
        app.output.line(format_args!("restored {threads}, {messages} to {}", target.display()))?;
        erasures.print(app)?;
    }
    Ok(status)
}

fn is_database(file: &Path) -> Result<bool> {
    let mut start = Vec::new();
    let opened = File::open(file).and_then(|file| file.take(SQLITE.len() as u64).read_to_end(&mut start));
    if let Err(error) = opened {
        let failure = Failure::yours(format!("{} cannot be read: {error}", file.display()));
        return Err(failure.hint("check the name and whether you may read it").into());
    }
    Ok(start == SQLITE)
}

/// Makes a whole, checked store of a backup. The backup itself is only read.
async fn prepare(
    app: &App,
    file: &Path,
    unfinished: &Unfinished,
    mut known: Option<Known>,
) -> Result<(VerifyReport, Applied)> {
    let bad = || format!("{} cannot be restored", file.display());
    let copy = unfinished.sibling("backup.db");
    // A store that was copied by hand may have its last commits beside it.
    for end in ["", "-wal"] {
        let from = with_end(file, end);
        if end.is_empty() || from.exists() {
            std::fs::copy(&from, with_end(&copy, end)).with_context(bad)?;
        }
    }
    let store = SqliteStore::open(&copy, SqliteOptions { background: false, ..SqliteOptions::default() });
    let store = store.with_context(bad)?;
    let spinner = progress::spinner("reading the backup…");
    let report = store.backend().maintenance.verify().await;
    spinner.finish_and_clear();
    let report = report.with_context(bad)?;
    if let Some(damage) = report.findings.iter().find(|finding| finding.severity == Severity::Damage) {
        let failure = Failure::other_side(format!("{} is damaged: {}", file.display(), damage.detail));
        return Err(failure.hint("restore another backup, or bring out what can be read with `threadkeep check --store FILE --salvage NEW`; the store was left as it is").into());
    }
    // Before the copy that gets the store's name, so that it never holds a byte of what was erased.
    let restored = Memory::with_clock(store.backend(), clock(app.global.now));
    let erasures = erasures::apply(app, known.as_mut(), &restored, None).await?;
    // Copied once more by the store itself: the result is one file, and no cursor of another restoration fits it.
    copy_store(store, unfinished.path()).await.with_context(bad)?;
    Ok((report, erasures))
}

/// Makes sure that the store may be replaced: asked for, Threadkeep's own, and open nowhere.
async fn give_way(app: &App, target: &Path, yes: bool) -> Result<()> {
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
            remove_beside(target)?;
        }
        Err(error) => {
            return Err(error).with_context(|| format!("{} cannot be replaced", target.display()));
        }
    }
    // Whoever closes a store last removes its log. If it stays somebody else has the store open, and would go on in a
    // file that no longer has a name. Our own store may be closed by its background thread, a moment later.
    let log = with_end(target, "-wal");
    let gone = async {
        while log.exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(CLOSING, gone).await.is_err() {
        let failure = Failure::other_side(format!("the store {} is in use", target.display()));
        return Err(failure.hint("stop the other program that has it open, then restore again").into());
    }
    Ok(())
}

/// Removes the log of a file that cannot be opened: it must not be read into the one that comes in its place.
fn remove_beside(target: &Path) -> Result<()> {
    for end in ["-wal", "-shm"] {
        match std::fs::remove_file(with_end(target, end)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).with_context(|| format!("{}{end} cannot be removed", target.display()));
            }
            _ => {}
        }
    }
    Ok(())
}

fn with_end(file: &Path, end: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}
