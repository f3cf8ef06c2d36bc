//! Brings out what can be read of a damaged file.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::core::{DumpEntry, Finding};
use threadkeep::{Conflict, Memory, StoreError};
use threadkeep_store_sqlite::{Salvage, Salvaged, SqliteOptions, SqliteStore};

use crate::clock::clock;
use crate::commands::backup::{self, Unfinished, copy_store};
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::progress;
use crate::store::Purpose;
use crate::table::{counted, number};

/// Losses that are told to a person; JSON tells more.
const TOLD: usize = 20;

#[derive(Debug, Default, Serialize)]
struct Report {
    file: PathBuf,
    threads: u64,
    messages: u64,
    documents: u64,
    lost_count: u64,
    lost: Vec<Finding>,
}

pub(super) async fn run(app: &App, to: PathBuf) -> Result<Status> {
    let location = app.location()?;
    let Some(from) = location.file() else {
        let failure = Failure::usage("only a SQLite file is salvaged");
        return Err(failure.hint("`threadkeep backup FILE.jsonl.gz` writes all that a database can read").into());
    };
    if !from.exists() {
        return Err(Failure::yours(format!("there is no store at {} yet", from.display())).into());
    }
    if to.exists() {
        let failure = Failure::yours(format!("there is a file {} already", to.display()));
        return Err(failure.hint("name another; nothing is overwritten").into());
    }
    // An older file is brought up to date as by any command. One that is too damaged for that is read as it is.
    drop(app.open(Purpose::Read).await);
    let unfinished = Unfinished::beside(app, &to)?;
    let options = SqliteOptions { background: false, ..SqliteOptions::default() };
    let unwritten = || format!("{} cannot be written", to.display());
    let target = SqliteStore::open(unfinished.sibling("salvaged.db"), options).with_context(unwritten)?;
    let mut report = bring_out(from, &target).await?;
    target.backend().search.catch_up(usize::MAX).await.with_context(unwritten)?;
    if backup::is_of_lines(&to) {
        let memory = Memory::with_clock(target.backend(), clock(app.global.now));
        backup::write_lines(app, &memory, &to).await?;
    } else {
        copy_store(target, unfinished.path()).await.with_context(unwritten)?;
        unfinished.finish(&to)?;
    }
    report.file = to;
    report.print(app)?;
    Ok(if report.lost_count == 0 { Status::Done } else { Status::Incomplete })
}

/// Reads the one and writes the other, thread by thread.
async fn bring_out(from: &Path, to: &SqliteStore) -> Result<Report> {
    let unread = || format!("{} cannot be read", from.display());
    let mut salvage = Salvage::open(from).with_context(unread)?;
    let maintenance = to.backend().maintenance;
    let mut report = Report::default();
    let mut left_out = Vec::new();
    let bar = progress::count(0, "messages brought out");
    while let Some(salvaged) = salvage.next().with_context(unread)? {
        match salvaged {
            Salvaged::Chunk { tenant, thread, dump } => {
                let is_message = |entry: &&DumpEntry| matches!(entry, DumpEntry::Message { .. });
                let messages = dump.entries.iter().filter(is_message).count() as u64;
                let is_last = dump.next.is_none();
                match maintenance.restore_thread(&tenant, thread, *dump).await {
                    Ok(()) => {
                        report.messages += messages;
                        report.threads += u64::from(is_last);
                    }
                    Err(error @ (StoreError::Conflict(Conflict::Thread) | StoreError::Invalid { .. })) => {
                        left_out.push((thread, error.to_string()));
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            Salvaged::Document { tenant, owner, document } => {
                maintenance.restore_document(&tenant, &owner, document).await?;
                report.documents += 1;
            }
        }
        bar.set_position(report.messages);
    }
    bar.finish_and_clear();
    let (lost, count) = salvage.lost();
    report.lost = lost.to_vec();
    report.lost_count = count + left_out.len() as u64;
    report.lost.extend(left_out.into_iter().map(|(thread, detail)| Finding {
        severity: threadkeep::core::Severity::Damage,
        thread: Some(thread),
        detail: format!("the thread cannot be brought out: {detail}"),
    }));
    Ok(report)
}

impl Report {
    fn print(&self, app: &App) -> Result<()> {
        if app.output.is_json() {
            return app.output.json(self);
        }
        let mut lines = app.output.lines();
        for Finding { thread, detail, .. } in self.lost.iter().take(TOLD) {
            let thread = thread.map_or_else(String::new, |thread| format!(" in thread {thread}"));
            lines.line(format_args!("lost{thread}: {detail}"))?;
        }
        let untold = self.lost_count.saturating_sub(self.lost.len().min(TOLD) as u64);
        if untold > 0 {
            lines.line(format_args!("and {} more losses", number(untold)))?;
        }
        let amounts =
            [counted(self.threads, "thread"), counted(self.messages, "message"), counted(self.documents, "document")];
        lines.line(format_args!("salvaged {} to {}", amounts.join(", "), self.file.display()))?;
        lines.finish()?;
        if self.lost_count > 0 {
            app.output.note("hint: the damaged file is as it was; the newest sound backup may hold what is lost");
        }
        Ok(())
    }
}
