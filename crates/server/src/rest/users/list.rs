use axum::extract::State;
use serde::Serialize;
use threadkeep::{Owner, UserId};
use utoipa::ToSchema;

use super::{UserJson, has_data, managed_tenant};
use crate::app::App;
use crate::cursor;
use crate::error::{ErrorEnvelope, Result};
use crate::input::QueryParams;
use crate::output::json;
use crate::security::Caller;

/// The default number of users on a page.
const DEFAULT_LIMIT: usize = 100;
/// The name of the list in cursors.
const LIST: &str = "users";

/// Users, ordered by name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsersJson {
    data: Vec<UserJson>,
    /// The value of `after` for the next page; null on the last page. A page may have fewer users than `limit`.
    next: Option<String>,
}

/// Lists the users of the caller's tenant who have data
///
/// Requires a key of the whole tenant with the role `admin`.
#[utoipa::path(
    get,
    path = "/v1/users",
    operation_id = "list_users",
    tag = "administration",
    params(
        ("after" = Option<String>, Query, description = "The `next` of the previous page"),
        ("limit" = Option<u32>, Query, description = "1 to 1,000; default 100")
    ),
    responses((status = 200, body = UsersJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, mut params: QueryParams) -> Result {
    let tenant = managed_tenant(&caller)?;
    let limit = params.take_limit(DEFAULT_LIMIT)?;
    let after = params.take("after")?.map(|after| cursor::decode(&caller.scope, LIST, "after", &after)).transpose()?;
    params.finish()?;
    // The tenant itself is the first owner.
    let after = after.map_or(Ok(Owner::Tenant), |user| UserId::new(user).map(Owner::User))?;
    let owners = app.memory().backend().maintenance.list_owners(tenant, Some(&after), limit).await?;
    let is_last = owners.len() < limit;
    let users = owners.into_iter().filter_map(|owner| if let Owner::User(user) = owner { Some(user) } else { None });
    let users: Vec<UserId> = users.collect();
    let next = users.last().filter(|_| !is_last).map(|user| cursor::encode(&caller.scope, LIST, user.as_str()));
    let mut data = Vec::new();
    for user in users {
        if has_data(&app, tenant, &user).await? {
            data.push(UserJson { user: user.as_str().to_owned() });
        }
    }
    Ok(json(&UsersJson { data, next }))
}
