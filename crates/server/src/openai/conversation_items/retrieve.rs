use axum::extract::State;

use super::{find, find_thread, json_response};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::openai::items::items_of;
use crate::security::Caller;

/// Retrieves an item of a conversation
#[utoipa::path(
    get,
    path = "/v1/conversations/{id}/items/{item}",
    operation_id = "retrieve_conversation_item",
    tag = "openai",
    params(("id" = String, Path), ("item" = String, Path), ("include" = Option<Vec<String>>, Query)),
    responses((status = 200, description = "The item.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let thread = find_thread(&app, &caller.scope, path_params.get("id")).await?;
    let (message, index) = find(&app, &caller.scope, thread, path_params.get("item")).await?;
    let item = items_of(&message).swap_remove(index);
    Ok(json_response(item.json))
}
