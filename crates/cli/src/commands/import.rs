mod files;
mod intake;
mod report;
mod tfl_sqlite;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::ProgressBar;
use threadkeep::core::exchange::ImportItem;
use threadkeep::{ImportOptions, Memory, Scope};
use threadkeep_formats::{Format, FormatError, Reader};

use super::{App, Status};
use crate::failure::{Failure, sentence};
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;
use files::{File, Origin};
use intake::{Intake, Items, RowItems};
pub(super) use report::Report;

/// The number of messages that are indexed between two checks for Ctrl-C.
const INDEX_STEP: usize = 2_000;

/// Import conversations from files and folders
///
/// The format is detected: an export of ChatGPT, Claude or Threadkeep, OpenAI chat JSON Lines, ShareGPT, LoCoMo or SGD,
/// compressed with gzip or not, or the SQLite database of the TFL assistant. Importing a file again changes nothing. Records that cannot be read are listed and skipped. If
/// a conversation has branches, the current branch becomes the thread, and each other branch a fork.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep import conversations.json
  threadkeep import exports/                       all .json, .jsonl and .gz files below a folder
  threadkeep import chats.jsonl --format sharegpt
  ssh host cat chats.jsonl.gz | threadkeep import -")]
pub(crate) struct Arguments {
    /// Files and folders; - reads standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The format, if it cannot be detected
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<ImportFormat>,
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportFormat {
    /// A file of records.
    Records(Format),
    /// A database of the TFL assistant.
    TflSqlite,
}

/// Returns the names of all formats.
fn format_names() -> impl Iterator<Item = &'static str> {
    Format::ALL.map(Format::as_str).into_iter().chain([tfl_sqlite::NAME])
}

fn format_parser() -> impl TypedValueParser<Value = ImportFormat> {
    PossibleValuesParser::new(format_names()).try_map(|name| match name.as_str() {
        tfl_sqlite::NAME => Ok(ImportFormat::TflSqlite),
        name => name.parse::<Format>().map(ImportFormat::Records),
    })
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (files, skipped) = files::find(&arguments.paths)?;
    skipped.iter().for_each(|skipped| app.output.note(skipped));
    let import = Import::begin(app, app.open(Purpose::Fill).await?.memory)?;
    let report = import.run(&files, arguments.format).await?;
    report.print(&app.output)?;
    Ok(report.status())
}

/// A running import.
pub(super) struct Import<'a> {
    app: &'a App,
    memory: Memory,
    scope: Scope,
}

impl<'a> Import<'a> {
    pub(super) fn begin(app: &'a App, memory: Memory) -> Result<Self> {
        app.interrupt.enable_graceful_stop();
        Ok(Self { app, memory, scope: app.scope()? })
    }

    /// Imports files one after the other, then updates the search index.
    pub(super) async fn run(&self, files: &[File], format: Option<ImportFormat>) -> Result<Report> {
        let bar = progress::bytes(files.iter().map(File::bytes).sum());
        let mut report = Report::default();
        let mut bytes_before = 0;
        let mut failure = None;
        for file in files {
            if self.app.interrupt.is_stop_requested() {
                break;
            }
            bar.set_position(bytes_before);
            if let Err(error) = self.file(file, format, &bar, &mut report).await {
                failure = Some(error.context(format!("import of {file} failed")));
                break;
            }
            bytes_before += file.bytes();
        }
        bar.finish_and_clear();
        report.interrupted = self.app.interrupt.is_stop_requested();
        match failure {
            // Messages that were imported before the error stay imported, so they are reported.
            Some(error) => {
                report.print(&self.app.output)?;
                Err(error)
            }
            None if report.is_without_files() && report.problems.is_empty() && !report.interrupted => {
                let hint = format!("known formats: {}", format_names().collect::<Vec<_>>().join(", "));
                Err(Failure::user_error("no conversation files found").hint(hint).into())
            }
            None => {
                let is_whole = !report.interrupted;
                report.indexed = catch_up(self.app, &self.memory, report.messages_added()).await?;
                report.indexing_interrupted = is_whole && self.app.interrupt.is_stop_requested();
                Ok(report)
            }
        }
    }

    async fn file(
        &self,
        file: &File,
        format: Option<ImportFormat>,
        bar: &ProgressBar,
        report: &mut Report,
    ) -> Result<()> {
        let mut intake = Intake::new(file, bar, &self.app.output, report);
        let database = file.path().filter(|path| match format {
            Some(format) => format == ImportFormat::TflSqlite,
            None => tfl_sqlite::is_database(path),
        });
        if let Some(path) = database {
            return self.database(path, &mut intake).await;
        }
        let format = match format {
            Some(ImportFormat::Records(format)) => Some(format),
            Some(ImportFormat::TflSqlite) => {
                intake.report_unreadable_file("a database cannot be read from standard input; name its file");
                return Ok(());
            }
            None => None,
        };
        let reader = match file.open(format) {
            Ok(reader) => reader,
            Err(FormatError::Unrecognised { .. } | FormatError::Empty) if file.origin == Origin::Folder => {
                bar.suspend(|| self.app.output.note(format_args!("skipped {file}: not a conversation file")));
                return Ok(());
            }
            Err(error) => {
                intake.report_unreadable_file(&sentence(&error.into()));
                return Ok(());
            }
        };
        intake.begin(reader.format().as_str());
        self.items(reader, &intake).await
    }

    /// Imports a database of the TFL assistant.
    async fn database(&self, path: &Path, intake: &mut Intake<'_>) -> Result<()> {
        match tfl_sqlite::TflDatabase::open(path) {
            Ok(database) => {
                intake.begin(tfl_sqlite::NAME);
                self.import(RowItems::new(database, intake, &self.app.interrupt), intake).await
            }
            Err(error) => {
                intake.report_unreadable_file(&format!("cannot read the database: {error:#}"));
                Ok(())
            }
        }
    }

    async fn items(&self, reader: Reader, intake: &Intake<'_>) -> Result<()> {
        self.import(Items::new(reader, intake, &self.app.interrupt), intake).await
    }

    async fn import(&self, items: impl Iterator<Item = ImportItem>, intake: &Intake<'_>) -> Result<()> {
        let progress = |done: &threadkeep::ImportReport| intake.on_progress(done);
        let imported = self.memory.import(&self.scope, items, ImportOptions::default(), progress).await;
        let done = imported.context("cannot write to the store")?;
        intake.on_progress(&done);
        Ok(())
    }
}

/// Updates the search index. Returns the number of indexed messages. On Ctrl-C, stops early; later searches index the rest.
pub(super) async fn catch_up(app: &App, memory: &Memory, added: u64) -> Result<u64> {
    let bar = progress::count(added, "messages indexed");
    let search = &memory.backend().search;
    let mut indexed = 0;
    while !app.interrupt.is_stop_requested() {
        let step = search.catch_up(INDEX_STEP).await.context("cannot update the search index")?;
        indexed += step.indexed;
        bar.set_length(added.max(indexed));
        bar.set_position(indexed);
        if step.done || step.indexed == 0 {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(indexed)
}

/// Formats two counts, as in `3 threads, 40 messages`.
fn threads_and_messages(threads: u64, messages: u64) -> String {
    format!("{}, {}", counted(threads, "thread"), counted(messages, "message"))
}

/// Returns a file given by the user.
pub(super) fn named(path: PathBuf) -> File {
    File::named(path)
}

/// Returns a file that is part of the program.
pub(super) fn built_in(text: &'static str) -> File {
    File::built_in(text)
}
