//! The OpenAI wire: what its clients send, answered as they expect it, over the same threads as every other door.
//!
//! A conversation is a thread, an item a message of it (`items`). What an item says that the engine has no word for is kept
//! exactly, so that it comes back byte for byte.

mod assistant;
pub(crate) mod chat;
pub(crate) mod conversation_items;
pub(crate) mod conversations;
pub(crate) mod embeddings;
mod ids;
mod items;
mod members;
pub(crate) mod models;
mod references;
mod requests;
pub(crate) mod responses;
mod shelf;
mod streamed;
mod turn;

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use threadkeep::{Scope, ThreadId};

use crate::app::App;
use crate::error::{ApiError, Result};

/// Whether a call of a model that goes by this id was answered in a thread.
pub(crate) async fn is_answered(app: &App, scope: &Scope, thread: ThreadId, id: &str) -> Result<bool> {
    Ok(turn::find(app, scope, thread, id).await?.is_some())
}

/// Says an error as these clients take it: they repeat what answers 409, and a conflict is none that passes.
pub(crate) fn in_its_terms(response: Response) -> Response {
    let Some(error) = response.extensions().get::<ApiError>() else { return response };
    if !matches!(error.status, StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED) {
        return response;
    }
    let mut error = error.clone();
    error.status = StatusCode::BAD_REQUEST;
    if error.code == "busy" {
        // This they repeat, and no other 400.
        error = turn::locked();
    }
    error.into_response()
}
