//! What a request holds, read and bounded: names in the path, the query, headers, a JSON body.

mod body;
mod names;
mod params;

pub(crate) use body::read_body;
pub use body::{FormBody, JsonBody, RawBody};
pub(crate) use names::Names;
pub(crate) use params::Params;

use axum::http::HeaderMap;
use threadkeep::Expected;
use threadkeep_service::Attempt;

use crate::error::ApiError;

/// Bytes of an `Idempotency-Key`. The store's own bound leaves room for what the server puts before it.
const KEY_BYTES: usize = 255;

/// What tells a repeated request to a surface, whose body has this digest, from another one.
///
/// # Errors
/// For an `Idempotency-Key` that is none.
pub fn attempt(headers: &HeaderMap, surface: &str, digest: &str) -> Result<Attempt, ApiError> {
    Ok(Attempt::new(surface, idempotency_key(headers)?, digest, retry_count(headers)))
}

/// The `Idempotency-Key` of a request.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let key = value.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_BYTES);
    let key = key.ok_or_else(|| {
        let message = format!("an Idempotency-Key is 1 to {KEY_BYTES} visible ASCII characters");
        ApiError::invalid("Idempotency-Key", message)
    })?;
    Ok(Some(key.to_owned()))
}

/// What `If-Match` says of a thread: the change that it must be at.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<u64>, ApiError> {
    let Some(value) = headers.get("if-match") else { return Ok(None) };
    let tag = value.to_str().unwrap_or_default().trim();
    if tag == "*" {
        return Ok(None);
    }
    let number = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"')).and_then(|tag| tag.parse().ok());
    let number = number.ok_or_else(|| ApiError::invalid("If-Match", "not one ETag that this server gave"))?;
    Ok(Some(number))
}

/// As [`if_match`], for a commit.
pub(crate) fn expected_change(headers: &HeaderMap) -> Result<Option<Expected>, ApiError> {
    Ok(if_match(headers)?.map(Expected::Change))
}

/// How often a client says it has sent this request before.
fn retry_count(headers: &HeaderMap) -> u64 {
    let value = headers.get("x-stainless-retry-count").and_then(|value| value.to_str().ok());
    value.and_then(|value| value.parse().ok()).unwrap_or(0)
}
