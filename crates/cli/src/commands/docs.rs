mod files;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use serde::Serialize;
use sha2::{Digest, Sha256};
use threadkeep::memory::{FoundPassage, LibraryDocument, NewLibraryDocument, Passage, PassageOptions};
use threadkeep::{Embedder, Memory, Scope};
use threadkeep_formats::{DocumentFormat, DocumentPassage, SPLIT_VERSION, read_document, split_document};

use super::{App, Status};
use crate::failure::{Failure, sentence};
use crate::instants;
use crate::models;
use crate::output::{DIM, printable, printable_line};
use crate::progress;
use crate::store::Purpose;
use crate::table::{Align, Table, counted, cut, number};
use files::File;

/// The library to which documents are added by default.
pub(super) const LIBRARY: &str = "documents";
/// The number of columns after which a title is truncated.
const TITLE_COLUMNS: usize = 60;

/// Manage documents that assistants can cite
///
/// Text, Markdown and HTML files are split into passages, which assistants find by their words and, with an embedding model, by
/// their meaning. With --as-tenant the documents are available to all users of the tenant.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  threadkeep docs add notes/ handbook.html     all .txt, .md and .html files; unchanged ones are skipped
  threadkeep docs list
  threadkeep docs search 'When do you open on Sundays?'
  threadkeep docs remove notes/garden.md")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
    /// The library that contains the documents
    #[arg(long, global = true, value_name = "NAME", default_value = LIBRARY, value_parser = library)]
    library: String,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Add new and changed files
    Add {
        /// Files and folders
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// List the documents
    List,
    /// Remove a document
    Remove {
        /// The document's id, or the path of its file
        id: String,
    },
    /// Find passages that answer a question
    Search {
        /// The question
        #[arg(required = true)]
        question: Vec<String>,
        /// The maximum number of passages
        #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
        limit: u8,
    },
}

pub(crate) async fn run(app: &App, arguments: Arguments) -> Result<Status> {
    let library = arguments.library;
    match arguments.action {
        Action::Add { paths } => add(app, &library, &paths).await,
        Action::List => list(app, &library).await,
        Action::Remove { id } => remove(app, &library, &id).await,
        Action::Search { question, limit } => search(app, &library, &question.join(" "), limit).await,
    }
}

fn library(name: &str) -> Result<String, &'static str> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    match (1..=100).contains(&name.len()) && name.chars().all(is_plain) {
        true => Ok(name.to_owned()),
        false => Err("expected 1 to 100 letters, digits, - _ ."),
    }
}

#[derive(Default, Serialize)]
struct AddReport {
    added: Vec<AddedJson>,
    unchanged: usize,
    problems: Vec<ProblemJson>,
    interrupted: bool,
}

#[derive(Serialize)]
struct AddedJson {
    id: String,
    title: String,
    passages: usize,
}

#[derive(Serialize)]
struct ProblemJson {
    path: String,
    reason: String,
}

async fn add(app: &App, library: &str, paths: &[PathBuf]) -> Result<Status> {
    let files = files::find(paths)?;
    let embedder = models::embedder(&app.settings)?;
    let (memory, scope) = (app.open(Purpose::CreateOrWrite).await?.memory, app.scope()?);
    app.interrupt.enable_graceful_stop();
    let bar = progress::count(files.len() as u64, "files");
    let mut report = AddReport::default();
    for file in &files {
        if app.interrupt.is_stop_requested() {
            report.interrupted = true;
            break;
        }
        bar.set_message(file.title.clone());
        match add_file(&memory, &scope, library, file, embedder.as_ref()).await {
            Ok(Some(document)) => {
                let LibraryDocument { id, title, passages, .. } = document;
                report.added.push(AddedJson { id, title, passages });
            }
            Ok(None) => report.unchanged += 1,
            Err(error) => {
                let problem = ProblemJson { path: file.path.display().to_string(), reason: sentence(&error) };
                bar.suspend(|| app.output.note(format_args!("{}: {}", problem.path, problem.reason)));
                report.problems.push(problem);
            }
        }
        bar.inc(1);
    }
    bar.finish_and_clear();
    if app.output.is_json() {
        app.output.json(&report)?;
    } else {
        let passages = report.added.iter().map(|added| added.passages as u64).sum();
        let added = counted(report.added.len() as u64, "document");
        let unchanged = match report.unchanged {
            0 => String::new(),
            unchanged => format!("; {} unchanged", number(unchanged as u64)),
        };
        app.output.line(format_args!("added {added}, {}{unchanged}", counted(passages, "passage")))?;
    }
    Ok(match (report.interrupted, report.problems.is_empty()) {
        (true, _) => Status::Interrupted,
        (_, false) => Status::Findings,
        _ => Status::Done,
    })
}

/// Adds a file. Returns `None` if the library already contains the file with the same content.
async fn add_file(
    memory: &Memory,
    scope: &Scope,
    library: &str,
    file: &File,
    embedder: Option<&Arc<dyn Embedder>>,
) -> Result<Option<LibraryDocument>> {
    let text = read_document(&file.path)?;
    let format = DocumentFormat::from_path(&file.path).unwrap_or(DocumentFormat::Text);
    add_text(memory, scope, library, (&file.id, &file.title), (&text, format), embedder).await
}

/// Adds a text with an id and a title. Returns `None` if the library already contains the same document.
pub(super) async fn add_text(
    memory: &Memory,
    scope: &Scope,
    library: &str,
    (id, title): (&str, &str),
    (text, format): (&str, DocumentFormat),
    embedder: Option<&Arc<dyn Embedder>>,
) -> Result<Option<LibraryDocument>> {
    let revision = revision(text);
    let existing = memory.find_library_document(scope, library, id).await?;
    let embedded_by = embedder.map(|embedder| embedder.model().to_owned());
    let is_current = |existing: &LibraryDocument| {
        existing.is_complete
            && existing.revision == revision
            && existing.title == title
            && existing.embedded_by == embedded_by
    };
    if existing.as_ref().is_some_and(is_current) {
        return Ok(None);
    }
    let split = split_document(text, format)?;
    if split.passages.is_empty() {
        anyhow::bail!("the document contains no text");
    }
    let passages = split.passages.into_iter().map(|DocumentPassage { place, text }| Passage { place, text }).collect();
    let document = NewLibraryDocument { id: id.to_owned(), title: title.to_owned(), revision, passages };
    let added = memory.put_library_document(scope, library, document, embedder.map(|embedder| &**embedder)).await?;
    Ok(Some(added))
}

/// Returns the revision of a document. It includes the version of the splitter, so that documents split by another version
/// are added again.
fn revision(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{SPLIT_VERSION}:{hash}")
}

#[derive(Serialize)]
struct ListJson {
    documents: Vec<LibraryDocument>,
}

async fn list(app: &App, library: &str) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let documents = memory.list_library(&scope, library).await?;
    if app.output.is_json() {
        app.output.json(&ListJson { documents })?;
        return Ok(Status::Done);
    }
    if documents.is_empty() {
        app.output.note("no documents; add some with `threadkeep docs add PATH`");
        return Ok(Status::Done);
    }
    let mut table = Table::new([
        ("document", Align::Left),
        ("passages", Align::Right),
        ("added", Align::Left),
        ("id", Align::Left),
    ]);
    for document in &documents {
        let mark = if document.is_complete { "" } else { " (incomplete)" };
        table.add_row([
            cut(&format!("{}{mark}", printable_line(&document.title)), TITLE_COLUMNS),
            number(document.passages as u64),
            instants::minute(document.added_at),
            printable_line(&document.id),
        ]);
    }
    app.output.line(table.text())?;
    Ok(Status::Done)
}

async fn remove(app: &App, library: &str, id: &str) -> Result<Status> {
    let (memory, scope) = (app.open(Purpose::Write).await?.memory, app.scope()?);
    let by_path = files::id(std::path::Path::new(id));
    let mut removed = None;
    for id in [id.to_owned()].into_iter().chain(by_path) {
        if removed.is_none() && memory.remove_library_document(&scope, library, &id).await? {
            removed = Some(id);
        }
    }
    let Some(removed) = removed else {
        let failure = Failure::user_error(format!("document `{}` not found", cut(&printable_line(id), TITLE_COLUMNS)));
        return Err(failure.hint("`threadkeep docs list` lists the documents with their ids").into());
    };
    if app.output.is_json() {
        app.output.json(&serde_json::json!({"removed": removed}))?;
    } else {
        app.output.line(format_args!("removed {}", printable_line(&removed)))?;
    }
    Ok(Status::Done)
}

#[derive(Serialize)]
struct PassageJson {
    id: String,
    document: String,
    title: String,
    place: String,
    text: String,
    score: f64,
    similarity: Option<f64>,
}

impl std::convert::From<FoundPassage> for PassageJson {
    fn from(found: FoundPassage) -> Self {
        let FoundPassage { id, document, title, place, text, score, similarity } = found;
        Self { id, document, title, place, text, score, similarity }
    }
}

async fn search(app: &App, library: &str, question: &str, limit: u8) -> Result<Status> {
    let embedder = models::embedder(&app.settings)?;
    let (memory, scope) = (app.open(Purpose::Read).await?.memory, app.scope()?);
    let options = PassageOptions { limit: limit.into(), embedder: embedder.as_deref() };
    let found = memory.find_passages(&scope, library, question, &options).await?;
    if app.output.is_json() {
        let passages: Vec<PassageJson> = found.passages.into_iter().map(PassageJson::from).collect();
        app.output.json(&serde_json::json!({"passages": passages}))?;
        return Ok(Status::Done);
    }
    if found.passages.is_empty() {
        app.output.note("no passages found; `threadkeep docs list` lists the documents");
    }
    let mut lines = app.output.lines();
    for passage in &found.passages {
        let place = format!(" · {} · {:.2}", printable_line(&passage.place), passage.score);
        let title = app.output.paint(crate::output::BOLD, printable_line(&passage.title));
        lines.line(format_args!("{title}{}", app.output.paint(DIM, place)))?;
        for line in printable(&passage.text).lines() {
            lines.line(format_args!("  {line}"))?;
        }
        lines.line("")?;
    }
    lines.finish()?;
    Ok(Status::Done)
}
