//! Erases from a restored store everything that the ledger lists as erased.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::memory::{AppliedErasures, ErasureEntries};
use threadkeep::{Memory, Timestamp};

use super::{LedgerContents, LedgerLocation, key_file};
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::progress;
use crate::store::Location;
use crate::table::{counted, number};

/// The result of applying the ledger to a restored store.
#[derive(Debug, Serialize)]
pub(crate) struct Applied {
    /// The ledger; null if there is none.
    ledger: Option<PathBuf>,
    #[serde(flatten)]
    pub(crate) removed: AppliedErasures,
    /// The number of entries skipped because they are for other stores, whose users and records may have the same names.
    #[serde(rename = "passed_over")]
    skipped: u64,
    /// The line numbers of unreadable entries.
    damaged_lines: Vec<u64>,
    /// The line numbers of entries that a crash truncated before the erasure was carried out.
    #[serde(rename = "torn_lines")]
    truncated_lines: Vec<u64>,
    #[serde(skip)]
    is_disabled: bool,
}

/// Reads the ledger for a restore into `store`. Returns `None` if the ledger does not exist or is disabled.
pub(crate) fn load(app: &App, store: &Location) -> Result<Option<LedgerContents>> {
    let location = app.erasure_ledger();
    let Some(file) = location.file() else { return Ok(None) };
    let is_explicit = matches!(location, LedgerLocation::Explicit(_));
    let contents = LedgerContents::read(file, &store.identity(), is_explicit).map_err(|error| {
        let failure = Failure::system_error(format!(
            "the erasure ledger {} cannot be used: {}; nothing was changed",
            file.display(),
            crate::failure::join(std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |error| {
                error.source()
            }))
        ));
        let hint = format!(
            "restore the ledger's key {}, specify another ledger with --erasure-ledger, or disable the ledger with --erasure-ledger none",
            key_file(file).display()
        );
        failure.hint(hint)
    })?;
    Ok(contents)
}

/// Removes all data that was erased after the backup was made, and overwrites its bytes on disk. The caller must have exclusive
/// access to the restored store.
pub(crate) async fn apply(
    app: &App,
    contents: Option<&mut LedgerContents>,
    restored: &Memory,
    made_at: Option<Timestamp>,
) -> Result<Applied> {
    let location = app.erasure_ledger();
    let mut applied = Applied {
        ledger: None,
        removed: AppliedErasures::default(),
        skipped: 0,
        damaged_lines: Vec::new(),
        truncated_lines: Vec::new(),
        is_disabled: location == LedgerLocation::Disabled,
    };
    let Some(contents) = contents else { return Ok(applied) };
    let spinner = progress::spinner("reapplying erasures made since the backup…");
    let removed = async {
        let removed = restored.apply_erasures(contents, made_at).await?;
        restored.raise_record_versions(contents.highest_version()).await?;
        if removed != AppliedErasures::default() {
            restored.backend().maintenance.sweep(restored.now()).await?;
        }
        Ok::<_, anyhow::Error>(removed)
    };
    let removed = removed.await;
    spinner.finish_and_clear();
    applied.removed = removed.context("cannot reapply the erasures made since the backup; nothing was restored")?;
    applied.ledger = location.file().map(PathBuf::from);
    applied.skipped = contents.skipped();
    applied.damaged_lines.clone_from(&contents.damaged);
    applied.truncated_lines.clone_from(&contents.truncated);
    Ok(applied)
}

impl Applied {
    /// Returns `Incomplete` if a line is damaged, because the line may have recorded an erasure.
    pub(crate) fn status(&self) -> Status {
        if self.damaged_lines.is_empty() { Status::Done } else { Status::Incomplete }
    }

    pub(crate) fn print(&self, app: &App) -> Result<()> {
        let Some(ledger) = &self.ledger else {
            let reason = if self.is_disabled { "the erasure ledger is disabled" } else { "there is no erasure ledger" };
            app.output.note(format_args!("note: {reason}: data erased since the backup was made has been restored"));
            return Ok(());
        };
        app.output.line(format_args!("{} (erasure ledger {})", self.summary(), ledger.display()))?;
        self.note(app, &self.truncated_lines, "was truncated by a crash before the erasure was carried out");
        self.note(app, &self.damaged_lines, "is damaged: the erased data that it lists may have been restored");
        if self.skipped > 0 {
            let entries = match self.skipped {
                1 => "1 entry".to_owned(),
                many => format!("{} entries", number(many)),
            };
            app.output.note(format_args!(
                "note: skipped {entries} for other stores; --erasure-ledger {} applies them to this store too",
                ledger.display()
            ));
        }
        Ok(())
    }

    fn note(&self, app: &App, lines: &[u64], problem: &str) {
        const MAX_LINES: usize = 20;
        for line in lines.iter().take(MAX_LINES) {
            app.output.note(format_args!("note: line {line} of the erasure ledger {problem}"));
        }
        if let Some(more) = lines.len().checked_sub(MAX_LINES).filter(|more| *more > 0) {
            app.output.note(format_args!("note: and {} more lines", number(more as u64)));
        }
    }

    fn summary(&self) -> String {
        let AppliedErasures { users, threads, messages, records } = self.removed;
        let counts = [(threads, "thread"), (messages, "message"), (records, "record")];
        let counts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)).collect();
        if counts.is_empty() {
            return "nothing in the backup has been erased since".to_owned();
        }
        let users =
            if users > 0 { format!(", including all data of {}", counted(users, "user")) } else { String::new() };
        format!("removed data erased since the backup: {}{users}", counts.join(", "))
    }
}
