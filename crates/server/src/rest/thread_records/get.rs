use axum::extract::State;
use threadkeep::RecordOwner;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::rest::records::{RecordJson, get::respond_with_record, read_namespace};
use crate::security::Caller;

/// Gets a record of a thread
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/records/{namespace}/{key}",
    operation_id = "get_thread_record",
    tag = "records",
    params(("id" = String, Path), ("namespace" = String, Path), ("key" = String, Path)),
    responses((status = 200, body = RecordJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let owner = RecordOwner::Thread(path_params.thread(&app, &caller.scope).await?);
    respond_with_record(&app, &caller.scope, &owner, &read_namespace(&path_params)?, path_params.get("key")).await
}
