mod markdown;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::StreamExt;
use serde::Serialize;
use tempfile::NamedTempFile;
use threadkeep::core::exchange::ExportLine;
use threadkeep::core::json_line;
use threadkeep::memory::ExportLines;
use threadkeep::{MemoryError, StoreError, ThreadSelection};

use super::{App, Status};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;
use crate::thread_name;

/// Export threads as JSON Lines
///
/// docs/export-format.md describes the format. Without THREADS, all your threads and records are exported. `threadkeep
/// import` imports the file again; ids do not change. A file whose name ends in .md is written as Markdown, for reading.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep export -o everything.jsonl.gz       compressed with gzip, as the name ends in .gz
  threadkeep export 0193a5b2 | jq .              one thread, to standard output
  threadkeep export 0193a5b2 -o notes.md         one thread, as Markdown
  threadkeep export --as-tenant -o tenant.jsonl  all users of the tenant")]
pub(crate) struct Arguments {
    /// The threads: ids, prefixes of ids, or keys
    threads: Vec<String>,
    /// The file to write, replaced once the export is complete [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What was exported.
#[derive(Debug, Default, Serialize)]
pub(super) struct ExportReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    threads: u64,
    messages: u64,
    #[serde(rename = "documents")]
    records: u64,
    unreadable: u64,
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let mut parts = Vec::new();
    for name in &arguments.threads {
        let thread = thread_name::get(&memory, &scope, name).await?;
        parts.push(memory.export(&scope, ThreadSelection::Thread(thread.id)));
    }
    if arguments.threads.is_empty() {
        parts.push(memory.export(&scope, ThreadSelection::All));
    }
    match arguments.output.filter(|path| path.as_os_str() != "-") {
        None => {
            let mut lines = app.output.lines();
            let report = write_all(parts, |line| lines.line(json_line(line)?), |error| note(app, error)).await?;
            lines.finish()?;
            Ok(report.status())
        }
        Some(path) => to_file(app, parts, &path).await,
    }
}

async fn to_file(app: &App, parts: Vec<ExportLines>, path: &Path) -> Result<Status> {
    let spinner = progress::spinner("exporting…");
    let result = write_file(&app.interrupt, parts, path, Existing::Replace, |error| note(app, error)).await;
    spinner.finish_and_clear();
    let mut report = result?;
    if app.output.is_json() {
        report.file = Some(path.to_owned());
        app.output.json(&report)?;
    } else {
        let (threads, messages) = (counted(report.threads, "thread"), counted(report.messages, "message"));
        app.output.line(format_args!("exported {threads}, {messages} to {}", path.display()))?;
    }
    Ok(report.status())
}

fn note(app: &App, skipped: &MemoryError) {
    app.output.note(format_args!("skipped: {skipped}"));
}

/// What happens to an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Existing {
    /// It is replaced once the export is complete.
    Replace,
    /// The export fails.
    Keep,
}

/// Writes all parts to a file, as Markdown if its name ends in `.md`, otherwise as JSON Lines. Calls `skipped` for each message
/// that cannot be read.
pub(super) async fn write_file(
    interrupt: &Interrupt,
    parts: Vec<ExportLines>,
    path: &Path,
    existing: Existing,
    skipped: impl Fn(&MemoryError),
) -> Result<ExportReport> {
    let cannot_write = || format!("cannot write {}", path.display());
    let file_exists = || Failure::user_error(format!("{} exists", path.display())).hint("choose another name");
    if existing == Existing::Keep && path.exists() {
        return Err(file_exists().into());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".threadkeep-export-").tempfile_in(folder).with_context(cannot_write)?;
    interrupt.remove_if_interrupted(file.path());
    let has_ending = |ending: &str| path.extension().is_some_and(|end| end.eq_ignore_ascii_case(ending));
    let is_markdown = has_ending("md");
    let mut writer = Writer::new(file, has_ending("gz"));
    let write = |line: &ExportLine| {
        let text = if is_markdown { markdown::text(line) } else { Some(json_line(line)?) };
        text.map_or(Ok(()), |text| writer.line(&text)).with_context(cannot_write)
    };
    let report = write_all(parts, write, skipped).await?;
    let file = writer.finish().with_context(cannot_write)?;
    match existing {
        Existing::Replace => file.persist(path).with_context(cannot_write)?,
        Existing::Keep => match file.persist_noclobber(path) {
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => return Err(file_exists().into()),
            persisted => persisted.with_context(cannot_write)?,
        },
    };
    Ok(report)
}

/// Writes all parts as one export, with only the header of the first part.
async fn write_all(
    parts: Vec<ExportLines>,
    mut write: impl FnMut(&ExportLine) -> Result<()>,
    skipped: impl Fn(&MemoryError),
) -> Result<ExportReport> {
    let mut report = ExportReport::default();
    let mut has_header = false;
    for mut part in parts {
        while let Some(line) = part.next().await {
            match line {
                Ok(ExportLine::Threadkeep { .. }) if has_header => {}
                Ok(line) => {
                    has_header = true;
                    report.count(&line);
                    write(&line)?;
                }
                Err(error @ MemoryError::Store(StoreError::Corrupt { what: "message", .. })) => {
                    skipped(&error);
                    report.unreadable += 1;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(report)
}

impl ExportReport {
    fn count(&mut self, line: &ExportLine) {
        match line {
            ExportLine::Threadkeep { .. } => {}
            ExportLine::Thread(_) => self.threads += 1,
            ExportLine::Message(_) => self.messages += 1,
            ExportLine::Record { .. } => self.records += 1,
        }
    }

    pub(super) fn messages(&self) -> u64 {
        self.messages
    }

    pub(super) fn unreadable(&self) -> u64 {
        self.unreadable
    }

    fn status(&self) -> Status {
        if self.unreadable == 0 { Status::Done } else { Status::Incomplete }
    }
}

/// Writes lines to a file, compressed or not.
pub(super) enum Writer {
    Plain(BufWriter<NamedTempFile>),
    Gzip(Box<GzEncoder<BufWriter<NamedTempFile>>>),
}

impl Writer {
    pub(super) fn new(file: NamedTempFile, gzip: bool) -> Self {
        let file = BufWriter::new(file);
        if gzip { Self::Gzip(Box::new(GzEncoder::new(file, Compression::default()))) } else { Self::Plain(file) }
    }

    pub(super) fn line(&mut self, line: &str) -> io::Result<()> {
        match self {
            Self::Plain(file) => writeln!(file, "{line}"),
            Self::Gzip(file) => writeln!(file, "{line}"),
        }
    }

    /// Flushes and syncs the file, so that it is complete on disk before it gets its final name.
    pub(super) fn finish(self) -> io::Result<NamedTempFile> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(file) => file.finish()?,
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        File::sync_all(file.as_file())?;
        Ok(file)
    }
}
