//! Assistants and their turns.

pub(crate) mod ask;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod map;
pub(crate) mod run;
pub(crate) mod source;

use threadkeep::Agent;

use crate::app::App;
use crate::error::{ApiError, Result};

/// Returns the assistant with the given name.
///
/// # Errors
/// `not_found` if there is no such assistant.
pub(crate) fn find_agent(app: &App, name: &str) -> Result<Agent> {
    app.assistants().find(name).ok_or_else(|| {
        let message = "assistant not found; GET /v1/agents lists the available ones";
        ApiError { message: message.to_owned(), ..ApiError::not_found("assistant") }
    })
}
