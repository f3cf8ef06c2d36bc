use std::io::Cursor;

use axum::body::Body;
use axum::extract::State;
use threadkeep::{ImportOptions, Scope};
use threadkeep_api::exchange::ImportedJson;
use threadkeep_formats::{Format, FormatError, Reader, RecordError};
use tokio::runtime::Handle;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{QueryParams, read_body};
use crate::output::json;
use crate::security::{Caller, KeyRole};

/// The maximum number of items in one import. A small compressed body can contain very many items.
const MAX_ITEMS: usize = 1_000_000;

/// Imports conversations from a file of any supported format, optionally compressed with gzip
///
/// With a key or token of a user, the user can import their own conversations. Everything else requires the role `admin`,
/// including requests on behalf of a user (`Threadkeep-User`). Importing the same file again changes nothing. Use the command
/// line for a file that exceeds the size limit of a request body.
#[utoipa::path(
    post,
    path = "/v1/import",
    operation_id = "import_threads",
    tag = "exchange",
    params(("format" = Option<String>, Query, description = "The format, if it cannot be detected from the content")),
    request_body(content = String, content_type = "application/octet-stream"),
    responses((status = 200, body = ImportedJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn import(State(app): State<App>, caller: Caller, mut params: QueryParams, body: Body) -> Result {
    if matches!(caller.scope, Scope::Tenant(_)) || caller.may_select_user {
        caller.require(KeyRole::Admin)?;
    }
    let format = params.parse::<Format>("format", "a supported format")?;
    params.finish()?;
    let bytes = read_body(body, app.options().body_bytes, &app).await?;
    let handle = Handle::current();
    // Parsing would block a thread of the asynchronous runtime.
    let import = tokio::task::spawn_blocking(move || {
        let mut reader = threadkeep_formats::open_stream(Box::new(Cursor::new(bytes)), format)?;
        let mut invalid = Vec::new();
        let format = reader.format().to_string();
        let mut count = 0;
        let items = valid_items(&mut reader, &mut invalid).take(MAX_ITEMS).inspect(|_| count += 1);
        let report = handle.block_on(app.memory().import(&caller.scope, items, ImportOptions::default(), |_| {}))?;
        let truncated = (count == MAX_ITEMS).then(|| format!("only the first {MAX_ITEMS} items were read"));
        let problems = truncated.into_iter().chain(invalid.iter().map(ToString::to_string));
        Ok::<_, ApiError>(ImportedJson::of(format, &report, problems))
    });
    let imported = import.await.map_err(|_| ApiError::task_panicked())??;
    Ok(json(&imported))
}

fn valid_items<'a>(
    reader: &'a mut Reader,
    invalid: &'a mut Vec<RecordError>,
) -> impl Iterator<Item = threadkeep::exchange::ImportItem> + 'a {
    reader.filter_map(|item| item.map_err(|error| invalid.push(error)).ok())
}

impl From<FormatError> for ApiError {
    fn from(error: FormatError) -> Self {
        Self::invalid("body", error.to_string()).code("unreadable_file")
    }
}
