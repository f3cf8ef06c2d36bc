use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use threadkeep::core::RecordWrite;

use super::put::condition_error;
use super::{read_namespace, take_owner};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams, if_match};
use crate::security::Caller;

/// Deletes a record
#[utoipa::path(
    delete,
    path = "/v1/records/{namespace}/{key}",
    operation_id = "delete_record",
    tag = "records",
    params(
        ("namespace" = String, Path),
        ("key" = String, Path),
        ("owner" = Option<String>, Query),
        ("If-Match" = Option<String>, Header)
    ),
    responses((status = 204, description = "The record was deleted."), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
    headers: HeaderMap,
) -> Result {
    let owner = take_owner(&caller.scope, &mut params)?;
    params.finish()?;
    let (namespace, key) = (read_namespace(&path_params)?, path_params.get("key").to_owned());
    let (memory, scope) = (app.memory(), &caller.scope);
    let store = &memory.backend().store;
    // The store does not report a missing record, so its existence is checked first.
    if store.find_record(scope, &owner, &namespace, &key, memory.now()).await?.is_none() {
        return Err(ApiError::not_found("record"));
    }
    let expected = if_match(&headers)?.map(|expected| expected.number);
    let write = RecordWrite { owner, namespace, key, expected, value: None, expires_at: None };
    let deleted = store.write_record(scope, write, memory.now()).await;
    deleted.map_err(|error| condition_error(error.into(), &headers))?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
