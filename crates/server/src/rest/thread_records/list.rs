use axum::extract::State;
use threadkeep::RecordOwner;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::rest::records::{RecordsJson, list::respond_with_page, read_namespace};
use crate::security::Caller;

/// Lists the records of a thread, ordered by key
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/records/{namespace}",
    operation_id = "list_thread_records",
    tag = "records",
    params(
        ("id" = String, Path),
        ("namespace" = String, Path),
        ("prefix" = Option<String>, Query),
        ("after" = Option<String>, Query),
        ("limit" = Option<u32>, Query)
    ),
    responses((status = 200, body = RecordsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    params: QueryParams,
) -> Result {
    let thread = path_params.thread(&app, &caller.scope).await?;
    app.memory().get_thread(&caller.scope, thread).await?;
    respond_with_page(&app, &caller.scope, RecordOwner::Thread(thread), read_namespace(&path_params)?, params).await
}
