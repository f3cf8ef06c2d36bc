use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::{Method, Uri};
use serde::Serialize;
use threadkeep::JsonText;
use utoipa::ToSchema;

use super::assistant;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::Names;
use crate::output::json;
use crate::security::Caller;

/// What a user prefers, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserPreferencesJson {
    /// As they were set: a value may be JSON that few parsers read, such as a number of a thousand digits.
    #[schema(value_type = Object)]
    preferences: BTreeMap<String, JsonText>,
}

/// Tells what a user prefers
#[utoipa::path(
    get,
    path = "/preferences/{user}",
    tag = "compat",
    params(("user" = String, Path)),
    responses((status = 200, body = UserPreferencesJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn preferences(State(app): State<App>, caller: Caller, names: Names, head: (Method, Uri)) -> Result {
    let agent = assistant::find(&app, &names, head.0, head.1).await?;
    let scope = assistant::scope(&caller, Some(names.text("user")))?;
    let found = agent.memory().list_preferences(&scope).await?;
    let preferences = found.into_iter().map(|preference| (preference.key, preference.value)).collect();
    Ok(json(&UserPreferencesJson { preferences }))
}

/// Tells what a user of an assistant prefers
#[utoipa::path(
    get,
    path = "/{assistant}/preferences/{user}",
    tag = "compat",
    params(("assistant" = String, Path), ("user" = String, Path)),
    responses((status = 200, body = UserPreferencesJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn preferences_with(state: State<App>, caller: Caller, names: Names, head: (Method, Uri)) -> Result {
    preferences(state, caller, names, head).await
}
