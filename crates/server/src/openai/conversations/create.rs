use axum::extract::State;
use axum::http::HeaderMap;
use serde::Deserialize;
use serde_json::value::RawValue;
use threadkeep::core::OpenThread;
use threadkeep::{AppendOptions, Map};
use utoipa::ToSchema;

use super::{ConversationJson, check_metadata};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{self, JsonBody};
use crate::openai::{items, references};
use crate::output::json;
use crate::security::Caller;

/// The initial items and metadata of a conversation.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct CreateJson {
    /// At most 500 items.
    #[serde(default)]
    #[schema(value_type = Option<Vec<Object>>)]
    items: Option<Vec<Box<RawValue>>>,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
}

/// Creates a conversation
///
/// A repeated request creates another conversation, unless it has the same Idempotency-Key.
#[utoipa::path(
    post,
    path = "/v1/conversations",
    operation_id = "create_conversation",
    tag = "openai",
    params(("Idempotency-Key" = Option<String>, Header)),
    request_body = CreateJson,
    responses((status = 200, body = ConversationJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<CreateJson>,
) -> Result {
    let scope = &caller.scope;
    let identity = input::read_identity(&headers, "conversations", &digest)?;
    let items = items::read_all(&body.items.unwrap_or_default())?;
    let drafts = references::resolve_all(&app, scope, None, items).await?;
    // The items are checked before the thread is created, because an invalid item must not leave an empty thread behind.
    AppendOptions::default().check(&drafts)?;
    let id = identity.thread_id(&app, scope);
    let open = OpenThread { metadata: check_metadata(body.metadata)?, ..OpenThread::new(scope, id) };
    let opened = app.memory().open_thread(scope, open).await?;
    identity.record_creation(&app, scope, id).await?;
    if !drafts.is_empty() {
        identity.append(&app, scope, id, drafts, None).await?;
    }
    Ok(json(&ConversationJson::from(opened.thread)))
}
