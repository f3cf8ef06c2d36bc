use axum::extract::State;
use serde_json::json as value;
use threadkeep::{JsonText, Map, Value};

use super::find;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::openai::conversation_items::list::{PageQuery, page_response};
use crate::openai::items::Item;
use crate::security::Caller;

/// Lists the request messages of a stored completion, by default oldest first
#[utoipa::path(
    get,
    path = "/v1/chat/completions/{id}/messages",
    operation_id = "list_chat_completion_messages",
    tag = "openai",
    params(
        ("id" = String, Path),
        ("after" = Option<String>, Query),
        ("limit" = Option<u32>, Query),
        ("order" = Option<String>, Query, description = "`asc` (default) or `desc`")
    ),
    responses((status = 200, description = "A page of messages.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn messages(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result {
    let query = PageQuery::read_ascending(&mut params)?;
    let id = path_params.get("id");
    let stored = find(&app, &caller.scope, id).await?;
    let item = |(index, message): (usize, &JsonText)| {
        let mut members: Map = message.read()?;
        let id = format!("{id}-{index}");
        members.insert("id".to_owned(), value!(id));
        Ok(Item { id, json: Value::Object(members).to_string() })
    };
    let items = stored.messages.iter().enumerate().map(item).collect::<Result<Vec<_>>>()?;
    page_response(items, &query)
}
