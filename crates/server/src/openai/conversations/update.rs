use axum::extract::State;
use serde::Deserialize;
use threadkeep::{Map, ThreadPatch};
use utoipa::ToSchema;

use super::{ConversationJson, check_metadata};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::openai::ids;
use crate::output::json;
use crate::security::Caller;

/// The new metadata.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct UpdateConversationJson {
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
}

/// Replaces the metadata of a conversation
#[utoipa::path(
    post,
    path = "/v1/conversations/{id}",
    operation_id = "update_conversation",
    tag = "openai",
    params(("id" = String, Path)),
    request_body = UpdateConversationJson,
    responses((status = 200, body = ConversationJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn update(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    JsonBody { value: body, .. }: JsonBody<UpdateConversationJson>,
) -> Result {
    let (id, scope) = (path_params.get("id"), &caller.scope);
    let (thread, metadata) = (ids::find_conversation(&app, scope, id).await?, Some(check_metadata(body.metadata)?));
    let patch = ThreadPatch { metadata, ..ThreadPatch::default() };
    let patched = app.memory().patch_thread(scope, thread, patch, None).await;
    patched.map_err(ApiError::from).map_err(ids::not_found_as(id))?;
    Ok(json(&ConversationJson::from(app.memory().get_thread(scope, thread).await?)))
}
