//! The outermost layer: names each request, writes every error in the one form, and logs both, once.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use crate::app::App;
use crate::error::{ApiError, ErrorBody, ErrorEnvelope};
use crate::output::hex;
use crate::security::Caller;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Names the key that called, for the log.
#[derive(Clone, Debug)]
pub(crate) struct CalledWith(pub(crate) String);

/// What a request is called in logs, traces and answers.
#[derive(Clone, Debug)]
pub(crate) struct RequestId(pub(crate) String);

/// Wraps everything else.
pub(crate) async fn edge(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let request_id = mint();
    let method = request.method().clone();
    // The route, not the path: a path may hold what a user called something.
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    request.extensions_mut().insert(RequestId(request_id.clone()));
    let _counted = app.metrics().count_running();
    let mut traced = app.telemetry().begin_request(request.headers());
    // Whatever is logged on the way names the request.
    let named = tracing::info_span!("request", request_id);
    let answering = next.run(request).instrument(named);
    let response = match &traced {
        Some(span) => span.around(answering).await,
        None => answering.await,
    };
    let mut response = rendered(response, &request_id);
    if let Ok(value) = HeaderValue::from_str(&request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response.headers_mut().entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let key = response.extensions().get::<CalledWith>().map_or("", |with| with.0.as_str());
    let (status, route) = (response.status().as_u16(), route.as_deref().unwrap_or("unknown"));
    let took_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::info!(%method, route, status, took_ms, request_id, key, "request");
    app.metrics().count_request(&method, route, status, started.elapsed());
    if let Some(mut span) = traced.take() {
        span.named(format!("{method} {route}"));
        span.text("http.request.method", method.as_str());
        span.text("http.route", route);
        span.number("http.response.status_code", u64::from(status));
        span.text("threadkeep.request_id", &request_id);
        if status >= 500 {
            span.failed();
        }
        app.telemetry().end(span);
    }
    response
}

/// Notes who called where the log will look for it.
pub(crate) fn note_caller(response: &mut Response, caller: &Caller) {
    if let Some(key) = &caller.key_id {
        response.extensions_mut().insert(CalledWith(key.clone()));
    }
}

/// A panic, as an error.
pub(crate) fn panicked(_: Box<dyn std::any::Any + Send>) -> Response {
    // The panic's text may quote content; the program's panic hook has told where it was.
    ApiError::internal("an action panicked").into_response()
}

fn rendered(response: Response, request_id: &str) -> Response {
    let Some(error) = response.extensions().get::<ApiError>().cloned() else { return response };
    if error.status.is_server_error() {
        let internal = error.internal.as_deref().unwrap_or(&error.message);
        tracing::error!(request_id, code = error.code, internal, "request failed");
    }
    let body = ErrorBody {
        message: &error.message,
        r#type: error.family(),
        param: error.param.as_deref(),
        code: error.code,
        request_id,
    };
    let text = serde_json::to_string(&ErrorEnvelope { error: body }).unwrap_or_default();
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
    if let Some(with) = response.extensions().get::<CalledWith>() {
        rendered.extensions_mut().insert(with.clone());
    }
    rendered
}

fn mint() -> String {
    let mut bytes = [0; 12];
    if getrandom::fill(&mut bytes).is_err() {
        // Ids that are not told apart harm nothing but the reading of a log.
        return "req_unnamed".to_owned();
    }
    format!("req_{}", hex(&bytes))
}
