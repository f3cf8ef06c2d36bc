use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use threadkeep::core::{OpenThread, PutRecord, RecordState};
use threadkeep::{JsonText, Map, MemoryError, Namespace, RecordName, Scope, StoreError, Thread, ThreadId};
use threadkeep_api::thread::ThreadJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{self, JsonBody, PathParams, optional_whole_number};
use crate::output::{created_or_found, with_etag};
use crate::security::Caller;

/// The name of copies in their idempotency keys.
const COPY_KEY: &str = "http:fork";

/// The messages to copy, and the properties of the new thread.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ForkJson {
    /// The position of the last message to copy. Default: all messages are copied.
    #[serde(deserialize_with = "optional_whole_number")]
    through_seq: Option<u64>,
    /// The new thread's title. Default: the title of the original thread.
    title: Option<String>,
    /// The new thread's metadata. Default: the metadata of the original thread.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map>,
}

/// The progress of a fork with an Idempotency-Key.
#[derive(Debug, Deserialize, Serialize)]
struct Progress {
    /// The position of the last message to copy.
    through: u64,
    #[serde(rename = "is_whole")]
    is_complete: bool,
}

/// Creates a thread with a copy of another thread's messages
///
/// Messages keep their ids and times, and are numbered from 1 again. The state is copied; keys and records are not. The new
/// thread belongs to the caller. A request with the same Idempotency-Key resumes an interrupted fork.
#[utoipa::path(
    post,
    path = "/v1/threads/{id}/fork",
    operation_id = "fork_thread",
    tag = "threads",
    params(("id" = String, Path), ("Idempotency-Key" = Option<String>, Header)),
    request_body = ForkJson,
    responses(
        (status = 201, body = ThreadJson),
        (status = 200, description = "An earlier request created the thread.", body = ThreadJson),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn fork(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<ForkJson>,
) -> Result {
    let (scope, memory) = (&caller.scope, app.memory());
    let from = memory.get_thread(scope, path_params.thread(&app, &caller.scope).await?).await?;
    let identity = input::read_identity(&headers, "fork", &format!("{}:{digest}", from.id))?;
    let id = identity.thread_id(&app, scope);
    let through = body.through_seq.unwrap_or(from.positions.seq);
    if through > from.positions.seq {
        let message = format!("`through_seq` must not exceed the position of the last message, {}", from.positions.seq);
        return Err(ApiError::invalid("through_seq", message));
    }
    let title = body.title.or(from.title.clone());
    let metadata = body.metadata.unwrap_or_else(|| {
        let mut metadata = from.metadata.clone();
        // This field identifies a branch of an imported conversation. The new thread is not such a branch.
        metadata.remove("branch");
        metadata
    });
    let open = OpenThread { title, metadata, state: from.state.clone(), ..OpenThread::new(scope, id) };
    let opened = memory.open_thread(scope, open).await?;
    let is_recorded = identity.record_creation(&app, scope, id).await?;
    if is_recorded {
        start_or_resume_copy(&app, scope, &from, id, through).await?;
    } else {
        memory.copy_messages(scope, &from, id, through, COPY_KEY).await?;
    }
    let thread = memory.get_thread(scope, id).await?;
    let change = thread.positions.tagged();
    Ok(with_etag(created_or_found(opened.created, &ThreadJson::from(thread)), change))
}

/// Copies the messages that earlier attempts of the same request have not copied. The first attempt determines the last position,
/// because the original thread may change between attempts. Does nothing if the fork is complete.
async fn start_or_resume_copy(app: &App, scope: &Scope, from: &Thread, to: ThreadId, through: u64) -> Result<()> {
    let (memory, name) = (app.memory(), RecordName { namespace: Namespace::system("server")?, key: "fork".to_owned() });
    let put = |progress: &Progress| -> Result<PutRecord> {
        Ok(PutRecord { name: name.clone(), value: JsonText::of(progress)?, expires_at: None })
    };
    let started = Progress { through, is_complete: false };
    let first = memory.batch().require(name.clone(), RecordState::Absent).put(put(&started)?).commit(scope, to).await;
    let progress = match first {
        Ok(_) => started,
        Err(MemoryError::Store(StoreError::Conflict(_))) => {
            let found = memory.find_thread_record(scope, to, &name).await?;
            found.map(|record| record.value.read()).transpose()?.unwrap_or(started)
        }
        Err(error) => return Err(error.into()),
    };
    if progress.is_complete {
        return Ok(());
    }
    memory.copy_messages(scope, from, to, progress.through, COPY_KEY).await?;
    memory.batch().put(put(&Progress { is_complete: true, ..progress })?).commit(scope, to).await?;
    Ok(())
}
