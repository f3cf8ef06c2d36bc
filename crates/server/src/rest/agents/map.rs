use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use threadkeep_api::agent::NetworkMapJson;
use threadkeep_service::hex;

use super::find_agent;
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::{encode_json, has_current, json_text};

/// Gets the map of an assistant's network
///
/// Only assistants that answer questions about a network have a map (`has_map`). The map changes only with the program; clients can
/// store it and revalidate it.
#[utoipa::path(
    get,
    path = "/v1/agents/{name}/map",
    operation_id = "get_agent_map",
    tag = "agents",
    params(("name" = String, Path), ("If-None-Match" = Option<String>, Header)),
    responses(
        (status = 200, body = NetworkMapJson<'_>),
        (status = 304, description = "The map is unchanged."),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn map(State(app): State<App>, path_params: PathParams, headers: HeaderMap) -> Result {
    let name = path_params.get("name");
    find_agent(&app, name)?;
    let map = app.assistants().network_map(name).ok_or_else(|| {
        let message = "this assistant has no map; `has_map` in GET /v1/agents says which ones have one";
        ApiError::new(StatusCode::NOT_FOUND, "no_map", message)
    })?;
    let body = encode_json(&NetworkMapJson::from(map()))?;
    let etag = format!("\"{}\"", &hex(&Sha256::digest(&body))[..32]);
    let is_known = has_current(&headers, |known| known == etag);
    let response = if is_known { StatusCode::NOT_MODIFIED.into_response() } else { json_text(body) };
    Ok(with_validator(response, &etag))
}

/// Allows the client, but no shared cache, to store a response; it must be revalidated before it is used.
fn with_validator(mut response: Response, etag: &str) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ETAG, HeaderValue::from_str(etag).expect("an ETag is visible ASCII"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    response
}
