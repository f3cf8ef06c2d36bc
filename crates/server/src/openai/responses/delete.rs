use axum::extract::State;
use serde_json::json as value;

use super::{background, kept, thread_of, unknown};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::Names;
use crate::openai::turn;
use crate::output::json;
use crate::security::{Caller, MayDrive};

/// Deletes a response; what was said stays in its conversation
#[utoipa::path(
    delete,
    path = "/v1/responses/{id}",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, description = "It is gone.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, names: Names) -> Result {
    let (id, scope) = (names.text("id"), &caller.scope);
    match thread_of(id)? {
        Some(thread) if turn::find(&app, scope, thread, id).await?.is_some() => {
            turn::forget(&app, scope, thread, id).await?;
        }
        None if kept::find(&app, scope, id).await?.is_some() => {
            kept::forget(&app, scope, id).await?;
        }
        _ => {
            // Nobody waits for what is deleted.
            background::look(&app, scope, id, MayDrive::Yes).await?.ok_or_else(|| unknown(id))?;
            background::cancel(&app, scope, id).await?;
        }
    }
    background::forget(&app, scope, id).await?;
    Ok(json(&value!({ "id": id, "object": "response", "deleted": true })))
}
