use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::find_agent;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::output::json;
use crate::security::Caller;

/// The text of a source.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SourceTextJson {
    text: String,
}

/// Gets the text of a source that an answer cites
///
/// Only sources from an assistant's own collection, such as a law or a decision. The text is that of now, which can differ from the cited
/// one. Messages are read with `GET /v1/threads/{id}/messages/{message}`, and passages of documents are found with `POST /v1/files/search`.
#[utoipa::path(
    get,
    path = "/v1/agents/{name}/source",
    operation_id = "get_agent_source",
    tag = "agents",
    params(
        ("name" = String, Path),
        ("kind" = String, Query, description = "The `kind` of the source."),
        ("id" = String, Query, description = "The `id` of the source.")
    ),
    responses((status = 200, body = SourceTextJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn source(
    State(app): State<App>,
    path_params: PathParams,
    caller: Caller,
    mut params: QueryParams,
) -> Result {
    let agent = find_agent(&app, path_params.get("name"))?;
    let missing = |name| ApiError::invalid(name, format!("`{name}` is missing: send that of the source"));
    let kind = params.take("kind")?.ok_or_else(|| missing("kind"))?;
    let id = params.take("id")?.ok_or_else(|| missing("id"))?;
    params.finish()?;
    let text = agent.assistant().source_text(&caller.scope, &kind, &id).await?;
    Ok(json(&SourceTextJson { text: text.ok_or_else(|| ApiError::not_found("source"))? }))
}
