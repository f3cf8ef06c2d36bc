mod cursor;
mod documents;
mod exclusions;
mod files;
mod intake;
mod places;
mod report;
mod service;
mod states;
mod tfl_sqlite;
mod watch;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use indicatif::ProgressBar;
use threadkeep::core::exchange::ImportItem;
use threadkeep::{ImportOptions, Memory, Scope};
use threadkeep_formats::{Format, FormatError};

use super::places::{System, variable};
use super::{App, Status};
use crate::failure::{Failure, sentence};
use crate::progress;
use crate::store::Purpose;
use crate::table::counted;
use exclusions::Exclusions;
use files::{File, Found, Origin};
use intake::{Filter, Intake, Items, RowItems};
use places::Place;
use report::ProblemJson;
pub(super) use report::Report;
use states::FileStates;

/// The number of messages that are indexed between checks for Ctrl-C.
const INDEX_STEP: usize = 2_000;

/// Import conversations from files and folders
///
/// The format is detected: an export of ChatGPT, Claude, Open WebUI, LibreChat, Slack or Threadkeep, as a file, a folder or the
/// zip archive that the service sends; sessions of Claude Code, Codex, Gemini CLI, Continue, Cline, Roo Code, Aider and Cursor;
/// OpenAI chat JSON Lines, ShareGPT, LoCoMo or SGD. Importing a file again changes nothing. Records that cannot be read are
/// listed and skipped. What looks like a secret is masked. If a conversation has branches, the current branch becomes the
/// thread, and each other branch a fork.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep import --all                          everything that programs on this machine keep; asks first
  threadkeep import --all --watch                  and keep importing what is added, until Ctrl-C
  threadkeep import --all --watch --service systemd    prints a unit that does so in the background
  threadkeep import conversations.json
  threadkeep import chatgpt-export.zip --exclude '*.html'
  threadkeep import claude-export.zip --documents    and the documents of projects
  threadkeep import exports/                       all data files below a folder
  threadkeep import chats.jsonl --format sharegpt
  ssh host cat chats.jsonl.gz | threadkeep import -")]
pub(crate) struct Arguments {
    /// Files and folders; - reads standard input
    #[arg(required_unless_present = "all", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The format, if it cannot be detected
    #[arg(long, value_name = "FORMAT", value_parser = format_parser())]
    format: Option<ImportFormat>,
    /// Import the conversations of all supported programs on this machine
    #[arg(long, conflicts_with_all = ["paths", "format"])]
    all: bool,
    /// Do not ask for confirmation
    #[arg(long, short = 'y', requires = "all")]
    yes: bool,
    /// Leave out files, folders and conversations of projects that match a pattern with * and ?; can be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Also add the documents and instructions of projects, the memory and the custom instructions in exports of Claude and
    /// ChatGPT as documents
    #[arg(long)]
    documents: bool,
    /// Also import conversations that were imported before and erased since
    #[arg(long)]
    erased: bool,
    /// Import what looks like a key, a token or a password, instead of masking it
    #[arg(long)]
    keep_secrets: bool,
    /// Keep importing what is added to the files, until Ctrl-C
    #[arg(long)]
    watch: bool,
    /// Print a service that runs this command in the background, instead of running it
    #[arg(long, value_name = "KIND", requires = "watch")]
    service: Option<service::Kind>,
}

/// What to import, and how.
#[derive(Debug, Default)]
pub(super) struct Selection {
    format: Option<ImportFormat>,
    exclusions: Exclusions,
    keep_secrets: bool,
    documents: bool,
    includes_erased: bool,
    /// Whether to omit notes about files that contain no conversations.
    is_quiet: bool,
}

impl Selection {
    /// Imports everything unchanged.
    pub(super) fn verbatim() -> Self {
        Self { keep_secrets: true, ..Self::default() }
    }

    /// Describes what affects the items that are taken from a file.
    fn description(&self) -> String {
        let Self { format, exclusions, keep_secrets, documents, includes_erased, is_quiet: _ } = self;
        format!("{format:?} {exclusions:?} {keep_secrets} {documents} {includes_erased}")
    }
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ImportFormat {
    /// A file of records.
    Records(Format),
    /// A database of the TFL assistant.
    TflSqlite,
    /// A database of Cursor.
    Cursor,
}

impl ImportFormat {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Records(format) => format.as_str(),
            Self::TflSqlite => tfl_sqlite::NAME,
            Self::Cursor => cursor::NAME,
        }
    }
}

/// Returns the names of all formats.
fn format_names() -> impl Iterator<Item = &'static str> {
    Format::ALL.map(Format::as_str).into_iter().chain([cursor::NAME, tfl_sqlite::NAME])
}

fn format_parser() -> impl TypedValueParser<Value = ImportFormat> {
    PossibleValuesParser::new(format_names()).try_map(|name| match name.as_str() {
        tfl_sqlite::NAME => Ok(ImportFormat::TflSqlite),
        cursor::NAME => Ok(ImportFormat::Cursor),
        name => name.parse::<Format>().map(ImportFormat::Records),
    })
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let Arguments { paths, format, all, yes, exclude, documents, erased, keep_secrets, watch, service } = arguments;
    let home = System::current().home(&variable);
    let exclusions = Exclusions::new(&exclude, home.as_deref())?;
    if let Some(kind) = service {
        let flags = [("--documents", documents), ("--erased", erased), ("--keep-secrets", keep_secrets)];
        let flags = flags.into_iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| flag.to_owned());
        let format = format.map(|format| format!("--format={}", format.as_str()));
        let words = service::words(app, &paths, all, &exclude, flags.chain(format))?;
        app.output.line(kind.text(&words))?;
        app.output.note(kind.instructions());
        return Ok(Status::Done);
    }
    let paths = match all {
        true => known_places(app, &exclusions, yes, watch)?,
        false => paths,
    };
    let Found { files, skipped, unreadable } = match files::find(&paths, &exclusions) {
        // Files may appear later.
        Err(error) if !watch => return Err(error),
        found => found.unwrap_or_default(),
    };
    // Folders of programs contain many other files.
    skipped.iter().filter(|_| !all).for_each(|skipped| app.output.note(skipped));
    let selection =
        Selection { format, exclusions, keep_secrets, documents, includes_erased: erased, is_quiet: all || watch };
    let import = Import::begin(app, app.open(Purpose::CreateOrWrite).await?.memory, selection)?;
    if watch {
        return watch::run(&import, (!all).then_some(&paths)).await;
    }
    let report = import.run_with(&files, unreadable).await?;
    report.print(&app.output)?;
    Ok(report.status())
}

/// Lists the places in which programs keep conversations, and asks whether to import them. It is an error if there are none, unless
/// they may appear later.
fn known_places(app: &App, exclusions: &Exclusions, yes: bool, may_appear: bool) -> Result<Vec<PathBuf>> {
    let places = places::existing(exclusions);
    if places.is_empty() && may_appear {
        app.output.note("no conversations from supported programs found on this machine yet");
    } else if places.is_empty() {
        let failure = Failure::user_error("no conversations from supported programs found on this machine");
        return Err(failure.hint("specify the files: threadkeep import PATH").into());
    }
    for Place { program, path } in &places {
        let files =
            files::find(std::slice::from_ref(path), exclusions).map_or_else(|_| Vec::new(), |found| found.files);
        let bytes = files.iter().map(File::bytes).sum();
        let (count, size) = (counted(files.len() as u64, "file"), indicatif::HumanBytes(bytes));
        app.output.note(format_args!("{program:<12} {} ({count}, {size})", places::abbreviated(path)));
    }
    app.confirm("Import these conversations?", yes)?;
    Ok(places.into_iter().map(|place| place.path).collect())
}

/// A running import.
pub(super) struct Import<'a> {
    app: &'a App,
    memory: Memory,
    scope: Scope,
    selection: Selection,
}

impl<'a> Import<'a> {
    pub(super) fn begin(app: &'a App, memory: Memory, selection: Selection) -> Result<Self> {
        app.interrupt.enable_graceful_stop();
        Ok(Self { app, memory, scope: app.scope()?, selection })
    }

    /// Imports files one after the other, then updates the search index. In folders, files that have not changed since they were last
    /// imported are skipped.
    pub(super) async fn run(&self, files: &[File]) -> Result<Report> {
        self.run_with(files, Vec::new()).await
    }

    /// Like [`Import::run`], but also reports what cannot be read, with the reasons.
    async fn run_with(&self, files: &[File], unreadable: Vec<(String, String)>) -> Result<Report> {
        let bar = progress::bytes(files.iter().map(File::bytes).sum());
        let mut report = Report::default();
        for (name, reason) in unreadable {
            self.app.output.note(format_args!("{name}: {reason}"));
            report.add_problem(ProblemJson::unreadable_file(&name, &reason));
        }
        let mut bytes_before = 0;
        let mut failure = None;
        let mut states = FileStates::load(&self.memory, &self.scope, &self.selection.description()).await?;
        for file in files {
            if self.app.interrupt.is_stop_requested() {
                break;
            }
            bar.set_position(bytes_before);
            bytes_before += file.bytes();
            // A file that the user names is always read.
            if (self.selection.is_quiet || file.origin == Origin::Folder) && states.contain(file) {
                report.files_unchanged += 1;
                continue;
            }
            let (files_before, problems_before) = (report.files.len(), report.problem_count());
            if let Err(error) = self.file(file, &bar, &mut report).await {
                failure = Some(error.context(format!("import of {file} failed")));
                break;
            }
            // A file with problems is read again, so that the next import reports them too.
            let is_complete = report.files.len() > files_before
                && report.problem_count() == problems_before
                && !self.app.interrupt.is_stop_requested();
            if is_complete && let Err(error) = states.add(file).await {
                failure = Some(error);
                break;
            }
        }
        let written = states.write().await;
        failure = failure.or(written.err());
        bar.finish_and_clear();
        report.interrupted = self.app.interrupt.is_stop_requested();
        match failure {
            // Messages that were imported before the error stay imported, so they are reported.
            Some(error) => {
                report.print(&self.app.output)?;
                Err(error)
            }
            None if report.is_without_files() && !report.interrupted => {
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

    async fn file(&self, file: &File, bar: &ProgressBar, report: &mut Report) -> Result<()> {
        let mut intake = Intake::new(file, bar, &self.app.output, report);
        let format = self.selection.format;
        if let Some((path, kind)) = file.path().and_then(|path| Some((path, database(path, format)?))) {
            return self.database(path, kind, file.origin, &mut intake).await;
        }
        let format = match format {
            Some(ImportFormat::Records(format)) => Some(format),
            Some(ImportFormat::TflSqlite | ImportFormat::Cursor) => {
                intake.report_unreadable_file("a database cannot be read from standard input; specify its file");
                return Ok(());
            }
            None => None,
        };
        let (has_documents, unreadable) = match self.selection.documents {
            true => self.documents(file, &mut intake).await?,
            false => (false, Vec::new()),
        };
        let reader = match file.open(format) {
            Ok(reader) => reader,
            Err(FormatError::Unrecognised { .. }) if has_documents => {
                unreadable.into_iter().for_each(|error| intake.record_problem(error));
                return Ok(());
            }
            Err(error @ (FormatError::Unrecognised { .. } | FormatError::Empty)) if file.origin == Origin::Folder => {
                let found = match error {
                    FormatError::Unrecognised { found } if is_of_documents(&found) => {
                        format!(" (found {found}; --documents adds such documents)")
                    }
                    FormatError::Unrecognised { found } => format!(" (found {found})"),
                    _ => String::new(),
                };
                if self.selection.is_quiet {
                    intake.count_unrecognised_file();
                } else {
                    bar.suspend(|| {
                        self.app.output.note(format_args!("skipped {file}: not a conversation file{found}"))
                    });
                }
                return Ok(());
            }
            Err(error) => {
                intake.report_unreadable_file(&sentence(&error.into()));
                return Ok(());
            }
        };
        intake.begin(reader.format().as_str());
        self.import(Items::new(reader, &intake, &self.app.interrupt, self.filter()), &intake).await
    }

    /// Imports a database.
    async fn database(&self, path: &Path, kind: ImportFormat, origin: Origin, intake: &mut Intake<'_>) -> Result<()> {
        let (name, opened): (_, Result<Box<dyn Iterator<Item = tfl_sqlite::RowResult>>>) = match kind {
            ImportFormat::Cursor => {
                (cursor::NAME, cursor::CursorDatabase::open(path).map(|found| Box::new(found) as _))
            }
            _ => (tfl_sqlite::NAME, tfl_sqlite::TflDatabase::open(path).map(|found| Box::new(found) as _)),
        };
        match opened {
            Ok(database) => {
                intake.begin(name);
                self.import(RowItems::new(database, intake, &self.app.interrupt, self.filter()), intake).await
            }
            // The other databases of editors contain no conversations.
            Err(error) if origin == Origin::Folder && format!("{error:#}").contains("no such table") => Ok(()),
            Err(error) => {
                intake.report_unreadable_file(&format!("cannot read the database: {error:#}"));
                Ok(())
            }
        }
    }

    fn filter(&self) -> Filter<'_> {
        Filter::new(&self.selection.exclusions, !self.selection.keep_secrets)
    }

    async fn import(&self, items: impl Iterator<Item = ImportItem>, intake: &Intake<'_>) -> Result<()> {
        let progress = |done: &threadkeep::ImportReport| intake.on_progress(done);
        let options = ImportOptions { includes_erased: self.selection.includes_erased, ..ImportOptions::default() };
        let imported = self.memory.import(&self.scope, items, options, progress).await;
        let done = imported.context("cannot write to the store")?;
        intake.on_progress(&done);
        Ok(())
    }
}

/// Whether the fields of an unknown record are those of a project or of the memory in an export of Claude.
fn is_of_documents(fields: &str) -> bool {
    ["`prompt_template`", "`docs`", "`conversations_memory`"].iter().any(|field| fields.contains(field))
}

/// Returns the kind of a database; `None` if the file is not a database.
fn database(path: &Path, format: Option<ImportFormat>) -> Option<ImportFormat> {
    match format {
        Some(ImportFormat::Records(_)) => None,
        Some(database) => Some(database),
        None if !tfl_sqlite::is_database(path) => None,
        None if files::is_editor_database(path) || cursor::CursorDatabase::is_cursor_database(path) => {
            Some(ImportFormat::Cursor)
        }
        None => Some(ImportFormat::TflSqlite),
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
