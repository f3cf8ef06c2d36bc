use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::Names;
use crate::security::Caller;

/// Deletes a thread with all that belongs to it
#[utoipa::path(
    delete,
    path = "/v1/threads/{id}",
    tag = "threads",
    params(("id" = String, Path)),
    responses((status = 204, description = "It is gone."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, names: Names, headers: HeaderMap) -> Result {
    if headers.contains_key(header::IF_MATCH) {
        // No store deletes on a condition, and to look first and delete then would promise what does not hold.
        return Err(ApiError::invalid("If-Match", "a thread is not deleted on a condition"));
    }
    app.memory().delete_thread(&caller.scope, names.thread()?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
