use axum::extract::State;

use super::ConversationJson;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::openai::ids;
use crate::output::json;
use crate::security::Caller;

/// Retrieves a conversation
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}",
    operation_id = "retrieve_conversation",
    tag = "openai",
    params(("id" = String, Path)),
    responses((status = 200, body = ConversationJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let id = path_params.get("id");
    let found = app.memory().get_thread(&caller.scope, ids::find_conversation(&app, &caller.scope, id).await?).await;
    let thread = found.map_err(ApiError::from).map_err(ids::not_found_as(id))?;
    Ok(json(&ConversationJson::from(thread)))
}
