use axum::extract::State;
use axum::http::HeaderMap;
use threadkeep::RecordName;
use threadkeep::core::{PutRecord, RecordState};

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams};
use crate::output::{json, with_etag};
use crate::rest::records::put::{PutJson, WrittenJson, condition_error, expected_version};
use crate::rest::records::read_namespace;
use crate::security::Caller;

/// Writes a record of a thread
#[utoipa::path(
    put,
    path = "/v1/threads/{id}/records/{namespace}/{key}",
    operation_id = "put_thread_record",
    tag = "records",
    params(
        ("id" = String, Path),
        ("namespace" = String, Path),
        ("key" = String, Path),
        ("If-Match" = Option<String>, Header, description = "The record's ETag"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: the record must not exist")
    ),
    request_body = PutJson,
    responses((status = 200, body = WrittenJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn put(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, .. }: JsonBody<PutJson>,
) -> Result {
    let thread = path_params.thread(&app, &caller.scope).await?;
    let name = RecordName { namespace: read_namespace(&path_params)?, key: path_params.get("key").to_owned() };
    let mut batch = app.memory().batch();
    if let Some(version) = expected_version(&headers)? {
        let state = if version.number == 0 { RecordState::Absent } else { RecordState::Version(version) };
        batch = batch.require(name.clone(), state);
    }
    let put = PutRecord { name, value: body.value, expires_at: body.expires_at };
    // The version of a thread's record is the number of the change that wrote the record.
    let written = batch.put(put).commit(&caller.scope, thread).await;
    let written = written.map_err(|error| condition_error(error.into(), &headers))?.tagged();
    Ok(with_etag(json(&WrittenJson { version: written.number }), written))
}
