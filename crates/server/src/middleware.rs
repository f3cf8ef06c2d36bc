//! The outermost middleware, which assigns request ids, renders errors in the format of the door, and logs each request once.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures::FutureExt;

use crate::app::App;
use crate::door::ErrorFormat;
use crate::error::ApiError;
use crate::limits::{unknown_route, wrong_method};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

tokio::task_local! {
    static REQUEST: RequestId;
}

/// Returns the id of the request that the current task handles, for log lines; `None` outside of a request.
#[must_use]
pub fn request_id() -> Option<String> {
    REQUEST.try_with(|id| id.as_str().to_owned()).ok()
}

/// A response, and the id of the key that authenticated its request; the id is logged.
#[derive(Debug)]
pub(crate) struct LoggedResponse {
    pub(crate) response: Response,
    pub(crate) key: Option<String>,
}

impl From<Response> for LoggedResponse {
    fn from(response: Response) -> Self {
        Self { response, key: None }
    }
}

impl From<ApiError> for LoggedResponse {
    fn from(error: ApiError) -> Self {
        error.into_response().into()
    }
}

/// Handles a request: runs `respond`, renders its error if there is one, and records the request in the log, the metrics and the
/// trace.
pub(crate) async fn handle<F>(
    app: &App,
    error_format: ErrorFormat,
    request: Request,
    respond: impl FnOnce(Request, RequestId) -> F,
) -> Response
where
    F: Future<Output = LoggedResponse>,
{
    let started = Instant::now();
    let id = RequestId::new();
    let request_id = id.as_str();
    let method = request.method().clone();
    // The route is recorded instead of the path, because a path may contain names that users chose.
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or("unknown", |route| app.canonical_path(route.as_str()));
    let _counted = app.metrics().count_running();
    let mut span = app.telemetry().begin_request(|| request.headers().get("traceparent")?.to_str().ok());
    // Pinned here, because moving it into another future would double its size.
    let response = std::pin::pin!(REQUEST.scope(id, respond(request, id)));
    let response = AssertUnwindSafe(response).catch_unwind();
    let result = match &span {
        Some(span) => span.in_scope(response).await,
        None => response.await,
    };
    // The message of a panic may quote content, so it is not logged here. The panic hook has logged the location.
    let LoggedResponse { response, key } =
        result.unwrap_or_else(|_| ApiError::internal("a request handler panicked").into_response().into());
    let mut response = render(response, error_format, request_id);
    let headers = response.headers_mut();
    headers.insert(REQUEST_ID, id.to_header());
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let (status, key, took) = (response.status().as_u16(), key.as_deref().unwrap_or_default(), started.elapsed());
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    tracing::info!(%method, route, status, took_ms, request_id, key, "request");
    app.metrics().count_request(method.as_str(), route, status, took);
    if let Some(mut span) = span.take() {
        span.set_name(format!("{method} {route}"));
        span.add_text("http.request.method", method.as_str());
        span.add_text("http.route", route);
        span.add_number("http.response.status_code", u64::from(status));
        span.add_text("threadkeep.request_id", request_id);
        if status >= 500 {
            span.set_failed();
        }
        app.telemetry().end(span);
    }
    response
}

/// Responds to a request whose path belongs to no route.
pub(crate) async fn respond_unknown_route(State(app): State<App>, request: Request) -> Response {
    let respond = |request: Request, _| async move { unknown_route(request.method(), request.uri()).into() };
    handle(&app, ErrorFormat::default(), request, respond).await
}

/// Responds to a request whose method the route does not support.
pub(crate) async fn respond_wrong_method(State(app): State<App>, request: Request) -> Response {
    let respond = |request: Request, _| async move { wrong_method(request.method()).into() };
    handle(&app, ErrorFormat::default(), request, respond).await
}

/// Renders the error of a response in a format, and logs it if it is a server error. Other responses are returned unchanged.
fn render(response: Response, error_format: ErrorFormat, request_id: &str) -> Response {
    let Some(error) = response.extensions().get::<ApiError>().cloned() else { return response };
    let error = error_format.translate(error);
    if error.status.is_server_error() {
        let internal = error.internal.as_deref().unwrap_or(&error.message);
        tracing::error!(request_id, code = error.code, internal, "request failed");
    }
    let text = error_format.body(&error, request_id);
    let mut rendered = (error.status, [(header::CONTENT_TYPE, "application/json")], text).into_response();
    if error.status == StatusCode::UNAUTHORIZED {
        rendered.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if error.status == StatusCode::METHOD_NOT_ALLOWED
        && let Some(allow) = response.headers().get(header::ALLOW)
    {
        rendered.headers_mut().insert(header::ALLOW, allow.clone());
    }
    rendered.headers_mut().extend(error.headers.iter().map(|(name, value)| (name.clone(), value.clone())));
    rendered
}

/// The id of a request in logs, traces and responses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestId([u8; Self::PREFIX.len() + 2 * Self::BYTES]);

impl RequestId {
    const PREFIX: &str = "req_";
    const BYTES: usize = 12;

    /// Creates a unique id that does not reveal the number of requests.
    fn new() -> Self {
        // The system seeds these states once per process.
        static SEEDS: LazyLock<[RandomState; 2]> = LazyLock::new(|| [RandomState::new(), RandomState::new()]);
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let [first, second] = SEEDS.each_ref().map(|seed| seed.hash_one(count).to_be_bytes());
        let mut text = [0; Self::PREFIX.len() + 2 * Self::BYTES];
        let (prefix, digits) = text.split_at_mut(Self::PREFIX.len());
        prefix.copy_from_slice(Self::PREFIX.as_bytes());
        for (pair, byte) in digits.chunks_exact_mut(2).zip(first.into_iter().chain(second)) {
            pair.copy_from_slice(&[
                b"0123456789abcdef"[usize::from(byte >> 4)],
                b"0123456789abcdef"[usize::from(byte & 15)],
            ]);
        }
        Self(text)
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters and digits are UTF-8")
    }

    fn to_header(self) -> HeaderValue {
        HeaderValue::from_bytes(&self.0).expect("letters and digits are a valid header value")
    }
}
