use axum::extract::State;

use super::stored_response::{STORE, StoredResponse};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::openai::conversation_items::list::{PageQuery, page_response};
use crate::openai::items::Item;
use crate::security::Caller;

/// The number of responses read with one query.
const BATCH: usize = 100;
/// The maximum number of responses that can be listed.
const MAX_RESPONSES: usize = 10_000;

/// Lists stored responses that belong to no conversation, by default newest first
///
/// OpenAI's API has no such list, but some compatible servers do. The responses of a conversation are its items.
#[utoipa::path(
    get,
    path = "/v1/responses",
    operation_id = "list_responses",
    tag = "openai",
    params(
        ("after" = Option<String>, Query, description = "The `last_id` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 100; default 20"),
        ("order" = Option<String>, Query, description = "`desc` (default) or `asc`")
    ),
    responses((status = 200, description = "A page of responses.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let query = PageQuery::read(&mut params)?;
    params.finish()?;
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        // The ids of responses begin with their times, so that the order of the keys is the order of creation.
        let (page, next) = STORE.list::<StoredResponse>(&app, &caller.scope, after, BATCH).await?;
        found.extend(page.into_iter().map(|(id, stored)| Item { id, json: stored.response.as_str().to_owned() }));
        if found.len() > MAX_RESPONSES {
            let message =
                format!("There are more than {MAX_RESPONSES} stored responses; delete those that you no longer need.");
            return Err(ApiError::invalid("after", message).code("limit_exceeded"));
        }
        if next.is_none() {
            return page_response(found, &query);
        }
        after = next;
    }
}
