use axum::extract::State;
use serde::Serialize;
use threadkeep_service::webhooks::{DeliveryQuery, DeliveryState};
use utoipa::ToSchema;

use super::{DeliveryJson, managed_scope};
use crate::app::App;
use crate::cursor;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::output::json;
use crate::security::Caller;

/// A page of deliveries: first the pending ones, then those that have ended, each newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeliveriesJson {
    data: Vec<DeliveryJson>,
    /// The value of `after` for the next page; null on the last page.
    next: Option<String>,
}

/// Lists the deliveries of a webhook
///
/// Deliveries are retained for seven days after they have ended. A page can have fewer deliveries than `limit`, even if it is not the
/// last one.
#[utoipa::path(
    get,
    path = "/v1/webhooks/{webhook}/deliveries",
    operation_id = "list_webhook_deliveries",
    tag = "webhooks",
    params(
        ("webhook" = String, Path, description = "The id of a webhook"),
        ("state" = Option<String>, Query, description = "`pending`, `delivered` or `failed`; default: all"),
        ("after" = Option<String>, Query),
        ("limit" = Option<u32>, Query)
    ),
    responses((status = 200, body = DeliveriesJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn deliveries(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result {
    let (scope, webhook) = (managed_scope(&caller)?, path_params.get("webhook"));
    let state = match params.take("state")?.as_deref() {
        None => None,
        Some("pending") => Some(DeliveryState::Pending),
        Some("delivered") => Some(DeliveryState::Delivered),
        Some("failed") => Some(DeliveryState::Failed),
        Some(_) => return Err(ApiError::invalid("state", "`state` must be one of pending, delivered, failed")),
    };
    let (limit, after) = (params.take_limit(100)?, params.take("after")?);
    params.finish()?;
    let list = format!("webhook {webhook} {state:?}");
    let after = after.map(|after| cursor::decode(scope, &list, "after", &after)).transpose()?;
    let page = app.webhooks().deliveries(scope, webhook, &DeliveryQuery { state, after, limit }).await?;
    let data = page.deliveries.into_iter().map(DeliveryJson::of).collect::<Result<_>>()?;
    let next = page.next.map(|next| cursor::encode(scope, &list, &next));
    Ok(json(&DeliveriesJson { data, next }))
}
