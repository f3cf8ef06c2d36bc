use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{PreferenceJson, require_user};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::output::json;
use crate::security::Caller;

/// The preferences of a user, ordered by key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreferencesJson {
    data: Vec<PreferenceJson>,
}

/// Lists the preferences of the user
#[utoipa::path(
    get,
    path = "/v1/preferences",
    operation_id = "list_preferences",
    tag = "preferences",
    responses((status = 200, body = PreferencesJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result {
    require_user(&caller.scope)?;
    let preferences = app.memory().list_preferences(&caller.scope).await?.into_iter();
    let data = preferences.map(|preference| PreferenceJson { key: preference.key, value: preference.value });
    Ok(json(&PreferencesJson { data: data.collect() }))
}
