use axum::extract::State;
use threadkeep::Value;

use super::{not_found, stored_response, thread_in_id};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::openai::conversation_items::list::{PageQuery, page_response};
use crate::openai::items::{Item, items_of};
use crate::openai::turn;
use crate::security::Caller;

/// Lists the input items of a response
#[utoipa::path(
    get,
    path = "/v1/responses/{id}/input_items",
    operation_id = "list_response_input_items",
    tag = "openai",
    params(
        ("id" = String, Path),
        ("after" = Option<String>, Query),
        ("limit" = Option<u32>, Query),
        ("order" = Option<String>, Query)
    ),
    responses((status = 200, description = "A page of items.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result {
    let query = PageQuery::read(&mut params)?;
    let (id, scope) = (path_params.get("id"), &caller.scope);
    let items: Vec<Item> = match thread_in_id(id)? {
        Some(thread) => {
            let record = turn::find_turn_record(&app, scope, thread, id).await?.ok_or_else(|| not_found(id))?;
            turn::stored_messages(&app, scope, thread, &record.input).await?.iter().flat_map(items_of).collect()
        }
        None => {
            let stored = stored_response::find(&app, scope, id).await?.ok_or_else(|| not_found(id))?;
            let item = |json: &threadkeep::JsonText| {
                let id = json.read::<Value>().ok().and_then(|item| item["id"].as_str().map(str::to_owned));
                Item { id: id.unwrap_or_default(), json: json.as_str().to_owned() }
            };
            stored.input.iter().map(item).collect()
        }
    };
    page_response(items, &query)
}
