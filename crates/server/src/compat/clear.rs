use axum::extract::State;
use axum::http::{Method, Uri};
use serde::{Deserialize, Serialize};
use threadkeep::core::{StoreExt, ThreadRef};
use threadkeep::{MemoryError, StoreError};
use utoipa::ToSchema;

use super::assistant;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::output::json;
use crate::security::Caller;

/// A request to clear a conversation.
#[derive(Debug, Deserialize, ToSchema)]
pub(crate) struct ClearJson {
    #[serde(default)]
    user_id: Option<String>,
}

/// The result of clearing a conversation, after which the history is empty.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClearedJson {
    success: bool,
}

/// Clears a user's history with the server's assistant, if there is only one
#[utoipa::path(
    post,
    path = "/clear",
    operation_id = "clear_history",
    tag = "compat",
    request_body = ClearJson,
    responses((status = 200, body = ClearedJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn clear(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    JsonBody { value: body, .. }: JsonBody<ClearJson>,
) -> Result {
    let agent = assistant::find(&app, &path_params, head.0, head.1).await?;
    let scope = assistant::scope(&caller, body.user_id.as_deref())?;
    let (memory, name) = (agent.memory(), ThreadRef::Key(scope.default_owner(), assistant::thread_key(&agent)?));
    let found = memory.backend().store.find_thread(&scope, &name, memory.now()).await?;
    if let Some(thread) = found {
        match memory.delete_thread(&scope, thread.id).await {
            // Another request may have deleted the thread first.
            Ok(()) | Err(MemoryError::Store(StoreError::NotFound(_))) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(json(&ClearedJson { success: true }))
}

/// Clears a user's history with an assistant
#[utoipa::path(
    post,
    path = "/{assistant}/clear",
    operation_id = "clear_history_with_assistant",
    tag = "compat",
    params(("assistant" = String, Path)),
    request_body = ClearJson,
    responses((status = 200, body = ClearedJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn clear_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
    body: JsonBody<ClearJson>,
) -> Result {
    clear(state, caller, path_params, head, body).await
}
