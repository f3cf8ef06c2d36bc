use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use threadkeep::{MessageRef, Scope, ThreadId};

use crate::app::App;
use crate::error::ApiError;
use crate::thread_names;

/// The parameters of a request's path.
#[derive(Debug)]
pub(crate) struct PathParams(RawPathParams);

impl FromRequestParts<App> for PathParams {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ApiError> {
        let path_params = RawPathParams::from_request_parts(parts, app).await;
        path_params.map(Self).map_err(|_| ApiError::invalid("path", "the path is not percent-encoded UTF-8"))
    }
}

impl PathParams {
    /// Returns the value of the parameter `{name}`; empty if the route has no such parameter.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// Returns the id of the thread that `{id}` names by its id, conversation id or key. An unknown key results in the same error as
    /// a thread that does not exist.
    pub(crate) async fn thread(&self, app: &App, scope: &Scope) -> Result<ThreadId, ApiError> {
        thread_names::resolve(app, scope, self.get("id")).await
    }

    /// Returns the position or the id of the message in `{message}`.
    pub(crate) fn message(&self) -> Result<MessageRef, ApiError> {
        let text = self.get("message");
        if let Ok(seq) = text.parse() {
            return Ok(MessageRef::Seq(seq));
        }
        text.parse().map(MessageRef::Id).map_err(|_| ApiError::not_found("message"))
    }
}
