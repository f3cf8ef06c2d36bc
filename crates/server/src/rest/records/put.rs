use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use serde::{Deserialize, Serialize};
use threadkeep::core::{RecordWrite, TaggedNumber};
use threadkeep::{JsonText, Timestamp};
use utoipa::ToSchema;

use super::{read_namespace, take_owner};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams, QueryParams, if_match};
use crate::output::{json, with_etag};
use crate::security::Caller;

/// The new value of a record.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutJson {
    /// Any JSON value. It is returned byte for byte.
    #[schema(value_type = Value)]
    pub(crate) value: JsonText,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) expires_at: Option<Timestamp>,
}

/// The new version of a record.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WrittenJson {
    pub(crate) version: u64,
}

/// Writes a record
///
/// Replaces any existing value, unless a header sets a condition.
#[utoipa::path(
    put,
    path = "/v1/records/{namespace}/{key}",
    operation_id = "put_record",
    tag = "records",
    params(
        ("namespace" = String, Path),
        ("key" = String, Path),
        ("owner" = Option<String>, Query),
        ("If-Match" = Option<String>, Header, description = "The ETag that the record must have"),
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
    mut params: QueryParams,
    headers: HeaderMap,
    JsonBody { value: body, .. }: JsonBody<PutJson>,
) -> Result {
    let owner = take_owner(&caller.scope, &mut params)?;
    params.finish()?;
    let (namespace, key) = (read_namespace(&path_params)?, path_params.get("key").to_owned());
    let expected = expected_version(&headers)?.map(|expected| expected.number);
    let (value, expires_at) = (Some(body.value), body.expires_at);
    let write = RecordWrite { owner, namespace, key, expected, value, expires_at };
    let memory = app.memory();
    let written = memory.backend().store.write_record(&caller.scope, write, memory.now()).await;
    let written = written.map_err(|error| condition_error(error.into(), &headers))?;
    Ok(with_etag(json(&WrittenJson { version: written.version }), written.tagged()))
}

/// Converts the error of an unmet condition into one that names the header. Other errors are returned unchanged.
pub(crate) fn condition_error(error: ApiError, headers: &HeaderMap) -> ApiError {
    if error.status != StatusCode::PRECONDITION_FAILED {
        return error;
    }
    let (param, message) = if headers.contains_key(header::IF_NONE_MATCH) {
        ("If-None-Match", "the record already exists")
    } else if error.headers.iter().any(|(name, value)| name == header::ETAG && value != "\"0\"") {
        ("If-Match", "the record has a different version; the response's ETag is the current one")
    } else {
        ("If-Match", "the record does not exist")
    };
    ApiError { message: message.to_owned(), ..error }.param(param)
}

/// Reads the version that a record must have from the headers. The version is 0 if the record must not exist. Returns `None`
/// without a condition.
pub(crate) fn expected_version(headers: &HeaderMap) -> Result<Option<TaggedNumber>> {
    let Some(value) = headers.get(header::IF_NONE_MATCH) else {
        if headers.get(header::IF_MATCH).is_some_and(|value| value == "*") {
            // Stores cannot check that a record exists regardless of its version.
            return Err(ApiError::invalid("If-Match", "`*` is not supported; send the record's ETag"));
        }
        return if_match(headers);
    };
    if headers.contains_key(header::IF_MATCH) {
        return Err(ApiError::invalid("If-Match", "`If-Match` and `If-None-Match` are mutually exclusive"));
    }
    if value == "*" {
        return Ok(Some(TaggedNumber::default()));
    }
    Err(ApiError::invalid("If-None-Match", "only `*` is supported"))
}
