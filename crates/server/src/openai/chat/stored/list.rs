use axum::extract::State;
use threadkeep::Value;

use super::{STORE, StoredCompletion};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::openai::conversation_items::list::{PageQuery, page_response};
use crate::openai::items::Item;
use crate::security::Caller;

/// The number of completions read with one query.
const BATCH: usize = 100;
/// The maximum number of completions that may match.
const MAX_MATCHES: usize = 10_000;

/// Lists stored completions, by default oldest first
#[utoipa::path(
    get,
    path = "/v1/chat/completions",
    operation_id = "list_chat_completions",
    tag = "openai",
    params(
        ("after" = Option<String>, Query, description = "The `last_id` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 100; default 20"),
        ("order" = Option<String>, Query, description = "`asc` (default) or `desc`"),
        ("model" = Option<String>, Query)
    ),
    responses((status = 200, description = "A page of completions.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let query = PageQuery::read_ascending(&mut params)?;
    let filter = Filter { model: params.take("model")?, metadata: read_metadata_filter(params)? };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (page, next) = STORE.list::<StoredCompletion>(&app, &caller.scope, after, BATCH).await?;
        for (id, stored) in page {
            let completion = stored.to_json()?;
            if filter.matches(&completion) {
                found.push(Item { id, json: completion.to_string() });
            }
        }
        if found.len() > MAX_MATCHES {
            let message = format!("More than {MAX_MATCHES} stored completions match. Filter by model or metadata.");
            return Err(ApiError::invalid("model", message).code("limit_exceeded"));
        }
        if next.is_none() {
            return page_response(found, &query);
        }
        after = next;
    }
}

struct Filter {
    model: Option<String>,
    metadata: Vec<(String, String)>,
}

impl Filter {
    fn matches(&self, completion: &Value) -> bool {
        self.model.as_ref().is_none_or(|model| completion["model"] == *model)
            && self.metadata.iter().all(|(name, value)| completion["metadata"][name] == *value)
    }
}

/// Reads the metadata that a completion must have. Each pair is a parameter of the form `metadata[name]=value`.
fn read_metadata_filter(params: QueryParams) -> Result<Vec<(String, String)>> {
    let read_pair = |(name, value): (String, Value)| {
        let name = name.strip_prefix("metadata[")?.strip_suffix(']')?.to_owned();
        Some((name, value.as_str()?.to_owned()))
    };
    Ok(params.into_texts()?.into_iter().filter_map(read_pair).collect())
}
