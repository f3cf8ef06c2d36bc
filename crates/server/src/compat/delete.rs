use axum::extract::State;
use axum::http::{Method, StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use threadkeep::core::Kind;
use threadkeep::{MemoryError, StoreError};
use utoipa::ToSchema;

use super::{FailureJson, assistant, failure, parse_thread_id};
use crate::app::App;
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// The result of deleting a thread.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeletedJson {
    success: bool,
    message: &'static str,
    thread_id: String,
}

/// Deletes a thread with its messages
#[utoipa::path(
    delete,
    path = "/conversations/{threadId}",
    operation_id = "delete_history",
    tag = "compat",
    params(("threadId" = String, Path)),
    responses(
        (status = 200, body = DeletedJson),
        (status = 403, body = FailureJson, description = "The thread is shared; this caller may not delete it."),
        (status = 404, body = FailureJson),
        (status = 500, body = FailureJson)
    ),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, path_params: PathParams) -> Response {
    let thread_id = path_params.get("threadId").to_owned();
    let not_found = || failure(StatusCode::NOT_FOUND, "Thread not found");
    let Some(thread) = parse_thread_id(&thread_id) else { return not_found() };
    let scope = assistant::accessible_scope(&caller);
    let count = app.memory().find_thread(&scope, thread).await.ok().flatten().map(|thread| thread.message_count);
    match app.memory().delete_thread(&scope, thread).await {
        Ok(()) => {
            tracing::info!("🗑️ Deleted TFL thread: {thread}");
            tracing::info!("🗑️ Deleted thread {thread} with {} messages", count.unwrap_or_default());
            json(&DeletedJson { success: true, message: "Thread deleted successfully", thread_id })
        }
        Err(MemoryError::Store(StoreError::NotFound(Kind::Thread))) => not_found(),
        Err(MemoryError::Store(StoreError::Denied(_))) => failure(StatusCode::FORBIDDEN, "Thread is shared"),
        Err(error) => {
            tracing::error!("❌ Error deleting thread: {error}");
            failure(StatusCode::INTERNAL_SERVER_ERROR, "Failed to delete thread")
        }
    }
}

/// Deletes a thread with its messages, at the path of an assistant
#[utoipa::path(
    delete,
    path = "/{assistant}/conversations/{threadId}",
    operation_id = "delete_history_with_assistant",
    tag = "compat",
    params(("assistant" = String, Path), ("threadId" = String, Path)),
    responses(
        (status = 200, body = DeletedJson),
        (status = 403, body = FailureJson, description = "The thread is shared; this caller may not delete it."),
        (status = 404, body = FailureJson),
        (status = 500, body = FailureJson)
    ),
    security(("key" = []))
)]
pub(crate) async fn delete_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
) -> Response {
    match assistant::find(&state.0, &path_params, head.0, head.1).await {
        Ok(_) => delete(state, caller, path_params).await,
        Err(_) => failure(StatusCode::NOT_FOUND, "Assistant not found"),
    }
}
