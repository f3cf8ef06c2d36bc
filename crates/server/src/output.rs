//! Answers.

use std::cell::RefCell;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;

use crate::error::ApiError;

/// Room for answers that a thread keeps.
const ROOM_BYTES: usize = 64 * 1024;

/// An answer in JSON.
pub fn json<T: Serialize>(body: &T) -> Response {
    json_with(StatusCode::OK, body)
}

/// An answer in JSON, for what was made by this request or was there before.
pub(crate) fn created_or_found<T: Serialize>(created: bool, body: &T) -> Response {
    json_with(if created { StatusCode::CREATED } else { StatusCode::OK }, body)
}

pub(crate) fn json_with<T: Serialize>(status: StatusCode, body: &T) -> Response {
    match written(body) {
        Ok(text) => (status, [(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => error.into_response(),
    }
}

/// An answer whose JSON is there.
pub(crate) fn json_text(text: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// The JSON of an answer.
pub(crate) fn written<T: Serialize>(body: &T) -> Result<Bytes, ApiError> {
    written_by(|room| serde_json::to_writer(room, body))
}

/// An answer whose JSON is put together piece by piece.
pub(crate) fn written_by(write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) -> Result<Bytes, ApiError> {
    thread_local! {
        /// Room that has grown already: an answer is copied once, to its size, and not again whenever it outgrows its room.
        static ROOM: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    ROOM.with_borrow_mut(|room| {
        room.clear();
        room.shrink_to(ROOM_BYTES);
        write(room).map_err(|error| ApiError::internal(format!("an answer has no JSON form: {error}")))?;
        Ok(Bytes::copy_from_slice(room))
    })
}

/// An answer for a browser, with what it may load, and who may show it in a frame.
pub(crate) fn with_policy(answer: impl IntoResponse, policy: &'static str) -> Response {
    let mut response = answer.into_response();
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    response
}

/// Adds the position that a later request can demand.
pub(crate) fn with_etag(mut response: Response, change: u64) -> Response {
    let tag = HeaderValue::from_str(&format!("\"{change}\"")).expect("digits between quotes are a header's value");
    response.headers_mut().insert(header::ETAG, tag);
    response
}

/// Marks an answer that tells what an earlier request did.
pub(crate) fn with_replay(mut response: Response, replayed: bool) -> Response {
    if replayed {
        response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
    }
    response
}
