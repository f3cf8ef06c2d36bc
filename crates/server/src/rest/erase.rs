use axum::extract::State;
use serde::Deserialize;
use threadkeep::{EraseOptions, SharedMessages, UserId};
use threadkeep_api::exchange::ErasedJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::output::json;
use crate::security::Caller;
use crate::security::KeyRole;

/// The user whose data to erase.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EraseJson {
    #[schema(min_length = 1)]
    user: String,
    /// Whether to erase the user's messages in shared threads as well. Requires a key of a whole tenant.
    #[serde(default)]
    shared_messages: bool,
}

/// Erases all data of a user
///
/// With a key or token of a user, the user can erase their own data. Everything else requires the role `admin`, including
/// requests on behalf of a user (`Threadkeep-User`).
#[utoipa::path(
    post,
    path = "/v1/erase",
    operation_id = "erase_user",
    tag = "exchange",
    request_body = EraseJson,
    responses((status = 200, body = ErasedJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn erase(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<EraseJson>,
) -> Result {
    let user = UserId::new(body.user)?;
    if !caller.is_user(&user) {
        caller.require(KeyRole::Admin)?;
    }
    let shared_messages = if body.shared_messages { SharedMessages::Erase } else { SharedMessages::Keep };
    erase_user(&app, &caller, &user, shared_messages).await
}

/// Erases all data of a user, and responds with the amounts.
pub(crate) async fn erase_user(app: &App, caller: &Caller, user: &UserId, shared_messages: SharedMessages) -> Result {
    let memory = app.memory();
    let report = memory.erase_user(&caller.scope, user, EraseOptions { shared_messages }).await?;
    tracing::info!(key = caller.key_id(), threads = report.threads, records = report.records, "a user was erased");
    let swept = memory.backend().maintenance.sweep(memory.now()).await.is_ok();
    Ok(json(&ErasedJson::of(&report, swept)))
}
