//! Salvages the readable data of a damaged file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::core::{DumpEntry, Finding};
use threadkeep::{Conflict, Memory, StoreError};
use threadkeep_store_sqlite::{Salvage, SalvagedItem, SqliteOptions, SqliteStore};

use crate::clock::clock;
use crate::commands::backup::{self, UnfinishedFile, copy_store};
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::progress;
use crate::store::Purpose;
use crate::table::{counted, number};

/// The maximum number of losses in the text output. The JSON output contains more.
const PRINTED_LOSSES: usize = 20;

#[derive(Debug, Default, Serialize)]
struct Report {
    file: PathBuf,
    threads: u64,
    messages: u64,
    #[serde(rename = "documents")]
    records: u64,
    lost_count: u64,
    lost: Vec<Finding>,
}

pub(super) async fn run(app: &App, to: PathBuf) -> Result<Status> {
    let location = app.location()?;
    let Some(from) = location.file() else {
        let failure = Failure::usage("only a SQLite file can be salvaged");
        return Err(failure.hint("`threadkeep backup FILE.jsonl.gz` writes everything readable in a database").into());
    };
    if !from.exists() {
        return Err(Failure::user_error(format!("there is no store at {} yet", from.display())).into());
    }
    if to.exists() {
        let failure = Failure::user_error(format!("{} already exists", to.display()));
        return Err(failure.hint("choose another name; no file is overwritten").into());
    }
    // Opening the store migrates a file of an earlier version. A file that is too damaged to be opened is read without a
    // migration.
    drop(app.open(Purpose::Read).await);
    let unfinished = UnfinishedFile::next_to(app, &to)?;
    let options = SqliteOptions { background: false, ..SqliteOptions::default() };
    let cannot_write = || format!("cannot write {}", to.display());
    let target = SqliteStore::open(unfinished.sibling("salvaged.db"), options).with_context(cannot_write)?;
    let mut report = recover(from, &target).await?;
    target.backend().search.catch_up(usize::MAX).await.with_context(cannot_write)?;
    if backup::is_portable(&to) {
        let memory = Memory::with_clock(target.backend(), clock(app.global.now));
        backup::write_portable(app, &memory, &to).await?;
    } else {
        copy_store(target, unfinished.path()).await.with_context(cannot_write)?;
        unfinished.finish(&to)?;
    }
    report.file = to;
    report.print(app)?;
    Ok(if report.lost_count == 0 { Status::Done } else { Status::Incomplete })
}

/// Copies all readable data of a damaged file to a store, thread by thread.
async fn recover(from: &Path, to: &SqliteStore) -> Result<Report> {
    let cannot_read = || format!("cannot read {}", from.display());
    let mut salvage = Salvage::open(from).with_context(cannot_read)?;
    let maintenance = to.backend().maintenance;
    let mut report = Report::default();
    let mut skipped = Vec::new();
    let bar = progress::count(0, "messages salvaged");
    while let Some(salvaged) = salvage.next().with_context(cannot_read)? {
        match salvaged {
            SalvagedItem::Chunk { tenant, thread, dump } => {
                let is_message = |entry: &&DumpEntry| matches!(entry, DumpEntry::Message { .. });
                let messages = dump.entries.iter().filter(is_message).count() as u64;
                let is_last = dump.next.is_none();
                match maintenance.restore_thread(&tenant, thread, *dump).await {
                    Ok(()) => {
                        report.messages += messages;
                        report.threads += u64::from(is_last);
                    }
                    Err(error @ (StoreError::Conflict(Conflict::Thread) | StoreError::Invalid { .. })) => {
                        skipped.push((thread, error.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            SalvagedItem::Record { tenant, owner, record } => {
                maintenance.restore_record(&tenant, &owner, record).await?;
                report.records += 1;
            }
        }
        bar.set_position(report.messages);
    }
    bar.finish_and_clear();
    let (lost, count) = salvage.lost();
    report.lost = lost.to_vec();
    report.lost_count = count + skipped.len() as u64;
    report.lost.extend(skipped.into_iter().map(|(thread, detail)| Finding {
        severity: threadkeep::core::Severity::Damage,
        thread: Some(thread),
        detail: format!("cannot salvage the thread: {detail}"),
    }));
    Ok(report)
}

impl Report {
    fn print(&self, app: &App) -> Result<()> {
        if app.output.is_json() {
            return app.output.json(self);
        }
        let mut lines = app.output.lines();
        for Finding { thread, detail, .. } in self.lost.iter().take(PRINTED_LOSSES) {
            let thread = thread.map_or_else(String::new, |thread| format!(" in thread {thread}"));
            lines.line(format_args!("lost{thread}: {detail}"))?;
        }
        let more = self.lost_count.saturating_sub(self.lost.len().min(PRINTED_LOSSES) as u64);
        if more > 0 {
            lines.line(format_args!("and {} more losses", number(more)))?;
        }
        let amounts =
            [counted(self.threads, "thread"), counted(self.messages, "message"), counted(self.records, "record")];
        lines.line(format_args!("salvaged {} to {}", amounts.join(", "), self.file.display()))?;
        lines.finish()?;
        if self.lost_count > 0 {
            app.output.note("hint: the damaged file is unchanged; the newest intact backup may contain what is lost");
        }
        Ok(())
    }
}
