//! The preferences of users.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;

use serde::Serialize;
use threadkeep::{JsonText, Scope};
use utoipa::ToSchema;

use crate::error::{ApiError, Result};

/// A preference of a user.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PreferenceJson {
    key: String,
    #[schema(value_type = Value)]
    value: JsonText,
}

/// Checks that a request is for a user. A request with a key of a whole tenant must select a user.
fn require_user(scope: &Scope) -> Result<()> {
    match scope {
        Scope::User(..) => Ok(()),
        Scope::Tenant(_) => {
            let message = "preferences belong to a user; select one with the header Threadkeep-User";
            Err(ApiError::invalid("Threadkeep-User", message).code("user_required"))
        }
    }
}
