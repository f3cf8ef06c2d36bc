//! Builds responses.

use std::cell::RefCell;

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use threadkeep::core::TaggedNumber;

use crate::error::ApiError;

/// Maximum capacity of the encoding buffer that each thread of the process retains, in bytes.
const BUFFER_BYTES: usize = 64 * 1024;

/// Returns a response with a JSON body.
pub fn json<T: Serialize>(body: &T) -> Response {
    json_with(StatusCode::OK, body)
}

/// Returns a response with a JSON body. Its status is 201 if this request created the resource, and 200 if the resource existed.
pub(crate) fn created_or_found<T: Serialize>(created: bool, body: &T) -> Response {
    json_with(if created { StatusCode::CREATED } else { StatusCode::OK }, body)
}

pub(crate) fn json_with<T: Serialize>(status: StatusCode, body: &T) -> Response {
    match encode_json(body) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => error.into_response(),
    }
}

/// Returns a response whose body is already JSON.
pub(crate) fn json_text(text: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// Encodes the JSON body of a response.
pub(crate) fn encode_json<T: Serialize>(body: &T) -> Result<Bytes, ApiError> {
    encode_json_with(|buffer| serde_json::to_writer(buffer, body))
}

/// Encodes the JSON body of a response with a function that writes the body to a buffer.
pub(crate) fn encode_json_with(write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) -> Result<Bytes, ApiError> {
    thread_local! {
        /// The buffer is reused, so that a body is copied once at its final size instead of each time the buffer grows.
        static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    BUFFER.with_borrow_mut(|buffer| {
        buffer.clear();
        buffer.shrink_to(BUFFER_BYTES);
        write(buffer).map_err(|error| ApiError::internal(format!("cannot encode the response as JSON: {error}")))?;
        Ok(Bytes::copy_from_slice(buffer))
    })
}

/// Adds a content security policy to a response for browsers.
pub(crate) fn with_policy(response: impl IntoResponse, policy: &'static str) -> Response {
    let mut response = response.into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

/// Adds the number of a resource's last change or version as `ETag`, for conditional requests.
pub(crate) fn with_etag(mut response: Response, number: TaggedNumber) -> Response {
    let tag = HeaderValue::from_str(&format_etag(number)).expect("an ETag is visible ASCII");
    response.headers_mut().insert(header::ETAG, tag);
    response
}

/// Formats the number of a change or version as an `ETag`.
pub(crate) fn format_etag(number: TaggedNumber) -> String {
    format!("\"{number}\"")
}

/// Parses an `ETag`, which may lack the tag that identifies the commit. Returns `None` if the `ETag` is invalid.
pub(crate) fn parse_etag(etag: &str) -> Option<TaggedNumber> {
    etag.trim().strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}

/// Whether `If-None-Match` lists an `ETag` for which `is_current` holds. Weak `ETag`s count: a proxy that compresses a response marks its
/// `ETag` as weak.
pub(crate) fn has_current(headers: &HeaderMap, is_current: impl Fn(&str) -> bool) -> bool {
    let listed = headers.get(header::IF_NONE_MATCH).and_then(|etags| etags.to_str().ok()).unwrap_or_default();
    listed.split(',').any(|etag| is_current(etag.trim().trim_start_matches("W/")))
}

/// Adds a header that marks the response if it repeats the result of an earlier request.
pub(crate) fn with_replay(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    response
}
