use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use threadkeep::core::limits::{self, JSON_DEPTH};
use threadkeep_mcp::{ToolSelection, Toolbox, answer_http};

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::input::{QueryParams, read_body};
use crate::security::loopback::is_own_origin;
use crate::security::{Caller, KeyRole};

/// The two response formats that the protocol allows. Responses are always JSON.
const RESPONSE_FORMATS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Answers a message of the Model Context Protocol
///
/// This is the streamable HTTP transport of MCP without sessions: each POST contains one JSON-RPC message, and the response is
/// JSON. A caller without the role `write` gets only read-only tools. The tools act on behalf of the caller.
#[utoipa::path(
    post,
    path = "/mcp",
    operation_id = "call_mcp",
    tag = "mcp",
    params(
        ("tools" = Option<String>, Query, description = "The tools, separated by commas: names, `default`, `knowledge_graph` or `all`."),
        ("read_only" = Option<bool>, Query, description = "Whether to omit the tools that change data."),
    ),
    request_body(content = Value, description = "A JSON-RPC request or notification."),
    responses(
        (status = 200, description = "The JSON-RPC response.", body = Value),
        (status = 202, description = "The notification was accepted."),
        (status = "4XX", description = "The request was rejected: a JSON-RPC error, or an error of the server.", body = Value),
    ),
    security(("key" = []))
)]
pub(crate) async fn call(State(app): State<App>, caller: Caller, mut params: QueryParams, request: Request) -> Result {
    let tools = selected_tools(&mut params, &caller)?;
    params.finish()?;
    let (mut head, body) = request.into_parts();
    check_origin(&app, &head)?;
    let body = read_body(body, app.options().body_bytes, &app).await?;
    check_depth(&body)?;
    head.headers.insert(header::ACCEPT, RESPONSE_FORMATS);
    let toolbox = Toolbox::new(app.memory().clone(), caller.scope, tools);
    let (head, body) = answer_http(toolbox, Request::from_parts(head, body)).await.into_parts();
    let is_json = head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if !is_json && !head.status.is_success() {
        return Err(transport_error(head.status, &body));
    }
    Ok(Response::from_parts(head, Body::from(body)).into_response())
}

/// Returns those tools selected by the request that the caller's role allows.
fn selected_tools(params: &mut QueryParams, caller: &Caller) -> Result<ToolSelection, ApiError> {
    let tools = match params.take("tools")? {
        Some(list) => list.parse().map_err(|error| ApiError::invalid("tools", format!("{error}")))?,
        None => ToolSelection::default(),
    };
    let is_read_only = params.parse("read_only", "true or false")?.unwrap_or(false);
    Ok(if is_read_only || !caller.has(KeyRole::Write) { tools.read_only() } else { tools })
}

/// Rejects requests from web pages, except pages of this server and of the origins that the operator allows. The protocol
/// requires this check as a defence against DNS rebinding, which would let pages reach a local server.
fn check_origin(app: &App, head: &Parts) -> Result<(), ApiError> {
    let is_allowed = |origin: &HeaderValue| {
        origin.to_str().is_ok_and(|origin| {
            app.options().browser_origins.iter().any(|allowed| allowed == origin)
                || is_own_origin(origin, &head.uri, &head.headers)
        })
    };
    if head.headers.get_all(header::ORIGIN).iter().all(is_allowed) {
        return Ok(());
    }
    let message =
        "pages of this origin may not call the server; the operator can add the origin to server.browser_origins";
    Err(ApiError::forbidden("other_origin", message))
}

/// Rejects bodies that are nested too deeply, to protect the parser.
fn check_depth(body: &Bytes) -> Result<(), ApiError> {
    let text = std::str::from_utf8(body).map_err(|_| ApiError::invalid("body", "the body is not UTF-8"))?;
    let message = || format!("the body is nested deeper than {JSON_DEPTH} levels");
    limits::check_json_depth(text).map_err(|_| ApiError::invalid("body", message()))
}

/// Returns the error for a request that violates the transport protocol.
fn transport_error(status: StatusCode, body: &[u8]) -> ApiError {
    let message = String::from_utf8_lossy(body).into_owned();
    match status {
        status if status.is_server_error() => ApiError::internal(message),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ApiError::new(status, "unsupported_media_type", message),
        status => ApiError::new(status, "invalid_request", message),
    }
}
