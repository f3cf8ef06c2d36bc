use axum::extract::State;
use serde_json::json as value;

use super::{STORE, find};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Deletes a stored completion
#[utoipa::path(
    delete,
    path = "/v1/chat/completions/{id}",
    operation_id = "delete_chat_completion",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, description = "The completion was deleted.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let id = path_params.get("id");
    find(&app, &caller.scope, id).await?;
    STORE.delete(&app, &caller.scope, id).await?;
    Ok(json(&value!({ "id": id, "object": "chat.completion.deleted", "deleted": true })))
}
