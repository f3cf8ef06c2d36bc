use axum::extract::State;
use serde::Serialize;
use threadkeep::core::StoreExt;
use threadkeep::{MetadataFilter, Owner, ThreadKey, ThreadOrder, ThreadQuery, UserId};
use threadkeep_api::thread::ThreadJson;
use utoipa::ToSchema;

use crate::app::App;
use crate::cursor;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::output::json;
use crate::security::Caller;

/// A page of threads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ThreadsJson {
    data: Vec<ThreadJson>,
    /// The value of `after` for the next page; null on the last page.
    next: Option<String>,
}

/// Lists threads, or finds the thread with a key
///
/// For a user, lists the user's threads. For a whole tenant, lists all threads, only the threads of `user`, or with `shared=true`
/// only the threads that the users of the tenant share.
#[utoipa::path(
    get,
    path = "/v1/threads",
    operation_id = "list_threads",
    tag = "threads",
    params(
        ("order" = Option<String>, Query, description = "`recent` (default) or `created`, which is stable"),
        ("after" = Option<String>, Query, description = "The `next` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 1,000; default 50"),
        ("key" = Option<String>, Query, description = "Only the thread with this key"),
        ("user" = Option<String>, Query, description = "Only threads of this user"),
        ("shared" = Option<bool>, Query, description = "Only threads that users share"),
        (
            "metadata" = Option<HashMap<String, String>>, Query, style = DeepObject, explode,
            description = "Only threads with these values in their metadata, as `metadata[key]=value`; at most 8. A value matches a \
                string, and an integer or boolean with this text"
        )
    ),
    responses((status = 200, body = ThreadsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let scope = &caller.scope;
    let order = match params.take("order")?.as_deref() {
        None | Some("recent") => ThreadOrder::Recent,
        Some("created") => ThreadOrder::Created,
        Some(_) => return Err(ApiError::invalid("order", "`order` must be `recent` or `created`")),
    };
    let (limit, after, key) = (params.take_limit(50)?, params.take("after")?, params.take("key")?);
    let (owner, metadata) = (take_owner(&mut params)?, params.take_metadata()?);
    params.finish()?;
    if let Some(key) = key {
        return find_by_key(&app, &caller, owner, key, &metadata).await;
    }
    let list = format!("threads {order:?} {owner:?} {metadata:?}");
    let after = after.map(|after| cursor::decode(scope, &list, "after", &after)).transpose()?;
    let query = ThreadQuery { order, owner, after, metadata, limit };
    let page = app.memory().list_threads(scope, &query).await?;
    let next = page.next.map(|next| cursor::encode(scope, &list, &next));
    // This may leave fewer threads than `limit`, even if there is a next page.
    let listed = page.threads.into_iter().filter(|thread| !thread.is_ephemeral());
    Ok(json(&ThreadsJson { data: listed.map(Into::into).collect(), next }))
}

/// Responds with the thread with this key, or with an empty page.
async fn find_by_key(
    app: &App,
    caller: &Caller,
    owner: Option<Owner>,
    key: String,
    metadata: &MetadataFilter,
) -> Result {
    let owner = owner.unwrap_or_else(|| caller.scope.default_owner());
    let name = threadkeep::core::ThreadRef::Key(owner, ThreadKey::new(key)?);
    let memory = app.memory();
    let found = memory.backend().store.find_thread(&caller.scope, &name, memory.now()).await?;
    let found = found.into_iter().filter(|thread| metadata.matches(&thread.metadata));
    Ok(json(&ThreadsJson { data: found.map(Into::into).collect(), next: None }))
}

/// Takes the parameters `user` and `shared`. Returns the owner that they select; `None` for all owners.
fn take_owner(params: &mut QueryParams) -> Result<Option<Owner>> {
    let user = params.take("user")?;
    let is_shared = params.parse("shared", "true or false")?.unwrap_or(false);
    match (user, is_shared) {
        (Some(_), true) => Err(ApiError::invalid("shared", "`user` and `shared` are mutually exclusive")),
        (Some(user), false) => Ok(Some(Owner::User(UserId::new(user)?))),
        (None, true) => Ok(Some(Owner::Tenant)),
        (None, false) => Ok(None),
    }
}
