use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{KeyJson, managed_tenant};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::output::json;
use crate::security::Caller;

/// The keys of a tenant, oldest first, including revoked ones.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KeysJson {
    data: Vec<KeyJson>,
}

/// Lists the keys of the caller's tenant
#[utoipa::path(
    get,
    path = "/v1/keys",
    operation_id = "list_keys",
    tag = "keys",
    responses((status = 200, body = KeysJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller) -> Result {
    let listed = app.keys().list(Some(managed_tenant(&caller)?)).await.map_err(threadkeep_service::Error::from);
    Ok(json(&KeysJson { data: listed?.into_iter().map(Into::into).collect() }))
}
