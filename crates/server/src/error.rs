//! Errors of the HTTP API.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use threadkeep::core::ModelError;
use threadkeep::{AgentError, MemoryError, StoreError};
use threadkeep_service::{Error, ErrorKind, RateStatus};
use utoipa::ToSchema;

use crate::output::format_etag;
use crate::security::authenticate::rate_headers;

/// The result of an action.
pub(crate) type Result<T = Response, E = ApiError> = std::result::Result<T, E>;

/// An error response that has not been rendered. `middleware` renders its body in the door's [`crate::ErrorFormat`] and logs the
/// error if the server caused it.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// The status of the response.
    pub status: StatusCode,
    /// A stable identifier of the error, for programs.
    pub code: &'static str,
    /// A description for people.
    pub message: String,
    /// The parameter, header or field of the body that is invalid.
    pub param: Option<String>,
    /// Additional headers of the response.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Details for the server's log. They are never sent to a client.
    pub internal: Option<String>,
}

/// The body of every error response.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorEnvelope<'a> {
    pub(crate) error: ErrorBody<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody<'a> {
    /// A description for people.
    pub(crate) message: &'a str,
    /// The error type of the OpenAI API.
    pub(crate) r#type: &'static str,
    /// The parameter, header or field of the body that is invalid.
    pub(crate) param: Option<&'a str>,
    /// A stable identifier of the error, for programs.
    pub(crate) code: &'a str,
    /// The id of this request in the server's log.
    pub(crate) request_id: &'a str,
}

impl ApiError {
    /// Creates an error.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), param: None, headers: Vec::new(), internal: None }
    }

    /// Creates an error for an invalid parameter, header or field of the body.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message).param(param)
    }

    /// Creates an error for a missing resource. `resource` is its kind, such as `thread`.
    #[must_use]
    pub fn not_found(resource: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("{resource} not found"))
    }

    /// Creates an error for a caller without permission.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// Creates an internal error. The details are logged and not sent to the client.
    pub fn internal(details: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "internal server error");
        Self { internal: Some(details.into()), ..error }
    }

    /// Creates an error for a task that panicked. The message of the panic is omitted, because it may quote content.
    pub(crate) fn task_panicked() -> Self {
        Self::internal("a task of the request panicked")
    }

    /// Sets the parameter, header or field of the body that is invalid.
    #[must_use]
    pub fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// Replaces the code.
    #[must_use]
    pub fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// Adds a header to the response. A header with an invalid value is omitted.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        if let Ok(value) = value.try_into() {
            self.headers.push((name, value));
        }
        self
    }

    /// Logs the error of a stream, which has no response to which the middleware could add it. `failure` says what failed.
    pub(crate) fn log(&self, failure: &str) {
        let internal = self.internal.as_deref().unwrap_or_default();
        if self.status.is_server_error() {
            tracing::error!(code = self.code, internal, "{failure}");
        } else {
            tracing::debug!(code = self.code, internal, "{failure}");
        }
    }

    /// Returns the error type of the OpenAI API.
    pub(crate) fn openai_type(&self) -> &'static str {
        match self.status.as_u16() {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "invalid_request_error",
            429 => "rate_limit_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

impl From<MemoryError> for ApiError {
    fn from(error: MemoryError) -> Self {
        Error::from(error).into()
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        Error::from(error).into()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        Error::from(error).into()
    }
}

impl From<ModelError> for ApiError {
    fn from(error: ModelError) -> Self {
        Error::from(error).into()
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let Error { kind, code, message, param, retry_after, rate_limit, version, internal } = error;
        let internal = internal.map(String::from);
        let error = Self { param, internal, ..Self::new(status(kind), code, message) };
        let error = match retry_after {
            Some(wait) => error.header(header::RETRY_AFTER, format_retry_after(wait)),
            None => error,
        };
        let mut error = error;
        if let Some(limit) = rate_limit {
            let reset = Duration::from_secs(60);
            error.headers.extend(rate_headers(RateStatus { limit: limit.get(), remaining: 0, reset }));
        }
        match version {
            Some(version) => error.header(header::ETAG, format_etag(version)),
            None => error,
        }
    }
}

fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
        ErrorKind::Forbidden => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::Conflict => StatusCode::CONFLICT,
        ErrorKind::Outdated => StatusCode::PRECONDITION_FAILED,
        ErrorKind::TooMany => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        ErrorKind::Provider => StatusCode::BAD_GATEWAY,
        ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::ProviderTimedOut => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Formats a waiting time for `Retry-After`: whole seconds, rounded up, at least 1.
fn format_retry_after(wait: Duration) -> String {
    format!("{:.0}", wait.as_secs_f64().ceil().max(1.0))
}
