use axum::extract::State;
use serde_json::json as value;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::openai::ids;
use crate::output::json;
use crate::security::Caller;

/// Deletes a conversation with all its items
#[utoipa::path(
    delete,
    path = "/v1/conversations/{id}",
    operation_id = "delete_conversation",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, description = "The conversation was deleted.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let id = path_params.get("id");
    let thread = ids::find_conversation(&app, &caller.scope, id).await?;
    let deleted = app.memory().delete_thread(&caller.scope, thread).await;
    deleted.map_err(ApiError::from).map_err(ids::not_found_as(id))?;
    Ok(json(&value!({ "id": ids::conversation_id(thread), "object": "conversation.deleted", "deleted": true })))
}
