use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use threadkeep::core::RecordState;
use threadkeep::{RecordName, RecordOwner};

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, if_match};
use crate::rest::records::put::condition_error;
use crate::rest::records::read_namespace;
use crate::security::Caller;

/// Deletes a record of a thread
#[utoipa::path(
    delete,
    path = "/v1/threads/{id}/records/{namespace}/{key}",
    operation_id = "delete_thread_record",
    tag = "records",
    params(
        ("id" = String, Path),
        ("namespace" = String, Path),
        ("key" = String, Path),
        ("If-Match" = Option<String>, Header)
    ),
    responses((status = 204, description = "The record was deleted."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
) -> Result {
    let (scope, memory, thread) = (&caller.scope, app.memory(), path_params.thread(&app, &caller.scope).await?);
    let (namespace, key) = (read_namespace(&path_params)?, path_params.get("key").to_owned());
    let owner = RecordOwner::Thread(thread);
    let found = memory.backend().store.find_record(scope, &owner, &namespace, &key, memory.now()).await?;
    let record = found.ok_or_else(|| ApiError::not_found("record"))?;
    let name = RecordName { namespace, key };
    let version = if_match(&headers)?.unwrap_or(record.tagged());
    let batch = memory.batch().require(name.clone(), RecordState::Version(version)).delete(name);
    batch.commit(scope, thread).await.map_err(|error| condition_error(error.into(), &headers))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
