use axum::extract::State;
use serde_json::json as value;
use threadkeep::context::count_tokens;
use threadkeep::tokens::counter_for_model;
use threadkeep::{TokenCount, Value};

use super::create::CreateResponseJson;
use super::resolved_input::ResolvedInput;
use crate::app::App;
use crate::error::{ErrorEnvelope, Result};
use crate::input::JsonBody;
use crate::output::json;
use crate::security::Caller;

/// Counts the input tokens of a response
///
/// If the tokenizer of the model is known, it is used; otherwise the count is an approximation.
#[utoipa::path(
    post,
    path = "/v1/responses/input_tokens",
    operation_id = "count_input_tokens",
    tag = "openai",
    request_body = CreateResponseJson,
    responses((status = 200, description = "The count.", body = Object), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn count(
    State(app): State<App>,
    caller: Caller,
    JsonBody { value: mut body, .. }: JsonBody<CreateResponseJson>,
) -> Result {
    let resolved = ResolvedInput::read(&app, &caller.scope, &body).await?;
    let model = body.model.as_deref().or_else(|| app.model().map(|model| model.name())).unwrap_or_default();
    let counter = counter_for_model(model);
    let tools = body.tools.take().unwrap_or_default();
    let tools: TokenCount = tools.iter().map(|tool: &Value| counter.count(&tool.to_string())).sum();
    let messages = resolved.messages(body.instructions.take());
    // Counting blocks for a time that is proportional to the length of the text.
    let count = tokio::task::spawn_blocking(move || count_tokens(&messages, &*counter));
    let message_tokens = count.await.map_err(|error| crate::error::ApiError::internal(error.to_string()))?;
    let tokens = message_tokens + tools;
    Ok(json(&value!({ "object": "response.input_tokens", "input_tokens": tokens.0 })))
}
