use axum::extract::State;
use threadkeep::SharedMessages;
use threadkeep_api::exchange::ErasedJson;

use super::{managed_tenant, user_in_path};
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{PathParams, QueryParams};
use crate::rest::erase::erase_user;
use crate::security::Caller;

/// Erases all data of a user of the caller's tenant
///
/// Like `POST /v1/erase`. A user without data can be erased too, in case a backup contains data of the user. Keys of the user
/// stay valid; revoke them first. Requires a key of the whole tenant with the role `admin`.
#[utoipa::path(
    delete,
    path = "/v1/users/{user}",
    operation_id = "delete_user",
    tag = "administration",
    params(
        ("user" = String, Path),
        ("shared_messages" = Option<bool>, Query, description = "Whether to erase the user's messages in shared threads as well")
    ),
    responses((status = 200, body = ErasedJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn erase(
    State(app): State<App>,
    caller: Caller,
    path_params: PathParams,
    mut params: QueryParams,
) -> Result {
    managed_tenant(&caller)?;
    let user = user_in_path(&path_params)?;
    let erase_shared = params.parse("shared_messages", "`true` or `false`")?.unwrap_or(false);
    params.finish()?;
    let shared_messages = if erase_shared { SharedMessages::Erase } else { SharedMessages::Keep };
    erase_user(&app, &caller, &user, shared_messages).await
}
