use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Deserializer, Serialize};
use threadkeep::{Map, ThreadPatch, Timestamp};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams, expected_change};
use crate::output::{json, with_etag};
use crate::rest::json::thread::ThreadJson;
use crate::security::Caller;

/// The members to change. Omitted members keep their values; `null` removes a title or an expiry.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PatchJson {
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Option<String>)]
    title: Option<Option<String>>,
    /// Replaces the whole metadata.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    /// Replaces the whole state.
    #[schema(value_type = Option<Object>)]
    state: Option<Map>,
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<Timestamp>>,
}

/// Distinguishes `null` from an omitted member.
fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Changes the title, metadata, state or expiry of a thread
#[utoipa::path(
    patch,
    path = "/v1/threads/{id}",
    operation_id = "patch_thread",
    tag = "threads",
    params(("id" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body = PatchJson,
    responses(
        (status = 200, body = ThreadJson),
        (status = 412, description = "The thread was changed since.", body = ErrorEnvelope<'_>),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn patch(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, .. }: JsonBody<PatchJson>,
) -> Result {
    let (scope, id) = (&caller.scope, path_params.thread(&app, &caller.scope).await?);
    let PatchJson { title, metadata, state, expires_at } = body;
    let patch = ThreadPatch { title, metadata, state, expires_at };
    app.memory().patch_thread(scope, id, patch, expected_change(&headers)?).await?;
    let thread = app.memory().get_thread(scope, id).await?;
    let change = thread.positions.tagged();
    Ok(with_etag(json(&ThreadJson::from(thread)), change))
}
