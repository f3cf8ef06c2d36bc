use axum::extract::State;

use super::{KeyJson, managed_tenant};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// Revokes a key of the caller's tenant
///
/// Takes effect with the next request; streams that were opened with the key end. A revoked key stays in the list.
#[utoipa::path(
    delete,
    path = "/v1/keys/{key}",
    operation_id = "revoke_key",
    tag = "keys",
    params(("key" = String, Path, description = "The id of a key")),
    responses((status = 200, body = KeyJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn revoke(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let revoked = app.keys().revoke(managed_tenant(&caller)?, path_params.get("key")).await;
    Ok(json(&KeyJson::from(revoked.map_err(threadkeep_service::Error::from)?)))
}
