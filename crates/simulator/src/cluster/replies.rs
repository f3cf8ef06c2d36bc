//! The replies of the API server: documents, texts, and errors.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use super::resources::Resource;

/// An error response, which is sent as a `Status` object.
pub(super) struct Refusal {
    code: StatusCode,
    reason: &'static str,
    message: String,
    details: Value,
}

impl Refusal {
    pub(super) fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Value::Null }
    }

    /// A field of an object has an invalid value.
    pub(super) fn invalid(resource: &Resource, name: &str, field: &str, problem: &str) -> Self {
        let message = format!("{} \"{name}\" is invalid: {field}: {problem}", resource.qualified());
        let cause = json!({ "reason": "FieldValueInvalid", "message": problem, "field": field });
        let details = json!({ "name": name, "group": resource.group, "kind": resource.kind, "causes": [cause] });
        Self { details, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message) }
    }

    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn unknown_format() -> Self {
        let message = "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    pub(super) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("{} \"{name}\" not found", resource.qualified()))
    }

    pub(super) fn into_response(self) -> Response {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": self.message,
            "reason": self.reason, "code": self.code.as_u16(),
        });
        if !self.details.is_null() {
            status["details"] = self.details;
        }
        json_response(self.code, &status)
    }
}

pub(super) fn json_response(code: StatusCode, value: &Value) -> Response {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/json"));
    response
}

pub(super) fn text_response(text: String) -> Response {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/plain"));
    response
}
