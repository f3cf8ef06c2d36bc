use axum::extract::State;
use serde::Deserialize;
use threadkeep::JsonText;
use utoipa::ToSchema;

use super::{PreferenceJson, require_user};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::output::json;
use crate::security::Caller;

/// The new value of a preference.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetJson {
    #[schema(value_type = Value)]
    value: JsonText,
}

/// Sets a preference
#[utoipa::path(
    put,
    path = "/v1/preferences/{key}",
    operation_id = "set_preference",
    tag = "preferences",
    params(("key" = String, Path)),
    request_body = SetJson,
    responses((status = 200, body = PreferenceJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    JsonBody { value: body, .. }: JsonBody<SetJson>,
) -> Result {
    require_user(&caller.scope)?;
    let key = path_params.get("key").to_owned();
    app.memory().set_preference(&caller.scope, &key, &body.value).await?;
    Ok(json(&PreferenceJson { key, value: body.value }))
}
