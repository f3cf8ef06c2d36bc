//! The endpoints of the documents that Threadkeep grew from, to the letter: their clients go on as they are.

pub(crate) mod delete;
pub(crate) mod history;

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
