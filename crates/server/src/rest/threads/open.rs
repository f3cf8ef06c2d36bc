use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use threadkeep::core::{OpenOutcome, OpenThread};
use threadkeep::{Map, Owner, ThreadId, ThreadKey, Timestamp};
use threadkeep_api::thread::{OwnerJson, ThreadJson};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{self, JsonBody};
use crate::output::{created_or_found, with_etag};
use crate::security::Caller;

/// The thread to open. All fields are optional.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OpenJson {
    /// The key that the application chooses, such as the name of a conversation in a chat service. Unique among the owner's
    /// threads.
    key: Option<String>,
    /// The thread's id: any UUID.
    #[schema(value_type = Option<String>, format = Uuid)]
    id: Option<ThreadId>,
    /// The owner of a new thread. Default: the caller.
    owner: Option<OwnerJson>,
    title: Option<String>,
    #[schema(value_type = Object)]
    metadata: Map,
    #[schema(value_type = Object)]
    state: Map,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// Finds the thread with a key or an id, or creates it
///
/// A request with neither a key nor an id creates a thread, unless it has the same Idempotency-Key as an earlier request.
#[utoipa::path(
    post,
    path = "/v1/threads",
    operation_id = "open_thread",
    tag = "threads",
    request_body = OpenJson,
    params(("Idempotency-Key" = Option<String>, Header)),
    responses(
        (status = 201, body = ThreadJson),
        (status = 200, description = "The thread already existed.", body = ThreadJson),
        (status = "4XX", body = ErrorEnvelope<'_>)
    ),
    security(("key" = []))
)]
pub(crate) async fn open(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    JsonBody { value: body, digest }: JsonBody<OpenJson>,
) -> Result {
    let scope = &caller.scope;
    let identity = input::read_identity(&headers, "threads", &digest)?;
    let is_named = body.id.is_some() || body.key.is_some();
    let id = body.id.unwrap_or_else(|| identity.thread_id(&app, scope));
    let owner = body.owner.map_or_else(|| Ok(scope.default_owner()), Owner::try_from)?;
    let open = OpenThread {
        id,
        owner,
        key: body.key.map(ThreadKey::new).transpose()?,
        title: body.title,
        metadata: body.metadata,
        state: body.state,
        created_at: None,
        expires_at: body.expires_at,
    };
    let OpenOutcome { mut thread, created } = app.memory().open_thread(scope, open).await?;
    if !is_named && identity.record_creation(&app, scope, id).await? {
        // Recording the creation changed the thread.
        thread = app.memory().get_thread(scope, id).await?;
    }
    let change = thread.positions.tagged();
    Ok(with_etag(created_or_found(created, &ThreadJson::from(thread)), change))
}
