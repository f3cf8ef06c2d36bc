//! The endpoints of the documents that Threadkeep grew from, to the letter: their clients go on as they are.
//!
//! Each stands under its assistant's name, and at the root where one assistant alone is served.

pub(crate) mod access;
mod assistant;
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

use crate::output::json_with;

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
