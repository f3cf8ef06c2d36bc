//! How long an action may take, also of a server that stops, and what becomes of a request that no route takes.

use std::future::Future;

use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

/// Ends an action that takes too long. What it was writing is either done or not done.
pub(crate) async fn bounded_time(app: &App, acting: impl Future<Output = Response>) -> Response {
    tokio::select! {
        biased;
        answered = tokio::time::timeout(app.options().action_timeout, acting) => answered.unwrap_or_else(|_| {
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", "the request took too long");
            error.into_response()
        }),
        () = app.out_of_time() => stopping().into_response(),
    }
}

/// Ends an action that has its own time only where the server has none left. What was accepted for good runs by itself.
pub(crate) async fn own_time(app: &App, acting: impl Future<Output = Response>) -> Response {
    tokio::select! {
        biased;
        response = acting => response,
        () = app.out_of_time() => stopping().into_response(),
    }
}

/// What is told where a server that stops cannot wait any longer.
pub(crate) fn stopping() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutdown", "the server is stopping")
        .header(header::RETRY_AFTER, "1")
}

/// No such path.
pub(crate) fn unknown_route(method: &Method, uri: &Uri) -> ApiError {
    let path: String = uri.path().chars().take(200).collect();
    ApiError::new(StatusCode::NOT_FOUND, "unknown_route", format!("there is no {method} {path}"))
}

/// The path is there, but not for this method.
pub(crate) fn wrong_method(method: &Method) -> ApiError {
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", format!("{method} is not allowed here"))
}
