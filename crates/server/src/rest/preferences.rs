//! What a user prefers.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;

use serde::Serialize;
use threadkeep::{JsonText, Scope};
use utoipa::ToSchema;

use crate::error::{ApiError, Result};

/// What a user prefers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreferenceJson {
    key: String,
    #[schema(value_type = Value)]
    value: JsonText,
}

/// Preferences are a user's; a key of a tenant has to name one.
fn demand_user(scope: &Scope) -> Result<()> {
    match scope {
        Scope::User(..) => Ok(()),
        Scope::Tenant(_) => {
            let message = "preferences belong to a user: name one with the header Threadkeep-User";
            Err(ApiError::invalid("Threadkeep-User", message).code("user_required"))
        }
    }
}
