use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::security::Caller;

/// Deletes a thread with all its data
#[utoipa::path(
    delete,
    path = "/v1/threads/{id}",
    operation_id = "delete_thread",
    tag = "threads",
    params(("id" = String, Path)),
    responses((status = 204, description = "The thread was deleted."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
) -> Result {
    if headers.contains_key(header::IF_MATCH) {
        // Stores have no conditional deletion, and checking before deleting would not be atomic.
        return Err(ApiError::invalid("If-Match", "conditional deletion of a thread is not supported"));
    }
    app.memory().delete_thread(&caller.scope, path_params.thread(&app, &caller.scope).await?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
