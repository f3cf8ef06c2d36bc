use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use threadkeep::{MessageName, ThreadId};

use crate::app::App;
use crate::error::ApiError;

/// What a request's path names.
#[derive(Debug)]
pub(crate) struct Names(RawPathParams);

impl FromRequestParts<App> for Names {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let names = RawPathParams::from_request_parts(parts, app).await;
        names.map(Self).map_err(|_| ApiError::invalid("path", "the path is not percent-encoded UTF-8"))
    }
}

impl Names {
    /// What stands at `{name}`.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The thread at `{id}`. What is no id is the id of no thread.
    pub(crate) fn thread(&self) -> Result<ThreadId, ApiError> {
        self.text("id").parse().map_err(|_| ApiError::not_found("thread"))
    }

    /// The message at `{message}`: a position, or an id.
    pub(crate) fn message(&self) -> Result<MessageName, ApiError> {
        let text = self.text("message");
        if let Ok(seq) = text.parse() {
            return Ok(MessageName::Seq(seq));
        }
        text.parse().map(MessageName::Id).map_err(|_| ApiError::not_found("message"))
    }
}
