use std::io::Cursor;

use axum::body::Body;
use axum::extract::State;
use serde::Serialize;
use threadkeep::ImportOptions;
use threadkeep_formats::{Format, FormatError, Reader, RecordError};
use tokio::runtime::Handle;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{Params, read_body};
use crate::output::json;
use crate::security::Caller;

/// Items of one import at most: a small packed body may hold very many.
const ITEMS: usize = 1_000_000;
/// Problems that are told.
const PROBLEMS: usize = 1_000;

/// What an import did.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ImportedJson {
    /// The format that was found out, or given.
    format: String,
    /// Forks among them.
    threads: CountsJson,
    /// Branches of conversations beside their first threads.
    forks: CountsJson,
    /// One that forks share counts once.
    messages: CountsJson,
    documents: CountsJson,
    /// How many records could not be kept.
    problem_count: usize,
    /// The first 1,000 of them.
    problems: Vec<String>,
}

/// How many were added, and how many were there.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CountsJson {
    new: u64,
    known: u64,
}

/// Takes conversations in, from a file of any known format, packed by gzip or not
///
/// Importing again changes nothing. What is larger than a body may be is imported by the command line.
#[utoipa::path(
    post,
    path = "/v1/import",
    tag = "exchange",
    params(("format" = Option<String>, Query, description = "Where it is not found out from the content")),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 200, body = ImportedJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn import(State(app): State<App>, caller: Caller, mut params: Params, body: Body) -> Result {
    let format = params.parse::<Format>("format", "a format that is known")?;
    params.finish()?;
    let bytes = read_body(body, app.options().body_bytes, &app).await?;
    let handle = Handle::current();
    // Reading a file is no work for a thread that serves others.
    let importing = tokio::task::spawn_blocking(move || {
        let mut reader = threadkeep_formats::open_stream(Box::new(Cursor::new(bytes)), format)?;
        let mut bad = Vec::new();
        let format = reader.format().to_string();
        let mut count = 0;
        let items = good(&mut reader, &mut bad).take(ITEMS).inspect(|_| count += 1);
        let report = handle.block_on(app.memory().import(&caller.scope, items, ImportOptions::default(), |_| {}))?;
        let kept_out = report.problems.iter().map(|problem| match &problem.name {
            Some(name) => format!("{name}: {}", problem.error),
            None => format!("item {}: {}", problem.item, problem.error),
        });
        let cut = (count == ITEMS).then(|| format!("only the first {ITEMS} records were looked at"));
        let problems: Vec<String> =
            cut.into_iter().chain(bad.iter().map(ToString::to_string)).chain(kept_out).collect();
        Ok::<_, ApiError>(ImportedJson {
            format,
            threads: CountsJson { new: report.threads_created, known: report.threads_found },
            forks: CountsJson { new: report.forks_created, known: report.forks_found },
            messages: CountsJson { new: report.messages_added, known: report.messages_already_there },
            documents: CountsJson { new: report.documents_added, known: report.documents_already_there },
            problem_count: problems.len(),
            problems: problems.into_iter().take(PROBLEMS).collect(),
        })
    });
    let imported = importing.await.map_err(|_| ApiError::broken_off())??;
    Ok(json(&imported))
}

fn good<'a>(
    reader: &'a mut Reader,
    bad: &'a mut Vec<RecordError>,
) -> impl Iterator<Item = threadkeep::exchange::ImportItem> + 'a {
    reader.filter_map(|item| item.map_err(|error| bad.push(error)).ok())
}

impl From<FormatError> for ApiError {
    fn from(error: FormatError) -> Self {
        Self::invalid("body", error.to_string()).code("unreadable_file")
    }
}
