use axum::extract::State;
use axum::http::{HeaderMap, header};
use serde::{Deserialize, Deserializer, Serialize};
use threadkeep::{Conflict, Expected, Map, MemoryError, Scope, StoreError, ThreadId, ThreadPatch, Timestamp, Value};
use threadkeep_api::thread::ThreadJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{JsonBody, PathParams, expected_change};
use crate::output::{json, with_etag};
use crate::security::Caller;

/// The maximum number of attempts to merge while others change the thread.
const MAX_ATTEMPTS: usize = 8;

/// The fields to change. Omitted fields keep their values; `null` removes a title or an expiry.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct PatchJson {
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Option<String>)]
    title: Option<Option<String>>,
    /// Replaces the whole metadata. With `application/merge-patch+json`, is merged into the stored metadata.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    /// Replaces the whole state. With `application/merge-patch+json`, is merged into the stored state.
    #[schema(value_type = Option<Object>)]
    state: Option<Map>,
    #[serde(deserialize_with = "nullable")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<Timestamp>>,
}

/// Distinguishes `null` from an omitted field.
pub(crate) fn nullable<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::<T>::deserialize(deserializer).map(Some)
}

/// Whether the body of a request is a merge patch (RFC 7396).
fn is_merge_patch(headers: &HeaderMap) -> bool {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    content_type.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/merge-patch+json")
}

/// Merges the metadata and the state of a patch into those of a thread.
pub(crate) async fn merge(
    app: &App,
    scope: &Scope,
    id: ThreadId,
    patch: &ThreadPatch,
    expected: Option<Expected>,
) -> Result<()> {
    for _ in 0..MAX_ATTEMPTS {
        let thread = app.memory().get_thread(scope, id).await?;
        let merge_into = |mut current: Map, changes: &Option<Map>| {
            changes.as_ref().map(|changes| {
                merge_fields(&mut current, changes);
                current
            })
        };
        let merged_patch = ThreadPatch {
            metadata: merge_into(thread.metadata, &patch.metadata),
            state: merge_into(thread.state, &patch.state),
            ..patch.clone()
        };
        let change_when_read = Some(Expected::Change(thread.positions.tagged()));
        match app.memory().patch_thread(scope, id, merged_patch, expected.or(change_when_read)).await {
            // The thread was changed after it was read.
            Err(MemoryError::Store(StoreError::Conflict(Conflict::Change { .. }))) if expected.is_none() => {}
            result => return Ok(result.map(drop)?),
        }
    }
    Err(MemoryError::Contended { what: "the thread", attempts: MAX_ATTEMPTS }.into())
}

/// Merges fields (RFC 7396): null removes a field, an object is merged, and any other value replaces the field.
fn merge_fields(target: &mut Map, changes: &Map) {
    for (name, change) in changes {
        match change {
            Value::Null => {
                target.shift_remove(name);
            }
            Value::Object(changes) => {
                let member = target.entry(name.clone()).or_insert_with(|| Map::new().into());
                if !member.is_object() {
                    *member = Map::new().into();
                }
                if let Value::Object(member) = member {
                    merge_fields(member, changes);
                }
            }
            value => {
                target.insert(name.clone(), value.clone());
            }
        }
    }
}

/// Changes the title, metadata, state or expiry of a thread
///
/// With the content type `application/merge-patch+json`, `metadata` and `state` are merged into the stored ones (RFC 7396).
#[utoipa::path(
    patch,
    path = "/v1/threads/{id}",
    operation_id = "patch_thread",
    tag = "threads",
    params(("id" = String, Path), ("If-Match" = Option<String>, Header)),
    request_body(content((PatchJson = "application/json"), (PatchJson = "application/merge-patch+json"))),
    responses(
        (status = 200, body = ThreadJson),
        (status = 412, description = "The thread has changed since the version in `If-Match`.", body = ErrorEnvelope<'_>),
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
    let (patch, expected) = (ThreadPatch { title, metadata, state, expires_at }, expected_change(&headers)?);
    if is_merge_patch(&headers) {
        merge(&app, scope, id, &patch, expected).await?;
    } else {
        app.memory().patch_thread(scope, id, patch, expected).await?;
    }
    let thread = app.memory().get_thread(scope, id).await?;
    let change = thread.positions.tagged();
    Ok(with_etag(json(&ThreadJson::from(thread)), change))
}
