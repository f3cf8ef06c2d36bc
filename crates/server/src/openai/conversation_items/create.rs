use std::collections::HashMap;

use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep::{Draft, Message, MessageRef, Scope, ThreadId};
use threadkeep_service::{RequestIdentity, appended_messages};
use utoipa::ToSchema;

use super::list_response;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, PathParams};
use crate::openai::{ids, items, references};
use crate::output::with_replay;
use crate::security::Caller;

/// Items to add.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CreateItemsJson {
    /// At most 500 items.
    #[schema(value_type = Vec<Object>)]
    items: Vec<Box<RawValue>>,
}

/// Adds items to a conversation
///
/// If an item cannot be added, none is. A repeated request does not add the items again if it has the same Idempotency-Key, or if
/// the client marks it as a retry and the items are still the last ones of the conversation. An item whose id already exists is not
/// added again.
#[utoipa::path(
    post,
    path = "/v1/conversations/{id}/items",
    operation_id = "create_conversation_items",
    tag = "openai",
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = CreateItemsJson,
    responses((status = 200, description = "The stored items.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<CreateItemsJson>,
) -> Result {
    let (scope, id) = (&caller.scope, path_params.get("id"));
    let thread = ids::find_conversation(&app, scope, id).await?;
    let items = items::read_all(&body.items)?;
    let identity = input::read_identity(&headers, "items", &digest)?;
    let drafts = references::resolve_all(&app, scope, Some(thread), items).await?;
    let (messages, replayed) = add(&app, scope, thread, drafts, &identity).await.map_err(ids::not_found_as(id))?;
    let items: Vec<_> = messages.iter().flat_map(items::items_of).collect();
    Ok(with_replay(list_response(&items, false), replayed))
}

/// Adds the items that do not exist yet. Returns the messages in the order of the drafts, and whether the response must be marked
/// as a replay.
async fn add(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    drafts: Vec<Draft>,
    identity: &RequestIdentity,
) -> Result<(Vec<Message>, bool)> {
    let appended = match identity.append(app, scope, thread, drafts.clone(), None).await {
        Ok(appended) => appended,
        Err(error) if matches!(error.code, "message_id_taken" | "external_id_taken") => {
            return add_missing(app, scope, thread, drafts, identity, error.into()).await;
        }
        Err(error) => return Err(error.into()),
    };
    Ok((appended_messages(app, scope, thread, &appended).await?, appended.replayed))
}

/// Adds the items that do not exist yet, after an attempt to add all of them failed with `conflict` because some exist.
async fn add_missing(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    drafts: Vec<Draft>,
    identity: &RequestIdentity,
    conflict: ApiError,
) -> Result<(Vec<Message>, bool)> {
    let reference = |draft: &Draft| {
        let external = draft.external_id.clone().map(MessageRef::External);
        draft.id.map(MessageRef::Id).or(external)
    };
    let requested: Vec<_> = drafts.iter().filter_map(reference).collect();
    let found = app.memory().find_messages(scope, thread, &requested).await?;
    let has_same_id = |draft: &Draft, message: &Message| {
        draft.id == Some(message.id) || (draft.external_id.is_some() && draft.external_id == message.external_id)
    };
    let mut existing: HashMap<usize, Message> = HashMap::new();
    let mut missing = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        match found.iter().find(|message| has_same_id(draft, message)) {
            None => missing.push(draft.clone()),
            Some(message) if message.content == draft.content => {
                existing.insert(index, message.clone());
            }
            // The conversation has an item with the same id but different content.
            Some(_) => return Err(conflict),
        }
    }
    if existing.is_empty() {
        return Err(conflict);
    }
    let appended = identity.append(app, scope, thread, missing, None).await?;
    let mut added = appended_messages(app, scope, thread, &appended).await?.into_iter();
    let messages = (0..drafts.len()).filter_map(|index| existing.remove(&index).or_else(|| added.next()));
    Ok((messages.collect(), true))
}
