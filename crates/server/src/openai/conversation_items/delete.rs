use axum::extract::State;

use super::{find, find_thread};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::openai::conversations::ConversationJson;
use crate::openai::items::items_of;
use crate::output::json;
use crate::security::Caller;

/// Deletes an item of a conversation
#[utoipa::path(
    delete,
    path = "/v1/conversations/{id}/items/{item}",
    operation_id = "delete_conversation_item",
    tag = "openai",
    params(("id" = String, Path), ("item" = String, Path)),
    responses((status = 200, body = ConversationJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let (scope, memory) = (&caller.scope, app.memory());
    let thread = find_thread(&app, scope, path_params.get("id")).await?;
    let (message, _) = find(&app, scope, thread, path_params.get("item")).await?;
    if items_of(&message).len() > 1 {
        let message =
            "this item is part of a message that was written through another API; delete the whole message there";
        return Err(ApiError::invalid("item", message).code("item_is_part_of_message"));
    }
    memory.erase_messages(scope, thread, &[message.id]).await?;
    Ok(json(&ConversationJson::from(memory.get_thread(scope, thread).await?)))
}
