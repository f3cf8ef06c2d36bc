//! How long an action may take, also of a server that stops, and what becomes of a request that no route takes.

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::error::ApiError;

/// Ends an action that takes too long. What it was writing is either done or not done.
pub(crate) async fn bounded_time(State(app): State<App>, request: Request, next: Next) -> Response {
    tokio::select! {
        biased;
        answered = tokio::time::timeout(app.options().action_timeout, next.run(request)) => answered.unwrap_or_else(|_| {
            let error = ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "timeout", "the request took too long");
            error.into_response()
        }),
        () = app.out_of_time() => stopping().into_response(),
    }
}

/// Ends an action that has its own time only where the server has none left. What was accepted for good runs by itself.
pub(crate) async fn own_time(State(app): State<App>, request: Request, next: Next) -> Response {
    tokio::select! {
        biased;
        response = next.run(request) => response,
        () = app.out_of_time() => stopping().into_response(),
    }
}

/// What is told where a server that stops cannot wait any longer.
pub(crate) fn stopping() -> ApiError {
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "shutdown", "the server is stopping")
        .header(header::RETRY_AFTER, "1")
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
