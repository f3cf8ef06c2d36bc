//! Time limits of actions, and the errors of requests without a route.

use std::future::Future;

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

/// Cancels an action at its time limit, or when the grace period of a shutdown ends. Each of its writes is atomic.
pub(crate) async fn with_time_limit(app: &App, acting: impl Future<Output = Response>) -> Response {
    tokio::select! {
        biased;
        answered = tokio::time::timeout(app.options().action_timeout, acting) => answered.unwrap_or_else(|_| {
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", "the request timed out");
            error.into_response()
        }),
        () = app.shutdown_deadline_near() => stopping().into_response(),
    }
}

/// Cancels an action when the grace period of a shutdown ends. Turns that it has started run in their own tasks.
pub(crate) async fn without_time_limit(app: &App, acting: impl Future<Output = Response>) -> Response {
    tokio::select! {
        biased;
        response = acting => response,
        () = app.shutdown_deadline_near() => stopping().into_response(),
    }
}

/// Returns the error of a request that the shutdown of the server cancelled.
pub(crate) fn stopping() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutdown", "the server is stopping")
        .header(header::RETRY_AFTER, "1")
}

/// Returns the error of a path that no route has.
pub(crate) fn unknown_route(method: &Method, uri: &Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "unknown_route", format!("no such route: {method} {path}"))
}

/// Returns the error of a method that a route does not support.
pub(crate) fn wrong_method(method: &Method) -> ApiError {
    ApiError::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method_not_allowed",
        format!("the method {method} is not allowed on this path"),
    )
}
