use axum::extract::State;
use serde::Serialize;
use threadkeep::{Scope, ThreadSelection, Timestamp};
use utoipa::ToSchema;

use super::{has_data, managed_tenant, user_in_path};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::output::json;
use crate::security::Caller;

/// A user, with statistics of the user's own threads.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UserDetailsJson {
    user: String,
    threads: u64,
    messages: u64,
    input_tokens: u64,
    output_tokens: u64,
    #[schema(value_type = Option<String>, format = DateTime)]
    first_message_at: Option<Timestamp>,
    #[schema(value_type = Option<String>, format = DateTime)]
    last_message_at: Option<Timestamp>,
}

/// Returns a user of the caller's tenant
///
/// Requires a key of the whole tenant with the role `admin`.
#[utoipa::path(
    get,
    path = "/v1/users/{user}",
    operation_id = "get_user",
    tag = "administration",
    params(("user" = String, Path)),
    responses((status = 200, body = UserDetailsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, path_params: PathParams) -> Result {
    let tenant = managed_tenant(&caller)?;
    let user = user_in_path(&path_params)?;
    if !has_data(&app, tenant, &user).await? {
        return Err(ApiError::not_found("user"));
    }
    let own = Scope::User(tenant.clone(), user.clone());
    let analytics = app.memory().analytics(&own, ThreadSelection::All).await?;
    Ok(json(&UserDetailsJson {
        user: user.as_str().to_owned(),
        threads: analytics.threads,
        messages: analytics.messages,
        input_tokens: analytics.input_tokens,
        output_tokens: analytics.output_tokens,
        first_message_at: analytics.first_message_at,
        last_message_at: analytics.last_message_at,
    }))
}
