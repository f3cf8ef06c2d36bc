//! Key-value records that applications store for a user or for the tenant. Threadkeep's own records are not accessible.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;

use serde::Serialize;
use threadkeep::{JsonText, Namespace, Record, RecordOwner, Scope, Timestamp};
use utoipa::ToSchema;

use crate::error::{ApiError, Result};
use crate::input::{PathParams, QueryParams};

/// A small JSON value with a namespace and a key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordJson {
    namespace: String,
    key: String,
    #[schema(value_type = Value)]
    value: JsonText,
    /// The version, which increases with each write. The ETag contains the same number.
    version: u64,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// A page of records.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RecordsJson {
    pub(crate) data: Vec<RecordJson>,
    /// The value of `after` for the next page; null on the last page.
    pub(crate) next: Option<String>,
}

impl From<Record> for RecordJson {
    fn from(record: Record) -> Self {
        let Record { namespace, key, value, version, expires_at, .. } = record;
        let (Namespace::App(namespace) | Namespace::System(namespace)) = namespace;
        Self { namespace, key, value, version, expires_at }
    }
}

/// Reads the namespace in the path, which is always an application's namespace.
pub(crate) fn read_namespace(path_params: &PathParams) -> Result<Namespace> {
    Ok(Namespace::app(path_params.get("namespace"))?)
}

/// Takes the parameter `owner`: `user` or `tenant`. The default is the user or tenant of the scope.
pub(crate) fn take_owner(scope: &Scope, params: &mut QueryParams) -> Result<RecordOwner> {
    match (params.take("owner")?.as_deref(), scope) {
        (None | Some("tenant"), Scope::Tenant(_)) | (Some("tenant"), Scope::User(..)) => Ok(RecordOwner::Tenant),
        (None | Some("user"), Scope::User(_, user)) => Ok(RecordOwner::User(user.clone())),
        (Some("user"), Scope::Tenant(_)) => {
            Err(ApiError::invalid("owner", "no user is selected; set the header Threadkeep-User"))
        }
        _ => Err(ApiError::invalid("owner", "`owner` must be `user` or `tenant`")),
    }
}

/// Returns the name that cursors contain for a list of records.
pub(crate) fn list_name(owner: &RecordOwner, namespace: &Namespace, prefix: &str) -> String {
    format!("documents {owner:?} {namespace} {prefix:?}")
}
