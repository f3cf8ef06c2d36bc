use axum::extract::State;
use threadkeep::DocumentOwner;

use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::Names;
use crate::rest::documents::{DocumentJson, get::document, namespace};
use crate::security::Caller;

/// Gets a document of a thread
#[utoipa::path(
    get,
    path = "/v1/threads/{id}/documents/{namespace}/{key}",
    tag = "documents",
    params(("id" = String, Path), ("namespace" = String, Path), ("key" = String, Path)),
    responses((status = 200, body = DocumentJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn get(State(app): State<App>, caller: Caller, names: Names) -> Result {
    let owner = DocumentOwner::Thread(names.thread()?);
    document(&app, &caller.scope, &owner, &namespace(&names)?, names.text("key")).await
}
