use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use threadkeep_service::webhooks::WebhookPatch;
use utoipa::ToSchema;

use super::{NewWebhookJson, managed_scope};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::output::json_with;
use crate::security::Caller;

/// The webhook to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateWebhookJson {
    /// The endpoint: an `https` URL with a public address.
    #[schema(min_length = 1, max_length = 2000)]
    url: String,
    /// The names of the events to send: `created`, `appended`, `replaced`, `erased`, `trimmed`, `document`, `approval`, `turn`,
    /// `patched`, `deleted`. Default: all.
    #[serde(default)]
    events: Option<Vec<String>>,
    /// A description for people.
    #[serde(default)]
    #[schema(max_length = 500)]
    description: Option<String>,
}

/// Creates a webhook
///
/// From now on, the server sends the events of all threads of the caller to the endpoint: those of a user, or those of the whole
/// tenant (role `admin`). The response contains the secret, which cannot be read later.
#[utoipa::path(
    post,
    path = "/v1/webhooks",
    operation_id = "create_webhook",
    tag = "webhooks",
    request_body = CreateWebhookJson,
    responses((status = 201, body = NewWebhookJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<CreateWebhookJson>,
) -> Result {
    let CreateWebhookJson { url, events, description } = body;
    let patch = WebhookPatch { url: Some(url), events, description, is_enabled: None };
    let webhook = app.webhooks().create(managed_scope(&caller)?, patch).await?;
    Ok(json_with(StatusCode::CREATED, &NewWebhookJson::from(webhook)))
}
