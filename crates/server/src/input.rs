//! Reads and validates the parts of a request: path parameters, query, headers and body.

mod body;
mod path_params;
mod query_params;

pub(crate) use body::read_body;
pub use body::{FormBody, JsonBody, RawBody};
pub(crate) use path_params::PathParams;
pub(crate) use query_params::QueryParams;
pub(crate) use threadkeep_api::whole_number::{optional_whole_number, whole_number};

use axum::http::HeaderMap;
use threadkeep::core::TaggedNumber;
use threadkeep::{Expected, Map, MetadataFilter};
use threadkeep_service::RequestIdentity;

use crate::error::ApiError;
use crate::output::parse_etag;

/// Maximum length of an `Idempotency-Key` in bytes. The store's limit is larger, because the server adds a prefix.
const MAX_IDEMPOTENCY_KEY_BYTES: usize = 255;

/// Reads the data by which retries of a request are recognised: the `Idempotency-Key` and the number of earlier attempts from the
/// headers, the name of the API, and the digest of the request.
///
/// # Errors
/// `invalid_request` if the `Idempotency-Key` is invalid.
pub fn read_identity(headers: &HeaderMap, api: &str, digest: &str) -> Result<RequestIdentity, ApiError> {
    Ok(RequestIdentity::new(api, idempotency_key(headers)?, digest, retry_count(headers)))
}

/// Reads the `Idempotency-Key` of a request; `None` if the header is missing.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| !key.is_empty() && key.len() <= MAX_IDEMPOTENCY_KEY_BYTES);
    let key = key.ok_or_else(|| {
        let message =
            format!("an Idempotency-Key must consist of 1 to {MAX_IDEMPOTENCY_KEY_BYTES} visible ASCII characters");
        ApiError::invalid("Idempotency-Key", message)
    })?;
    Ok(Some(key.to_owned()))
}

/// Reads `If-Match`: the number of the change or version that the resource must have. Returns `None` for `*`, or if the
/// header is missing.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<TaggedNumber>, ApiError> {
    let Some(value) = headers.get("if-match") else { return Ok(None) };
    let tag = value.to_str().unwrap_or_default();
    if tag.trim() == "*" {
        return Ok(None);
    }
    let number = parse_etag(tag)
        .ok_or_else(|| ApiError::invalid("If-Match", "`If-Match` must be one ETag that this server returned"))?;
    Ok(Some(number))
}

/// Reads `If-Match` as the condition of a commit.
pub(crate) fn expected_change(headers: &HeaderMap) -> Result<Option<Expected>, ApiError> {
    Ok(if_match(headers)?.map(Expected::Change))
}

/// Reads a filter on metadata in a body: each field of `values` is a condition. Errors name the parameter `param`.
pub(crate) fn metadata_filter(param: &str, values: Option<&Map>) -> Result<MetadataFilter, ApiError> {
    let filter = values.map(MetadataFilter::from_map).transpose();
    Ok(filter.map_err(|error| ApiError::from(error).param(param))?.unwrap_or_default())
}

/// Reads the number of earlier attempts of this request, which OpenAI's SDKs report in a header. Returns 0 if the
/// header is missing.
fn retry_count(headers: &HeaderMap) -> u64 {
    let value = headers.get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}
