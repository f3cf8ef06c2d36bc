use axum::extract::State;
use serde::Deserialize;
use threadkeep_service::webhooks::WebhookPatch;
use utoipa::ToSchema;

use super::{WebhookJson, managed_scope};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::output::json;
use crate::security::Caller;

/// The fields to change. Omitted fields keep their values.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct UpdateWebhookJson {
    #[schema(min_length = 1, max_length = 2000)]
    url: Option<String>,
    /// The names of the events to send; empty for all.
    events: Option<Vec<String>>,
    #[schema(max_length = 500)]
    description: Option<String>,
    /// Whether events are sent. Otherwise they are held for up to seven days.
    enabled: Option<bool>,
}

/// Changes a webhook
#[utoipa::path(
    patch,
    path = "/v1/webhooks/{webhook}",
    operation_id = "update_webhook",
    tag = "webhooks",
    params(("webhook" = String, Path, description = "The id of a webhook")),
    request_body = UpdateWebhookJson,
    responses((status = 200, body = WebhookJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn update(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    JsonBody { value: body, .. }: JsonBody<UpdateWebhookJson>,
) -> Result {
    let UpdateWebhookJson { url, events, description, enabled } = body;
    let patch = WebhookPatch { url, events, description, is_enabled: enabled };
    let webhook = app.webhooks().update(managed_scope(&caller)?, path_params.get("webhook"), patch).await?;
    Ok(json(&WebhookJson::from(webhook)))
}
