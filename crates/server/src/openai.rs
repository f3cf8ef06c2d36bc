//! The OpenAI-compatible API: Conversations, Responses, Chat Completions, Models, Embeddings and Files. It uses the same threads as all
//! other APIs.
//!
//! A conversation is a thread, and its items are messages (`items`). The parts of an item that have no counterpart in a message are
//! stored exactly as received, so that they are returned byte for byte.

mod assistant;
mod cases;
pub(crate) mod chat;
pub(crate) mod conversation_items;
pub(crate) mod conversations;
pub(crate) mod embeddings;
pub(crate) mod files;
mod ids;
mod items;
mod members;
pub(crate) mod models;
mod references;
mod requests;
mod resent;
mod response_store;
pub(crate) mod responses;
mod sse;
mod stream_head;
mod tool_results;
mod turn;

use axum::http::StatusCode;
use threadkeep::{Scope, ThreadId};
use utoipa_axum::routes;

use crate::app::App;
use crate::door::{Door, ErrorFormat, Rule};
use crate::error::{ApiError, Result};
use crate::security::KeyRole;

const READ: Rule = Rule::role(KeyRole::Read);
const WRITE: Rule = Rule::role(KeyRole::Write);

/// Returns the door with the routes that clients of OpenAI call.
pub(crate) fn door() -> Door {
    Door::new("openai")
        .error_format(ErrorFormat::default().translating(translate_error))
        .route(WRITE, || routes!(conversations::create::create))
        .route(READ, || routes!(conversations::list::list))
        .route(READ, || routes!(conversations::retrieve::retrieve))
        .route(WRITE, || routes!(conversations::update::update))
        .route(WRITE, || routes!(conversations::delete::delete))
        .route(WRITE, || routes!(conversation_items::create::create))
        .route(READ, || routes!(conversation_items::list::list))
        .route(READ, || routes!(conversation_items::retrieve::retrieve))
        .route(WRITE, || routes!(conversation_items::delete::delete))
        .route(WRITE.without_time_limit(), || routes!(responses::create::create))
        .route(READ, || routes!(responses::input_tokens::count))
        .route(WRITE.without_time_limit(), || routes!(responses::compact::compact))
        .route(READ, || routes!(responses::list::list))
        .route(READ, || routes!(responses::retrieve::retrieve))
        .route(WRITE, || routes!(responses::delete::delete))
        .route(WRITE, || routes!(responses::cancel::cancel))
        .route(READ, || routes!(responses::input_items::list))
        .route(WRITE.without_time_limit(), || routes!(chat::complete))
        .route(READ, || routes!(chat::stored::list::list))
        .route(READ, || routes!(chat::stored::retrieve::retrieve))
        .route(WRITE, || routes!(chat::stored::update::update))
        .route(WRITE, || routes!(chat::stored::delete::delete))
        .route(READ, || routes!(chat::stored::messages::messages))
        .route(READ, || routes!(models::list))
        .route(READ, || routes!(models::retrieve))
        .route(READ, || routes!(models::retrieve_assistant))
        .route(READ.without_time_limit(), || routes!(embeddings::embeddings))
        .route(WRITE.without_time_limit(), || routes!(files::create::create))
        .route(READ, || routes!(files::list::list))
        .route(READ, || routes!(files::search::search))
        .route(READ, || routes!(files::retrieve::retrieve))
        .route(READ, || routes!(files::content::content))
        .route(WRITE, || routes!(files::delete::delete))
        .cases(cases::cases)
}

/// Whether the thread contains the answer to the model call with this id.
pub(crate) async fn is_answered(app: &App, scope: &Scope, thread: ThreadId, id: &str) -> Result<bool> {
    Ok(turn::find_turn_record(app, scope, thread, id).await?.is_some())
}

/// Adapts an error to OpenAI clients, which retry every 409, although retrying rarely resolves a conflict.
fn translate_error(error: ApiError) -> ApiError {
    match error.status {
        // This is the only 400 that these clients retry.
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED if error.code == "busy" => turn::locked_error(),
        StatusCode::CONFLICT | StatusCode::PRECONDITION_FAILED => ApiError { status: StatusCode::BAD_REQUEST, ..error },
        _ => error,
    }
}
