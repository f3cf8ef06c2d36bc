use axum::extract::State;
use threadkeep::DocumentOwner;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::{Names, Params};
use crate::rest::documents::{DocumentsJson, list::page, namespace};
use crate::security::Caller;

/// Lists the documents of a thread, ordered by key
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/documents/{namespace}",
    tag = "documents",
    params(
        ("id" = String, Path),
        ("namespace" = String, Path),
        ("prefix" = Option<String>, Query),
        ("after" = Option<String>, Query),
        ("limit" = Option<u32>, Query)
    ),
    responses((status = 200, body = DocumentsJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>, caller: Caller, names: Names, params: Params) -> Result {
    let thread = names.thread()?;
    app.memory().get_thread(&caller.scope, thread).await?;
    page(&app, &caller.scope, DocumentOwner::Thread(thread), namespace(&names)?, params).await
}
