use axum::extract::State;
use threadkeep::core::limits::PAGE;
use threadkeep::{ThreadOrder, ThreadQuery};

use super::ConversationJson;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::openai::conversation_items::list::{PageQuery, page_response};
use crate::openai::ids;
use crate::openai::items::Item;
use crate::output::encode_json;
use crate::security::Caller;

/// The maximum number of conversations that can be listed.
const MAX_CONVERSATIONS: usize = 10_000;

/// Lists conversations, by default newest first
///
/// OpenAI's API has no such list, but some compatible servers do. Callers with more than 10,000 threads use `GET /v1/threads`.
#[utoipa::path(
    get,
    path = "/v1/conversations",
    operation_id = "list_conversations",
    tag = "openai",
    params(
        ("after" = Option<String>, Query, description = "The `last_id` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 100; default 20"),
        ("order" = Option<String>, Query, description = "`desc` (default) or `asc`"),
        (
            "metadata" = Option<HashMap<String, String>>, Query, style = DeepObject, explode,
            description = "Only conversations with these values in their metadata, as `metadata[key]=value`; at most 8"
        )
    ),
    responses((status = 200, description = "A page of conversations.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let query = PageQuery::read(&mut params)?;
    let metadata = params.take_metadata()?;
    params.finish()?;
    let mut threads = ThreadQuery { metadata, ..ThreadQuery::new(ThreadOrder::Created, PAGE) };
    let mut found = Vec::new();
    loop {
        let page = app.memory().list_threads(&caller.scope, &threads).await?;
        for thread in page.threads.into_iter().filter(|thread| !thread.is_ephemeral()) {
            let id = ids::conversation_id(thread.id);
            let json = encode_json(&ConversationJson::from(thread))?;
            found.push(Item { id, json: String::from_utf8_lossy(&json).into_owned() });
        }
        if found.len() > MAX_CONVERSATIONS {
            let message =
                format!("There are more than {MAX_CONVERSATIONS} conversations; list them with GET /v1/threads.");
            return Err(ApiError::invalid("after", message).code("limit_exceeded"));
        }
        threads.after = page.next;
        if threads.after.is_none() {
            return page_response(found, &query);
        }
    }
}
