use axum::extract::State;
use threadkeep::Value;

use super::{SHELF, Stored};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::Params;
use crate::openai::conversation_items::list::{PageQuery, page_of};
use crate::openai::items::Item;
use crate::security::Caller;

/// Completions that are read at once.
const READ: usize = 100;
/// Completions that are found at most.
const MOST: usize = 10_000;

/// Lists stored completions, oldest first unless asked otherwise
#[utoipa::path(
    get,
    path = "/v1/chat/completions",
    tag = "openai",
    params(
        ("after" = Option<String>, Query, description = "The `last_id` of the page before"),
        ("limit" = Option<u32>, Query, description = "1 to 100; default 20"),
        ("order" = Option<String>, Query, description = "`asc` (default) or `desc`"),
        ("model" = Option<String>, Query)
    ),
    responses((status = 200, description = "A page of completions.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: Params) -> Result {
    let query = PageQuery::read_ascending(&mut params)?;
    let wanted = Wanted { model: params.take("model")?, metadata: metadata(params)? };
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let (page, next) = SHELF.list::<Stored>(&app, &caller.scope, after, READ).await?;
        for (id, stored) in page {
            let told = stored.told()?;
            if wanted.takes(&told) {
                found.push(Item { id, json: told.to_string() });
            }
        }
        if found.len() > MOST {
            let message = format!("More than {MOST} completions are stored: name a model or metadata.");
            return Err(ApiError::invalid("model", message).code("limit_exceeded"));
        }
        if next.is_none() {
            return page_of(found, &query);
        }
        after = next;
    }
}

struct Wanted {
    model: Option<String>,
    metadata: Vec<(String, String)>,
}

impl Wanted {
    fn takes(&self, told: &Value) -> bool {
        self.model.as_ref().is_none_or(|model| told["model"] == *model)
            && self.metadata.iter().all(|(name, value)| told["metadata"][name] == *value)
    }
}

/// The pairs that a completion has to have: `metadata[name]=value`.
fn metadata(params: Params) -> Result<Vec<(String, String)>> {
    let pair = |(name, value): (String, Value)| {
        let name = name.strip_prefix("metadata[")?.strip_suffix(']')?.to_owned();
        Some((name, value.as_str()?.to_owned()))
    };
    Ok(params.into_texts()?.into_iter().filter_map(pair).collect())
}
