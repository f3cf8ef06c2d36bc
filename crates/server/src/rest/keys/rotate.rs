use axum::extract::State;

use super::{KeyJson, NewKeyJson, managed_tenant};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Replaces the secret of a key of the caller's tenant
///
/// The old secret becomes invalid immediately.
#[utoipa::path(
    post,
    path = "/v1/keys/{key}/rotate",
    operation_id = "rotate_key",
    tag = "keys",
    params(("key" = String, Path, description = "The id of a key")),
    responses((status = 200, body = NewKeyJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn rotate(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let rotated = app.keys().rotate(managed_tenant(&caller)?, path_params.get("key")).await;
    let (record, secret) = rotated.map_err(threadkeep_service::Error::from)?;
    Ok(json(&NewKeyJson { secret: secret.as_str().to_owned(), key: KeyJson::from(record) }))
}
