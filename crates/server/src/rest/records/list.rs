use axum::extract::State;
use threadkeep::core::RecordQuery;
use threadkeep::{Namespace, RecordOwner, Scope};

use super::{RecordsJson, list_name, read_namespace, take_owner};
use crate::app::App;
use crate::cursor;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::output::json;
use crate::security::Caller;

/// Lists the records of a namespace, ordered by key
#[utoipa::path(
    get,
    path = "/v1/records/{namespace}",
    operation_id = "list_records",
    tag = "records",
    params(
        ("namespace" = String, Path),
        ("owner" = Option<String>, Query, description = "`user` or `tenant`; default: the caller"),
        ("prefix" = Option<String>, Query),
        ("after" = Option<String>, Query),
        ("limit" = Option<u32>, Query)
    ),
    responses((status = 200, body = RecordsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result {
    let owner = take_owner(&caller.scope, &mut params)?;
    respond_with_page(&app, &caller.scope, owner, read_namespace(&path_params)?, params).await
}

/// Responds with a page of the records of any owner: a user, the tenant or a thread.
pub(crate) async fn respond_with_page(
    app: &App,
    scope: &Scope,
    owner: RecordOwner,
    namespace: Namespace,
    mut params: QueryParams,
) -> Result {
    let key_prefix = params.take("prefix")?.unwrap_or_default();
    let (limit, after) = (params.take_limit(100)?, params.take("after")?);
    params.finish()?;
    let list = list_name(&owner, &namespace, &key_prefix);
    let after = after.map(|after| cursor::decode(scope, &list, "after", &after)).transpose()?;
    let after = after.map(|key| (namespace.clone(), key));
    let query = RecordQuery { namespace: Some(namespace), key_prefix, after, limit, ..RecordQuery::of(owner) };
    let memory = app.memory();
    let records = memory.backend().store.list_records(scope, &query, memory.now()).await?;
    let last = records.last().filter(|_| records.len() == limit);
    let next = last.map(|last| cursor::encode(scope, &list, &last.key));
    Ok(json(&RecordsJson { data: records.into_iter().map(Into::into).collect(), next }))
}
