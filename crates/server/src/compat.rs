//! The endpoints of the documents that Threadkeep grew from, to the letter: their clients go on as they are.
//!
//! Each stands under its assistant's name, and at the root where one assistant alone is served.

pub(crate) mod access;
mod assistant;
mod cases;
pub(crate) mod chat;
pub(crate) mod clear;
pub(crate) mod delete;
pub(crate) mod health;
pub(crate) mod history;
pub(crate) mod page;
pub(crate) mod preferences;
pub(crate) mod questions;

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

/// The documents' endpoints.
pub(crate) fn door() -> Door {
    Door::new("compat")
        .route(SHARED_READ, routes!(history::history))
        .route(SHARED_WRITE, routes!(delete::delete))
        .route(SHARED_READ, routes!(history::history_with))
        .route(SHARED_WRITE, routes!(delete::delete_with))
        .route(SHARED_WRITE.own_time(), routes!(chat::chat))
        .route(SHARED_WRITE.own_time(), routes!(chat::chat_with))
        .route(SHARED_WRITE, routes!(clear::clear))
        .route(SHARED_WRITE, routes!(clear::clear_with))
        .route(SHARED_READ, routes!(questions::route))
        .route(SHARED_READ, routes!(questions::route_with))
        .route(SHARED_READ, routes!(questions::arrivals))
        .route(SHARED_READ, routes!(questions::arrivals_with))
        .route(SHARED_READ, routes!(questions::stations))
        .route(SHARED_READ, routes!(questions::stations_with))
        .route(SHARED_READ, routes!(preferences::preferences))
        .route(SHARED_READ, routes!(preferences::preferences_with))
        .route(OPEN, routes!(health::health))
        .route(OPEN, routes!(page::start))
        .route(OPEN, routes!(page::start_with))
        .cases(cases::cases)
}

/// What a failure looks like here.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FailureJson {
    success: bool,
    error: &'static str,
}

fn failure(status: StatusCode, error: &'static str) -> Response {
    json_with(status, &FailureJson { success: false, error })
}

/// The thread of an id; what is no id is the id of no thread.
fn thread(id: &str) -> Option<ThreadId> {
    id.parse().ok()
}
