use std::collections::HashMap;

use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep::{Draft, Message, MessageName, Scope, ThreadId};
use threadkeep_service::{Attempt, placed};
use utoipa::ToSchema;

use super::list_of;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, Names};
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

/// Adds items to a conversation, all or none
///
/// A repeated request counts once by its Idempotency-Key, or where the client says that it repeats itself and the items are
/// still the conversation's last; an item that came with its own id and is there already is not added again.
#[utoipa::path(
    post,
    path = "/v1/conversations/{id}/items",
    tag = "openai",
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = CreateItemsJson,
    responses((status = 200, description = "The items as they are kept.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    names: Names,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<CreateItemsJson>,
) -> Result {
    let (scope, id) = (&caller.scope, names.text("id"));
    let thread = ids::thread(id)?;
    let given = items::read_all(&body.items)?;
    let attempt = input::attempt(&headers, "items", &digest)?;
    let drafts = references::resolve(&app, scope, Some(thread), given).await?;
    let (messages, replayed) = add(&app, scope, thread, drafts, &attempt).await.map_err(ids::about(id))?;
    let items: Vec<_> = messages.iter().flat_map(items::items_of).collect();
    Ok(with_replay(list_of(&items, false), replayed))
}

/// Adds what is not there already. Gives the messages in the order of the drafts.
async fn add(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    drafts: Vec<Draft>,
    attempt: &Attempt,
) -> Result<(Vec<Message>, bool)> {
    let appended = match attempt.append(app, scope, thread, drafts.clone(), None).await {
        Ok(appended) => appended,
        Err(error) if matches!(error.code, "message_id_taken" | "external_id_taken") => {
            return add_rest(app, scope, thread, drafts, attempt, error.into()).await;
        }
        Err(error) => return Err(error.into()),
    };
    Ok((placed(app, scope, thread, &appended).await?, appended.replayed))
}

async fn add_rest(
    app: &App,
    scope: &Scope,
    thread: ThreadId,
    drafts: Vec<Draft>,
    attempt: &Attempt,
    refusal: ApiError,
) -> Result<(Vec<Message>, bool)> {
    let name = |draft: &Draft| {
        let external = draft.external_id.clone().map(MessageName::External);
        draft.id.map(MessageName::Id).or(external)
    };
    let wanted: Vec<_> = drafts.iter().filter_map(name).collect();
    let found = app.memory().find_messages(scope, thread, &wanted).await?;
    let is_draft = |draft: &Draft, message: &Message| {
        draft.id == Some(message.id) || (draft.external_id.is_some() && draft.external_id == message.external_id)
    };
    let mut there: HashMap<usize, Message> = HashMap::new();
    let mut rest = Vec::new();
    for (index, draft) in drafts.iter().enumerate() {
        match found.iter().find(|message| is_draft(draft, message)) {
            None => rest.push(draft.clone()),
            Some(message) if message.content == draft.content => {
                there.insert(index, message.clone());
            }
            // It says something else under a name that is taken.
            Some(_) => return Err(refusal),
        }
    }
    if there.is_empty() {
        return Err(refusal);
    }
    let appended = attempt.append(app, scope, thread, rest, None).await?;
    let mut added = placed(app, scope, thread, &appended).await?.into_iter();
    let messages = (0..drafts.len()).filter_map(|index| there.remove(&index).or_else(|| added.next()));
    Ok((messages.collect(), true))
}
