//! What went wrong, in the one form that every client is told.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use threadkeep::core::{Kind, ModelError};
use threadkeep::{AgentError, Conflict, MemoryError, StoreError};
use utoipa::ToSchema;

use crate::output::etag;

/// The result of an action.
pub(crate) type Result<T = Response, E = ApiError> = std::result::Result<T, E>;

/// An error on its way to a client. `edge` writes its body, which holds the request's id, and logs it.
#[derive(Clone, Debug)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) param: Option<String>,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// What an operator may know and a client may not.
    pub(crate) internal: Option<String>,
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
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), param: None, headers: Vec::new(), internal: None }
    }

    /// The request makes no sense as it is.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message).param(param)
    }

    pub(crate) fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", format!("{what} not found"))
    }

    pub(crate) fn forbidden(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, code, message)
    }

    pub(crate) fn internal(what: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the server failed at this request");
        Self { internal: Some(what.into()), ..error }
    }

    /// A task of the request broke. What it says of that may quote what somebody said.
    pub(crate) fn broken_off() -> Self {
        Self::internal("a task broke off")
    }

    pub(crate) fn param(self, param: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..self }
    }

    pub(crate) fn code(self, code: &'static str) -> Self {
        Self { code, ..self }
    }

    pub(crate) fn header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
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
        let message = error.to_string();
        match error {
            MemoryError::Store(error) => Self::from(error),
            MemoryError::Invalid { field, .. } => Self::invalid(field, message),
            MemoryError::Context(_) => Self::invalid("policy", message).code("invalid_policy"),
            MemoryError::Contended { .. } => unavailable(message),
            _ => Self::internal(message),
        }
    }
}

impl From<AgentError> for ApiError {
    fn from(error: AgentError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let conflict = |message| Self::new(StatusCode::CONFLICT, code, message);
        match error {
            AgentError::Memory(error) => error.into(),
            AgentError::Busy => conflict(message).header(header::RETRY_AFTER, "1"),
            AgentError::Superseded { .. } | AgentError::ApprovalClosed { .. } => conflict(message),
            AgentError::ApprovalNotFound { .. } => Self::not_found("approval"),
            AgentError::NotAllowed { .. } => Self::forbidden(code, message),
            _ => Self::internal(message),
        }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let message = error.to_string();
        match error {
            StoreError::NotFound(Kind::Thread) => Self::not_found("thread"),
            StoreError::NotFound(Kind::Message) => Self::not_found("message"),
            StoreError::NotFound(Kind::Document) => Self::not_found("document"),
            StoreError::NotFound(_) => Self::not_found("it was"),
            StoreError::Denied(_) => Self::forbidden("denied", message),
            StoreError::Conflict(conflict) => of_conflict(&conflict, message),
            StoreError::Invalid { field, .. } => Self::invalid(field, message),
            StoreError::Unsupported(_) => Self::new(StatusCode::NOT_IMPLEMENTED, "unsupported", message),
            StoreError::LimitExceeded { limit, .. } => Self::invalid(limit, message).code("limit_exceeded"),
            StoreError::Unavailable { .. } => unavailable(message),
            _ => Self::internal(message),
        }
    }
}

impl From<ModelError> for ApiError {
    fn from(error: ModelError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        let status = match &error {
            ModelError::Unavailable { .. } => StatusCode::SERVICE_UNAVAILABLE,
            ModelError::TimedOut { .. } => StatusCode::GATEWAY_TIMEOUT,
            ModelError::Refused { .. } | ModelError::ContextTooLong { .. } => StatusCode::BAD_REQUEST,
            _ => StatusCode::BAD_GATEWAY,
        };
        // What a provider says of its key is for the operator.
        let message = if matches!(error, ModelError::Unauthorized { .. }) {
            "the model refused this server's key".to_owned()
        } else {
            message
        };
        // A provider's words may quote what it was asked: the client reads them, and the log does not.
        let internal = match &error {
            ModelError::Unauthorized { .. } | ModelError::TimedOut { .. } => error.to_string(),
            _ => "the model's own words are with the answer".to_owned(),
        };
        Self { internal: Some(internal), ..Self::new(status, code, message) }
    }
}

fn of_conflict(conflict: &Conflict, message: String) -> ApiError {
    let conflicted = |code| ApiError::new(StatusCode::CONFLICT, code, message.clone());
    match conflict {
        Conflict::Change { actual, .. } => {
            let failed = ApiError::new(StatusCode::PRECONDITION_FAILED, "changed_meanwhile", message.clone());
            failed.param("If-Match").header(header::ETAG, etag(*actual))
        }
        Conflict::Seq { .. } => conflicted("seq_conflict").param("expected_seq"),
        Conflict::IdempotencyKey => conflicted("idempotency_key_reused").param("Idempotency-Key"),
        Conflict::MessageId { .. } => conflicted("message_id_taken").param("id"),
        Conflict::ExternalId { .. } => conflicted("external_id_taken").param("external_id"),
        Conflict::Document { actual, .. } => {
            let failed = ApiError::new(StatusCode::PRECONDITION_FAILED, "changed_meanwhile", message.clone());
            failed.param("If-Match").header(header::ETAG, etag(actual.unwrap_or_default()))
        }
        _ => conflicted("conflict"),
    }
}

fn unavailable(message: String) -> ApiError {
    let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message);
    error.header(header::RETRY_AFTER, "1")
}
