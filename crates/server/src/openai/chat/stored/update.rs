use axum::extract::State;
use serde::Deserialize;
use threadkeep::Map;
use utoipa::ToSchema;

use super::{STORE, find};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::openai::conversations::check_metadata;
use crate::output::json;
use crate::security::Caller;

/// The new metadata.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct UpdateCompletionJson {
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
}

/// Replaces the metadata of a stored completion
#[utoipa::path(
    post,
    path = "/v1/chat/completions/{id}",
    operation_id = "update_chat_completion",
    tag = "openai",
    params(("id" = String, Path)),
    request_body = UpdateCompletionJson,
    responses((status = 200, description = "The completion.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn update(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    JsonBody { value: body, .. }: JsonBody<UpdateCompletionJson>,
) -> Result {
    let (id, scope) = (path_params.get("id"), &caller.scope);
    let metadata = check_metadata(body.metadata)?;
    let mut stored = find(&app, scope, id).await?;
    stored.metadata = metadata;
    STORE.write(&app, scope, id, &stored).await?;
    Ok(json(&stored.to_json()?))
}
