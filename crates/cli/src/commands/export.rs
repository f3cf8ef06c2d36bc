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
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;
use crate::thread_name;

/// Export threads as JSON Lines
///
/// docs/export-format.md describes the format. Without THREADS, all your threads and records are exported. `threadkeep
/// import` imports the file again; ids do not change.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep export -o everything.jsonl.gz       compressed with gzip, as the name ends in .gz
  threadkeep export 0193a5b2 | jq .              one thread, to standard output
  threadkeep export --as-tenant -o tenant.jsonl  all users of the tenant")]
pub(crate) struct Arguments {
    /// The threads: ids, prefixes of ids, or keys
    threads: Vec<String>,
    /// The file to write, replaced once the export is complete [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Debug, Default, Serialize)]
struct ExportReport {
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
            let report = write_all(app, parts, |line| lines.line(line)).await?;
            lines.finish()?;
            Ok(report.status())
        }
        Some(path) => to_file(app, parts, &path).await,
    }
}

async fn to_file(app: &App, parts: Vec<ExportLines>, path: &Path) -> Result<Status> {
    let cannot_write = || format!("cannot write {}", path.display());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".threadkeep-export-").tempfile_in(folder).with_context(cannot_write)?;
    app.interrupt.remove_if_interrupted(file.path());
    let spinner = progress::spinner("exporting…");
    let mut writer = Writer::new(file, path.extension().is_some_and(|end| end.eq_ignore_ascii_case("gz")));
    let result = write_all(app, parts, |line| writer.line(line).with_context(cannot_write)).await;
    spinner.finish_and_clear();
    let mut report = result?;
    let file = writer.finish().with_context(cannot_write)?;
    file.persist(path).with_context(cannot_write)?;
    if app.output.is_json() {
        report.file = Some(path.to_owned());
        app.output.json(&report)?;
    } else {
        let (threads, messages) = (counted(report.threads, "thread"), counted(report.messages, "message"));
        app.output.line(format_args!("exported {threads}, {messages} to {}", path.display()))?;
    }
    Ok(report.status())
}

/// Writes all parts as one export, with only the header of the first part.
async fn write_all(
    app: &App,
    parts: Vec<ExportLines>,
    mut write: impl FnMut(&str) -> Result<()>,
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
                    write(&json_line(&line)?)?;
                }
                Err(error @ MemoryError::Store(StoreError::Corrupt { what: "message", .. })) => {
                    app.output.note(format_args!("skipped: {error}"));
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
