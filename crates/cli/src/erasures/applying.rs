//! Erasing from a restored store what the ledger names.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;
use threadkeep::memory::{AppliedErasures, KnownErasures};
use threadkeep::{Memory, Timestamp};

use super::{Known, Place, key_file};
use crate::commands::{App, Status};
use crate::failure::Failure;
use crate::progress;
use crate::store::Location;
use crate::table::{counted, number};

/// What came of holding a backup against the ledger.
#[derive(Debug, Serialize)]
pub(crate) struct Applied {
    /// The ledger; null where there is none.
    ledger: Option<PathBuf>,
    #[serde(flatten)]
    pub(crate) removed: AppliedErasures,
    /// Entries of other stores by names that this one may have too.
    passed_over: u64,
    /// Lines that cannot be read.
    damaged_lines: Vec<u64>,
    /// Lines that a crash cut, before what they name was erased.
    torn_lines: Vec<u64>,
    #[serde(skip)]
    is_off: bool,
}

/// Reads the ledger for what is restored into `store`; `None` where there is none, or it is off.
pub(crate) fn load(app: &App, store: &Location) -> Result<Option<Known>> {
    let place = app.erasure_ledger();
    let Some(file) = place.file() else { return Ok(None) };
    let is_given = matches!(place, Place::Given(_));
    let known = Known::read(file, &store.identity(), is_given).map_err(|error| {
        let failure = Failure::other_side(format!(
            "the erasure ledger {} cannot be used: {}; nothing was changed",
            file.display(),
            crate::failure::join(std::iter::successors(
                Some(&error as &(dyn std::error::Error + 'static)),
                |error| error.source()
            ))
        ));
        let hint = format!(
            "put back its key {}, name the right ledger with --erasure-ledger, or go on without one by --erasure-ledger none",
            key_file(file).display()
        );
        failure.hint(hint)
    })?;
    Ok(known)
}

/// Removes from a restored store what was erased since its backup was made, to the last byte. Nobody else has it open.
pub(crate) async fn apply(
    app: &App,
    known: Option<&mut Known>,
    restored: &Memory,
    made_at: Option<Timestamp>,
) -> Result<Applied> {
    let place = app.erasure_ledger();
    let mut applied = Applied {
        ledger: None,
        removed: AppliedErasures::default(),
        passed_over: 0,
        damaged_lines: Vec::new(),
        torn_lines: Vec::new(),
        is_off: place == Place::Off,
    };
    let Some(known) = known else { return Ok(applied) };
    let spinner = progress::spinner("erasing what was erased since…");
    let removed = async {
        let removed = restored.apply_erasures(known, made_at).await?;
        restored.raise_document_versions(known.highest_version()).await?;
        if removed != AppliedErasures::default() {
            restored.backend().maintenance.sweep(restored.now()).await?;
        }
        Ok::<_, anyhow::Error>(removed)
    };
    let removed = removed.await;
    spinner.finish_and_clear();
    applied.removed =
        removed.context("what was erased since the backup cannot be removed; the store was left as it is")?;
    applied.ledger = place.file().map(PathBuf::from);
    applied.passed_over = known.passed_over();
    applied.damaged_lines.clone_from(&known.damaged);
    applied.torn_lines.clone_from(&known.torn);
    Ok(applied)
}

impl Applied {
    /// Damage may stand where an erasure stood.
    pub(crate) fn status(&self) -> Status {
        if self.damaged_lines.is_empty() { Status::Done } else { Status::Incomplete }
    }

    pub(crate) fn print(&self, app: &App) -> Result<()> {
        let Some(ledger) = &self.ledger else {
            let why = if self.is_off { "the erasure ledger is off" } else { "there is no erasure ledger" };
            app.output.note(format_args!("note: {why}: what was erased since the backup was made is back"));
            return Ok(());
        };
        app.output.line(format_args!("{} (erasure ledger {})", self.told(), ledger.display()))?;
        self.note(app, &self.torn_lines, "was cut by a crash before its erasure was carried out");
        self.note(app, &self.damaged_lines, "is damaged: what it names may be back");
        if self.passed_over > 0 {
            let entries = match self.passed_over {
                1 => "1 entry".to_owned(),
                many => format!("{} entries", number(many)),
            };
            app.output.note(format_args!(
                "note: {entries} of other stores passed over; --erasure-ledger {} applies them here too",
                ledger.display()
            ));
        }
        Ok(())
    }

    fn note(&self, app: &App, lines: &[u64], what: &str) {
        const TOLD: usize = 20;
        for line in lines.iter().take(TOLD) {
            app.output.note(format_args!("note: line {line} of the erasure ledger {what}"));
        }
        if let Some(more) = lines.len().checked_sub(TOLD).filter(|more| *more > 0) {
            app.output.note(format_args!("note: and {} more lines", number(more as u64)));
        }
    }

    fn told(&self) -> String {
        let AppliedErasures { users, threads, messages, documents } = self.removed;
        let counts = [(threads, "thread"), (messages, "message"), (documents, "document")];
        let counts: Vec<String> =
            counts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| counted(*count, what)).collect();
        if counts.is_empty() {
            return "nothing in the backup was erased since".to_owned();
        }
        let users = if users > 0 { format!(", {} among them", counted(users, "user")) } else { String::new() };
        format!("erased since the backup, and removed again: {}{users}", counts.join(", "))
    }
}
