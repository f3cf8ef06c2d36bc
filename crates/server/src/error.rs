//! What went wrong, in the one form that every client is told.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use threadkeep::core::ModelError;
use threadkeep::{AgentError, MemoryError, StoreError};
use threadkeep_service::{Error, ErrorKind};
use utoipa::ToSchema;

/// The result of an action.
pub(crate) type Result<T = Response, E = ApiError> = std::result::Result<T, E>;

/// An error on its way to a client over HTTP. `edge` writes its body in the terms of the door's [`crate::Wire`], and logs it.
#[derive(Clone, Debug)]
pub struct ApiError {
    /// The status of the answer.
    pub status: StatusCode,
    /// For programs.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// What of the request was wrong.
    pub param: Option<String>,
    /// Headers of the answer.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What an operator may know and a client may not.
    pub internal: Option<String>,
}

/// The body of every error.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorEnvelope<'a> {
    pub(crate) error: ErrorBody<'a>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody<'a> {
    /// For people.
    pub(crate) message: &'a str,
    /// The family, as OpenAI's clients know it.
    pub(crate) r#type: &'static str,
    /// What of the request was wrong.
    pub(crate) param: Option<&'a str>,
    /// For programs.
    pub(crate) code: &'a str,
    /// Names this request in the server's log.
    pub(crate) request_id: &'a str,
}

impl ApiError {
    /// Makes an error.
    pub fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), param: None, headers: Vec::new(), internal: None }
    }

    /// The request makes no sense as it is.
    pub fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message).param(param)
    }

    /// There is no such thing.
    #[must_use]
    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("{what} not found"))
    }

    /// This caller may not.
    pub fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    /// The server failed; what is said here is for its operator alone.
    pub fn internal(what: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the server failed at this request");
        Self { internal: Some(what.into()), ..error }
    }

    /// A task of the request broke. What it says of that may quote what somebody said.
    pub(crate) fn broken_off() -> Self {
        Self::internal("a task broke off")
    }

    /// Names what of the request was wrong.
    #[must_use]
    pub fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    /// Gives it another code.
    #[must_use]
    pub fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    /// Adds a header to the answer.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        if let Ok(value) = value.try_into() {
            self.headers.push((name, value));
        }
        self
    }

    /// The family of errors that OpenAI's clients sort this one into.
    pub(crate) fn family(&self) -> &'static str {
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
    fn from(Error { kind, code, message, param, retry_after, version, internal }: Error) -> Self {
        let internal = internal.map(String::from);
        let error = Self { param, internal, ..Self::new(status(kind), code, message) };
        let error = match retry_after {
            Some(wait) => error.header(header::RETRY_AFTER, seconds(wait)),
            None => error,
        };
        match version {
            Some(version) => error.header(header::ETAG, format!("\"{version}\"")),
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

/// A wait in whole seconds, as `Retry-After` has them.
fn seconds(wait: Duration) -> String {
    format!("{:.0}", wait.as_secs_f64().ceil().max(1.0))
}
