//! The compatibility endpoints: the HTTP API of the chat servers that Threadkeep replaces, so that their clients work unchanged.
//!
//! Each endpoint exists below the name of an assistant. If the server has exactly one assistant, it also exists at the root.

pub(crate) mod access;
pub(crate) mod assistant;
mod cases;
pub(crate) mod chat;
pub(crate) mod clear;
pub(crate) mod delete;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod insights;
pub(crate) mod page;
pub(crate) mod preferences;
pub(crate) mod query;
pub(crate) mod tool_endpoints;

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use threadkeep::ThreadId;
use utoipa::ToSchema;
use utoipa_axum::routes;

use crate::door::{Door, Rule};
use crate::output::json_with;
use crate::security::KeyRole;

const OPEN: Rule = Rule::open();
const SHARED_READ: Rule = Rule::shared(KeyRole::Read);
const SHARED_WRITE: Rule = Rule::shared(KeyRole::Write);

/// Returns the door of the compatibility endpoints.
pub(crate) fn door() -> Door {
    Door::new("compat")
        .route(SHARED_READ, || routes!(history::history))
        .route(SHARED_WRITE, || routes!(delete::delete))
        .route(SHARED_READ, || routes!(history::history_with))
        .route(SHARED_WRITE, || routes!(delete::delete_with))
        .route(SHARED_READ, || routes!(insights::insights))
        .route(SHARED_READ, || routes!(insights::insights_with))
        .route(SHARED_WRITE.without_time_limit(), || routes!(query::query))
        .route(SHARED_WRITE.without_time_limit(), || routes!(query::query_with))
        .route(SHARED_WRITE.without_time_limit(), || routes!(chat::chat))
        .route(SHARED_WRITE.without_time_limit(), || routes!(chat::chat_with))
        .route(SHARED_WRITE, || routes!(clear::clear))
        .route(SHARED_WRITE, || routes!(clear::clear_with))
        .route(SHARED_READ, || routes!(tool_endpoints::route))
        .route(SHARED_READ, || routes!(tool_endpoints::route_with))
        .route(SHARED_READ, || routes!(tool_endpoints::arrivals))
        .route(SHARED_READ, || routes!(tool_endpoints::arrivals_with))
        .route(SHARED_READ, || routes!(tool_endpoints::stations))
        .route(SHARED_READ, || routes!(tool_endpoints::stations_with))
        .route(SHARED_READ, || routes!(tool_endpoints::lines))
        .route(SHARED_READ, || routes!(tool_endpoints::lines_with))
        .route(SHARED_READ, || routes!(preferences::preferences))
        .route(SHARED_READ, || routes!(preferences::preferences_with))
        .route(OPEN, || routes!(health::health))
        .route(OPEN, || routes!(page::start_with))
        .cases(cases::cases)
}

/// The body of an error response from the endpoints for conversations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureJson {
    success: bool,
    error: &'static str,
}

fn failure(status: StatusCode, error: &'static str) -> Response {
    json_with(status, &FailureJson { success: false, error })
}

/// Parses the id of a thread; `None` if the id is invalid, so that no thread can have it.
fn parse_thread_id(id: &str) -> Option<ThreadId> {
    id.parse().ok()
}
