use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;

use super::managed_scope;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::security::Caller;

/// Deletes a webhook with its deliveries
#[utoipa::path(
    delete,
    path = "/v1/webhooks/{webhook}",
    operation_id = "delete_webhook",
    tag = "webhooks",
    params(("webhook" = String, Path, description = "The id of a webhook")),
    responses((status = 204, description = "The webhook is deleted."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    app.webhooks().delete(managed_scope(&caller)?, path_params.get("webhook")).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
