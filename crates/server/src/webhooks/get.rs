use axum::extract::State;

use super::{WebhookJson, managed_scope};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Gets a webhook
#[utoipa::path(
    get,
    path = "/v1/webhooks/{webhook}",
    operation_id = "get_webhook",
    tag = "webhooks",
    params(("webhook" = String, Path, description = "The id of a webhook")),
    responses((status = 200, body = WebhookJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let webhook = app.webhooks().get(managed_scope(&caller)?, path_params.get("webhook")).await?;
    Ok(json(&WebhookJson::from(webhook)))
}
