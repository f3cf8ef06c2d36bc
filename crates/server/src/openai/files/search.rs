use axum::extract::State;
use serde::{Deserialize, Serialize};
use threadkeep::core::limits;
use threadkeep::memory::{EmbedderOutcome, FoundPassage, PassageOptions};
use utoipa::ToSchema;

use super::{DEFAULT_LIBRARY, check_library, file_id};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, optional_whole_number};
use crate::output::json;
use crate::security::Caller;

/// The maximum number of passages if the request sets none.
const DEFAULT_LIMIT: usize = 5;
/// The largest maximum that a request can set.
const MAX_LIMIT: usize = 100;
/// The maximum length of a query in bytes.
const MAX_QUERY_BYTES: usize = 64 * 1024;

/// A search in a library.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SearchFilesJson {
    /// A question, or words.
    query: String,
    /// Default: `documents`.
    #[serde(default)]
    library: Option<String>,
    /// The maximum number of passages, from 1 to 100. Default: 5.
    #[serde(default, deserialize_with = "optional_whole_number")]
    #[schema(minimum = 1, maximum = 100)]
    limit: Option<usize>,
}

/// The passages that may answer the query, best first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundPassagesJson {
    data: Vec<FoundPassageJson>,
    /// Whether embeddings contributed to the ranking: `absent` (none are configured), `used` or `failed`.
    meaning: &'static str,
}

/// A passage of a file.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundPassageJson {
    file_id: String,
    filename: String,
    /// The location in the file, such as `Opening hours, lines 12-20`.
    place: String,
    text: String,
    /// The relevance: larger is better. Scores can be compared only within one response.
    score: f64,
    /// The similarity of the embeddings of passage and query, from -1 to 1, if embeddings were used.
    similarity: Option<f64>,
}

/// Finds passages in the files of a library
///
/// Searches the caller's own files and those of the whole tenant. If a file is still being
/// processed, only the passages added so far are found.
#[utoipa::path(
    post,
    path = "/v1/files/search",
    operation_id = "search_files",
    tag = "files",
    request_body = SearchFilesJson,
    responses((status = 200, body = FoundPassagesJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn search(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<SearchFilesJson>,
) -> Result {
    let library = body.library.as_deref().unwrap_or(DEFAULT_LIBRARY);
    check_library(library)?;
    let limit = body.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("`limit` must be 1 to {MAX_LIMIT}")));
    }
    limits::check_at_most("bytes of `query`", body.query.len(), MAX_QUERY_BYTES)
        .map_err(|error| ApiError::from(error).param("query"))?;
    let embedder = app.embedder();
    let options = PassageOptions { limit, embedder: embedder.map(|embedder| embedder.as_ref() as _) };
    let found = app.memory().find_passages(&caller.scope, library, &body.query, &options).await?;
    let meaning = match found.embedder_outcome {
        EmbedderOutcome::NotRequested => "absent",
        EmbedderOutcome::Used => "used",
        EmbedderOutcome::Failed(_) => "failed",
    };
    let data = found.passages.into_iter().map(|passage| {
        let FoundPassage { document, title, place, text, score, similarity, .. } = passage;
        FoundPassageJson { file_id: file_id(library, &document), filename: title, place, text, score, similarity }
    });
    Ok(json(&FoundPassagesJson { data: data.collect(), meaning }))
}
