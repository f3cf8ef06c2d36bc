use axum::extract::State;
use axum::http::StatusCode;

use super::{DeliveryJson, managed_scope};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json_with;
use crate::security::Caller;

/// Sends an event again
///
/// The event has the same id. Its content is read again, so erased messages are missing.
#[utoipa::path(
    post,
    path = "/v1/webhooks/{webhook}/deliveries/{event}/replay",
    operation_id = "replay_webhook_event",
    tag = "webhooks",
    params(
        ("webhook" = String, Path, description = "The id of a webhook"),
        ("event" = String, Path, description = "The id of an event")
    ),
    responses((status = 202, body = DeliveryJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn replay(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let (webhook, event) = (path_params.get("webhook"), path_params.get("event"));
    let delivery = app.webhooks().replay(managed_scope(&caller)?, webhook, event).await?;
    Ok(json_with(StatusCode::ACCEPTED, &DeliveryJson::of(delivery)?))
}
