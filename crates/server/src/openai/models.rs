use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json as value};

use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::Names;
use crate::output::json;

/// Lists what answers
#[utoipa::path(
    get,
    path = "/v1/models",
    tag = "openai",
    responses((status = 200, description = "The models.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn list(State(app): State<App>) -> Result {
    Ok(json(&value!({ "object": "list", "data": models(&app) })))
}

/// Retrieves a model
#[utoipa::path(
    get,
    path = "/v1/models/{model}",
    tag = "openai",
    params(("model" = String, Path)),
    responses((status = 200, description = "The model.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn retrieve(State(app): State<App>, names: Names) -> Result {
    let wanted = names.text("model");
    let found = models(&app).into_iter().find(|model| model["id"] == wanted);
    let unknown = || {
        let message = format!("The model '{}' does not exist", wanted.chars().take(100).collect::<String>());
        ApiError::new(StatusCode::NOT_FOUND, "model_not_found", message).param("model")
    };
    Ok(json(&found.ok_or_else(unknown)?))
}

fn models(app: &App) -> Vec<Value> {
    let chat = app.model().map(|model| model.name().to_owned());
    let embedder = app.embedder().map(|embedder| embedder.model().to_owned());
    let models = chat.into_iter().chain(embedder);
    models.map(|id| value!({ "id": id, "object": "model", "created": 0, "owned_by": "threadkeep" })).collect()
}
