use axum::extract::State;
use threadkeep::JsonText;

use super::{PreferenceJson, require_user};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Gets a preference
#[utoipa::path(
    get,
    path = "/v1/preferences/{key}",
    operation_id = "get_preference",
    tag = "preferences",
    params(("key" = String, Path)),
    responses((status = 200, body = PreferenceJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    require_user(&caller.scope)?;
    let key = path_params.get("key").to_owned();
    let found: Option<JsonText> = app.memory().preference(&caller.scope, &key).await?;
    let value = found.ok_or_else(|| ApiError::not_found("preference"))?;
    Ok(json(&PreferenceJson { key, value }))
}
