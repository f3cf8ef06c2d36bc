//! Time limits of actions, and the errors of requests without a route.

use std::future::Future;

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

/// Runs an action, but cancels it at its time limit or shortly before the grace period of a shutdown ends. The action can be
/// cancelled at any point, because each of its writes is atomic.
pub(crate) async fn with_time_limit(app: &App, action: impl Future<Output = Response>) -> Response {
    tokio::select! {
        biased;
        result = tokio::time::timeout(app.options().action_timeout, action) => result.unwrap_or_else(|_| {
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", "the request timed out");
            error.into_response()
        }),
        () = app.shutdown_deadline_near() => stopping_error().into_response(),
    }
}

/// Runs an action, but cancels it shortly before the grace period of a shutdown ends. Turns that the action has started are not
/// cancelled, because they run in their own tasks.
pub(crate) async fn without_time_limit(app: &App, action: impl Future<Output = Response>) -> Response {
    tokio::select! {
        biased;
        response = action => response,
        () = app.shutdown_deadline_near() => stopping_error().into_response(),
    }
}

/// Creates the error for a request that was cancelled because the server is stopping.
pub(crate) fn stopping_error() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutdown", "the server is stopping")
        .header(header::RETRY_AFTER, "1")
}

/// Creates the error for a path that belongs to no route.
pub(crate) fn unknown_route(method: &Method, uri: &Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "unknown_route", format!("no such route: {method} {path}"))
}

/// Creates the error for a method that a route does not support.
pub(crate) fn wrong_method(method: &Method) -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("the method {method} is not allowed on this path"),
    )
}
