use axum::extract::State;
use serde_json::json as value;
use threadkeep::Scope;

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
    if !delete_answer(&app, scope, id).await? {
        let state = background::find_state(&app, scope, id, MayResume::Yes).await?;
        // A response in progress is also cancelled, because no client will be able to retrieve it. It may have ended since the first attempt.
        background::cancel(&app, scope, id).await?;
        let is_deleted = delete_answer(&app, scope, id).await?;
        if state.is_none() && !is_deleted {
            return Err(not_found(id));
        }
    }
    background::delete(&app, scope, id).await?;
    Ok(json(&value!({ "id": id, "object": "response", "deleted": true })))
}

/// Deletes the stored answer of a response. Returns whether there was one.
pub(super) async fn delete_answer(app: &App, scope: &Scope, id: &str) -> Result<bool> {
    match thread_in_id(id)? {
        Some(thread) if turn::find_turn_record(app, scope, thread, id).await?.is_some() => {
            turn::delete_record(app, scope, thread, id).await?;
        }
        None if stored_response::find(app, scope, id).await?.is_some() => {
            stored_response::delete(app, scope, id).await?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}
