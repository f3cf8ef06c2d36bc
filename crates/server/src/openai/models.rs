use axum::extract::State;
use serde_json::{Value, json as value};

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::PathParams;
use crate::openai::{assistant, turn};
use crate::output::json;

/// Lists the models and assistants
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "list_models",
    tag = "openai",
    responses((status = 200, description = "The models.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>) -> Result {
    Ok(json(&value!({ "object": "list", "data": list_models(&app) })))
}

/// Retrieves a model
#[utoipa::path(
    get,
    path = "/v1/models/{model}",
    operation_id = "retrieve_model",
    tag = "openai",
    params(("model" = String, Path)),
    responses((status = 200, description = "The model.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve(State(app): State<App>, path_params: PathParams) -> Result {
    find(&app, path_params.get("model"))
}

/// Retrieves an assistant by its model name
#[utoipa::path(
    get,
    path = "/v1/models/threadkeep/{name}",
    operation_id = "retrieve_assistant_model",
    tag = "openai",
    params(("name" = String, Path)),
    responses((status = 200, description = "The model.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve_assistant(State(app): State<App>, path_params: PathParams) -> Result {
    find(&app, &format!("{}{}", assistant::MODEL_PREFIX, path_params.get("name")))
}

fn find(app: &App, id: &str) -> Result {
    let found = list_models(app).into_iter().find(|model| model["id"] == id);
    Ok(json(&found.ok_or_else(|| assistant::model_not_found(id))?))
}

/// Returns the name of the server's model, which answers a request for any model name. If the server is strict, it rejects names
/// that it does not list.
pub(super) fn answering_model<'a>(app: &'a App, requested: Option<&str>) -> Result<&'a str, ApiError> {
    let name = app.model().ok_or_else(turn::no_model_error)?.name();
    check_name(app, requested, name)?;
    Ok(name)
}

/// If the server is strict, rejects any name other than that of the model that answers.
pub(super) fn check_name(app: &App, requested: Option<&str>, answering: &str) -> Result<(), ApiError> {
    match requested.filter(|requested| app.options().strict_models && *requested != answering) {
        Some(requested) => Err(assistant::model_not_found(requested)),
        None => Ok(()),
    }
}

/// Lists the assistants and the configured models.
fn list_models(app: &App) -> Vec<Value> {
    let chat = app.model().map(|model| model.name().to_owned());
    let embedder = app.embedder().map(|embedder| embedder.model().to_owned());
    let model_name =
        |agent: &threadkeep::Agent| format!("{}{}", assistant::MODEL_PREFIX, agent.assistant().definition().name);
    let assistants = app.assistants().all();
    let models = assistants.iter().map(model_name).chain(chat).chain(embedder);
    models.map(|id| value!({ "id": id, "object": "model", "created": 0, "owned_by": "threadkeep" })).collect()
}
