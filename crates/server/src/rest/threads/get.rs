use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::{json, parse_etag, with_etag};
use crate::rest::json::thread::ThreadJson;
use crate::security::Caller;

/// Gets a thread
#[utoipa::path(
    get,
    path = "/v1/threads/{id}",
    operation_id = "get_thread",
    tag = "threads",
    params(("id" = String, Path), ("If-None-Match" = Option<String>, Header)),
    responses(
        (status = 200, body = ThreadJson),
        (status = 304, description = "The thread is unchanged."),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, path_params: PathParams, headers: HeaderMap) -> Result {
    let thread = app.memory().get_thread(&caller.scope, path_params.thread(&app, &caller.scope).await?).await?;
    let change = thread.positions.tagged();
    let known_etags = headers.get(header::IF_NONE_MATCH).and_then(|etags| etags.to_str().ok());
    let is_known = |etags: &str| etags.split(',').filter_map(parse_etag).any(|known| known.may_be_same(change));
    if known_etags.is_some_and(is_known) {
        return Ok(with_etag(StatusCode::NOT_MODIFIED.into_response(), change));
    }
    Ok(with_etag(json(&ThreadJson::from(thread)), change))
}
