use axum::extract::State;
use serde_json::json as value;

use super::{background, not_found, stored_response, thread_in_id};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::openai::turn;
use crate::output::json;
use crate::security::{Caller, MayResume};

/// Deletes a response
///
/// The messages of the response remain in the conversation.
#[utoipa::path(
    delete,
    path = "/v1/responses/{id}",
    operation_id = "delete_response",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, description = "The response was deleted.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let (id, scope) = (path_params.get("id"), &caller.scope);
    match thread_in_id(id)? {
        Some(thread) if turn::find_turn_record(&app, scope, thread, id).await?.is_some() => {
            turn::delete_record(&app, scope, thread, id).await?;
        }
        None if stored_response::find(&app, scope, id).await?.is_some() => {
            stored_response::delete(&app, scope, id).await?;
        }
        _ => {
            // A response in progress is also cancelled, because no client will be able to retrieve it.
            background::find_state(&app, scope, id, MayResume::Yes).await?.ok_or_else(|| not_found(id))?;
            background::cancel(&app, scope, id).await?;
        }
    }
    background::delete(&app, scope, id).await?;
    Ok(json(&value!({ "id": id, "object": "response", "deleted": true })))
}
