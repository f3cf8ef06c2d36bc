use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{Method, Uri};
use serde::Serialize;
use threadkeep::JsonText;
use utoipa::ToSchema;

use super::assistant;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// The preferences of a user, by their keys.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserPreferencesJson {
    /// The values are returned exactly as they were stored, because few parsers can read every JSON value, such as a number with a
    /// thousand digits.
    #[schema(value_type = Object)]
    preferences: BTreeMap<String, JsonText>,
}

/// Returns the preferences of a user
#[utoipa::path(
    get,
    path = "/preferences/{user}",
    operation_id = "get_user_preferences",
    tag = "compat",
    params(("user" = String, Path)),
    responses((status = 200, body = UserPreferencesJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn preferences(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
) -> Result {
    let agent = assistant::find(&app, &path_params, head.0, head.1).await?;
    let scope = assistant::scope(&caller, Some(path_params.get("user")))?;
    let found = agent.memory().list_preferences(&scope).await?;
    let preferences = found.into_iter().map(|preference| (preference.key, preference.value)).collect();
    Ok(json(&UserPreferencesJson { preferences }))
}

/// Returns the preferences of a user, at the path of an assistant
#[utoipa::path(
    get,
    path = "/{assistant}/preferences/{user}",
    operation_id = "get_user_preferences_with_assistant",
    tag = "compat",
    params(("assistant" = String, Path), ("user" = String, Path)),
    responses((status = 200, body = UserPreferencesJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn preferences_with(
    state: State<App>,
    caller: Caller,
    path_params: PathParams,
    head: (Method, Uri),
) -> Result {
    preferences(state, caller, path_params, head).await
}
