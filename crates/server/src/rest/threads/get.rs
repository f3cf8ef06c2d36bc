use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use threadkeep_api::thread::ThreadJson;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::{has_current, json, parse_etag, with_etag};
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
    if has_current(&headers, |etag| parse_etag(etag).is_some_and(|known| known.may_be_same(change))) {
        return Ok(with_etag(StatusCode::NOT_MODIFIED.into_response(), change));
    }
    Ok(with_etag(json(&ThreadJson::from(thread)), change))
}
