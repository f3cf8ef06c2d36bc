use axum::extract::State;

use super::{NewWebhookJson, managed_scope};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Replaces the secret of a webhook
///
/// For a day, deliveries are also signed with the previous secret.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{webhook}/rotate",
    operation_id = "rotate_webhook_secret",
    tag = "webhooks",
    params(("webhook" = String, Path, description = "The id of a webhook")),
    responses((status = 200, body = NewWebhookJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn rotate(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let webhook = app.webhooks().rotate(managed_scope(&caller)?, path_params.get("webhook")).await?;
    Ok(json(&NewWebhookJson::from(webhook)))
}
