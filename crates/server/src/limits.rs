//! How long an action may take, and what becomes of a request that no route takes.

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

/// Ends an action that takes too long. What it was writing is either done or not done.
pub(crate) async fn bounded_time(State(app): State<App>, request: Request, next: Next) -> Response {
    match tokio::time::timeout(app.options().action_timeout, next.run(request)).await {
        Ok(response) => response,
        Err(_) => {
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", "the request took too long");
            error.into_response()
        }
    }
}

/// No such path.
pub(crate) async fn unknown_route(method: Method, uri: Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "unknown_route", format!("there is no {method} {path}"))
}

/// The path is there, but not for this method.
pub(crate) async fn wrong_method(method: Method) -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", format!("{method} is not allowed here"))
}
