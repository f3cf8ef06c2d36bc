//! Users of the caller's tenant, for administrators.

pub(crate) mod erase;
pub(crate) mod get;
pub(crate) mod list;

use serde::Serialize;
use threadkeep::core::RecordQuery;
use threadkeep::{Owner, RecordOwner, Scope, TenantId, ThreadOrder, ThreadQuery, UserId};
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, Result};
use crate::input::PathParams;
use crate::security::Caller;

/// A user who has data.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserJson {
    user: String,
}

/// Returns the tenant whose users a caller manages. A user's key cannot manage users, and neither can a request on behalf of a
/// user.
fn managed_tenant(caller: &Caller) -> Result<&TenantId> {
    match &caller.scope {
        Scope::Tenant(tenant) => Ok(tenant),
        Scope::User(..) => {
            let message = "managing users requires an `admin` key that is not limited to a user; \
                           do not send the header Threadkeep-User";
            Err(ApiError::forbidden("tenant_key_required", message))
        }
    }
}

/// Reads the user in the path.
fn user_in_path(path_params: &PathParams) -> Result<UserId> {
    UserId::new(path_params.get("user")).map_err(|error| ApiError::from(error).param("user"))
}

/// Whether a user has threads or records. A store may list users for some time after they were erased.
async fn has_data(app: &App, tenant: &TenantId, user: &UserId) -> Result<bool> {
    let memory = app.memory();
    let own = Scope::User(tenant.clone(), user.clone());
    let owner = Some(Owner::User(user.clone()));
    let threads = ThreadQuery { owner, ..ThreadQuery::new(ThreadOrder::Created, 1) };
    if !memory.list_threads(&own, &threads).await?.threads.is_empty() {
        return Ok(true);
    }
    let records = RecordQuery { limit: 1, ..RecordQuery::of(RecordOwner::User(user.clone())) };
    Ok(!memory.backend().store.list_records(&own, &records, memory.now()).await?.is_empty())
}
