use axum::extract::State;
use serde::Deserialize;
use threadkeep::{Map, ThreadPatch, Timestamp};
use utoipa::ToSchema;

use super::{BulkJson, BulkResultJson, check_count};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::output::json;
use crate::rest::threads::patch::{merge, nullable};
use crate::security::Caller;
use crate::thread_names;

/// The threads to change, and the changes to each of them.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatchThreadsJson {
    /// 1 to 500 names of threads: ids, conversation ids or keys.
    threads: Vec<String>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<String>)]
    title: Option<Option<String>>,
    /// Is merged into the metadata of each thread (RFC 7396): null removes a field.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
    /// Is merged into the state of each thread (RFC 7396).
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    state: Option<Map>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Option<Timestamp>>,
}

/// Changes the title, metadata, state or expiry of many threads
///
/// Each thread is changed separately.
#[utoipa::path(
    post,
    path = "/v1/bulk/threads/patch",
    operation_id = "patch_threads",
    tag = "bulk",
    request_body = PatchThreadsJson,
    responses((status = 200, body = BulkJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn patch_threads(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<PatchThreadsJson>,
) -> Result {
    let PatchThreadsJson { threads, title, metadata, state, expires_at } = body;
    check_count("threads", threads.len())?;
    let patch = ThreadPatch { title, metadata, state, expires_at };
    let mut results = Vec::with_capacity(threads.len());
    for name in threads {
        let patched = async {
            let id = thread_names::resolve(&app, &caller.scope, &name).await?;
            merge(&app, &caller.scope, id, &patch, None).await
        };
        let patched = patched.await;
        results.push(BulkResultJson::of(name, 200, patched)?);
    }
    Ok(json(&BulkJson::of(results)))
}
