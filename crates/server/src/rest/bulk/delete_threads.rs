use axum::extract::State;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{BulkJson, BulkResultJson, check_count};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::output::json;
use crate::security::Caller;
use crate::thread_names;

/// The threads to delete.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteThreadsJson {
    /// 1 to 500 names of threads: ids, conversation ids or keys.
    threads: Vec<String>,
}

/// Deletes many threads with all their data
///
/// Each thread is deleted separately. A request that was interrupted can be repeated; threads that are already deleted are reported as
/// not found.
#[utoipa::path(
    post,
    path = "/v1/bulk/threads/delete",
    operation_id = "delete_threads",
    tag = "bulk",
    request_body = DeleteThreadsJson,
    responses((status = 200, body = BulkJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn delete_threads(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: body, .. }: JsonBody<DeleteThreadsJson>,
) -> Result {
    check_count("threads", body.threads.len())?;
    let mut results = Vec::with_capacity(body.threads.len());
    for name in body.threads {
        let deleted = async {
            let id = thread_names::resolve(&app, &caller.scope, &name).await?;
            Ok(app.memory().delete_thread(&caller.scope, id).await?)
        };
        let deleted = deleted.await;
        results.push(BulkResultJson::of(name, 204, deleted)?);
    }
    Ok(json(&BulkJson::of(results)))
}
