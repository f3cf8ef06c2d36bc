//! The documents of applications that belong to a user, or to the tenant. Those of Threadkeep itself are reachable nowhere.

pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod put;

use serde::Serialize;
use threadkeep::{Document, DocumentOwner, JsonText, Namespace, Scope, Timestamp};
use utoipa::ToSchema;

use crate::error::{ApiError, Result};
use crate::input::{Names, Params};

/// A small JSON value with a name.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentJson {
    namespace: String,
    key: String,
    #[schema(value_type = Value)]
    value: JsonText,
    /// Grows with each write: its ETag.
    version: u64,
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
}

/// A page of documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentsJson {
    pub(crate) data: Vec<DocumentJson>,
    /// What to pass as `after` for the next page; null on the last.
    pub(crate) next: Option<String>,
}

impl From<Document> for DocumentJson {
    fn from(document: Document) -> Self {
        let Document { namespace, key, value, version, expires_at, .. } = document;
        let (Namespace::App(namespace) | Namespace::System(namespace)) = namespace;
        Self { namespace, key, value, version, expires_at }
    }
}

/// The family that `{namespace}` names: always one of an application.
pub(crate) fn namespace(names: &Names) -> Result<Namespace> {
    Ok(Namespace::app(names.text("namespace"))?)
}

/// Whose documents are meant: the caller's own, or with `owner=tenant` those of the tenant.
fn owner(scope: &Scope, params: &mut Params) -> Result<DocumentOwner> {
    match (params.take("owner")?.as_deref(), scope) {
        (None | Some("tenant"), Scope::Tenant(_)) | (Some("tenant"), Scope::User(..)) => Ok(DocumentOwner::Tenant),
        (None | Some("user"), Scope::User(_, user)) => Ok(DocumentOwner::User(user.clone())),
        (Some("user"), Scope::Tenant(_)) => Err(ApiError::invalid("owner", "no user is named")),
        _ => Err(ApiError::invalid("owner", "`owner` is `user` or `tenant`")),
    }
}

/// The name of a list, for its cursors.
pub(crate) fn list_name(owner: &DocumentOwner, namespace: &Namespace, prefix: &str) -> String {
    format!("documents {owner:?} {namespace} {prefix:?}")
}
