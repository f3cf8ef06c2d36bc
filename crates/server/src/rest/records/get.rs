use axum::extract::State;
use threadkeep::{Namespace, RecordOwner, Scope};

use super::{RecordJson, read_namespace, take_owner};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::output::{json, with_etag};
use crate::security::Caller;

/// Gets a record
#[utoipa::path(
    get,
    path = "/v1/records/{namespace}/{key}",
    operation_id = "get_record",
    tag = "records",
    params(("namespace" = String, Path), ("key" = String, Path), ("owner" = Option<String>, Query)),
    responses((status = 200, body = RecordJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result {
    let owner = take_owner(&caller.scope, &mut params)?;
    params.finish()?;
    respond_with_record(&app, &caller.scope, &owner, &read_namespace(&path_params)?, path_params.get("key")).await
}

/// Responds with a record of any owner: a user, the tenant or a thread.
pub(crate) async fn respond_with_record(
    app: &App,
    scope: &Scope,
    owner: &RecordOwner,
    namespace: &Namespace,
    key: &str,
) -> Result {
    let memory = app.memory();
    let found = memory.backend().store.find_record(scope, owner, namespace, key, memory.now()).await?;
    let record = found.ok_or_else(|| ApiError::not_found("record"))?;
    let version = record.tagged();
    Ok(with_etag(json(&RecordJson::from(record)), version))
}
