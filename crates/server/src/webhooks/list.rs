use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{WebhookJson, managed_scope};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::output::json;
use crate::security::Caller;

/// The webhooks of a user or of a tenant, oldest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WebhooksJson {
    data: Vec<WebhookJson>,
}

/// Lists the caller's webhooks
#[utoipa::path(
    get,
    path = "/v1/webhooks",
    operation_id = "list_webhooks",
    tag = "webhooks",
    responses((status = 200, body = WebhooksJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result {
    let webhooks = app.webhooks().list(managed_scope(&caller)?).await?;
    Ok(json(&WebhooksJson { data: webhooks.into_iter().map(Into::into).collect() }))
}
