use axum::extract::State;

use super::find;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Retrieves a stored completion
#[utoipa::path(
    get,
    path = "/v1/chat/completions/{id}",
    operation_id = "retrieve_chat_completion",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, description = "The completion.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    Ok(json(&find(&app, &caller.scope, path_params.get("id")).await?.to_json()?))
}
